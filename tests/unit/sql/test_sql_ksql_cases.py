"""ksqlDB's own cases pass, but for the few that docs/sql/README.md names.

They run if KSQL_CASES names the directory of ksqlDB's query validation tests, which are not part of
this repository; docs/sql/README.md says how to fetch them.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ksql_cases.cases import load
from ksql_cases.running import run_all

DIRECTORY = os.environ.get("KSQL_CASES")
PASSED_PERCENT_MIN = 95
CASES_MIN = 2000
"""A directory with fewer is not the one that is meant."""


@pytest.mark.skipif(not DIRECTORY, reason="KSQL_CASES does not name the directory of the cases")
@pytest.mark.parametrize("as_columns", [False, True])
def test_ksqldbs_own_cases(as_columns: bool) -> None:
    outcomes = run_all(load(Path(str(DIRECTORY))), as_columns=as_columns)
    assert outcomes.total >= CASES_MIN, f"{outcomes.total} cases in {DIRECTORY}"
    failed = [case.title for lost in outcomes.failed.values() for case, _ in lost]
    assert outcomes.passed_percent >= PASSED_PERCENT_MIN, failed
