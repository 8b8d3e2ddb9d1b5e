"""The types of the product and of the tests, as `make check` checks them.

Here they share the time that other tests spend waiting: by themselves they take more than a minute
on a machine that has not run them before.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.timeout(600)
def test_types_are_right() -> None:
    command = [sys.executable, "-m", "mypy"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=580)
    assert done.returncode == 0, f"{done.stdout}{done.stderr}"
