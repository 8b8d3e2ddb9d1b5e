"""Runs cases and counts: how many of each file pass, and why the others do not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from ksql_cases.cases import Case
from ksql_cases.world import run
from support.sql_test_functions import all_functions


@dataclass
class Outcomes:
    """The outcomes of cases, by the name of their file."""

    passed: Counter[str] = field(default_factory=Counter)
    failed: dict[str, list[tuple[Case, Exception]]] = field(default_factory=dict)

    @property
    def total(self) -> int:
        """Number of cases that were run."""
        return self.passed.total() + sum(map(len, self.failed.values()))

    @property
    def passed_percent(self) -> float:
        """Percentage of all cases that passed."""
        return 100 * self.passed.total() / max(1, self.total)


def run_all(cases: Iterable[Case], *, as_columns: bool = False) -> Outcomes:
    """Run every case, even if others fail."""
    outcomes = Outcomes()
    for case in cases:
        try:
            run(case, all_functions(), as_columns=as_columns)
        except Exception as error:  # noqa: BLE001  # a case may fail in any way: it is counted
            outcomes.failed.setdefault(case.file, []).append((case, error))
        else:
            outcomes.passed[case.file] += 1
    return outcomes
