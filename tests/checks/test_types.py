"""The types of the product and of the tests, as `make check` checks them.

Here they share the time that other tests spend waiting. On a machine that has run neither before,
each takes more than a minute of a core, so `make test` has the product's alone: a test whose types
are wrong fails where it runs, and `make check` and `make test-slow` look at both.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param((), id="product"),
        pytest.param(("--config-file", "tests/mypy.ini"), id="tests", marks=pytest.mark.slow),
    ],
)
def test_types_are_right(arguments: tuple[str, ...]) -> None:
    command = [sys.executable, "-m", "mypy", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=580)
    assert done.returncode == 0, f"{done.stdout}{done.stderr}"
