"""How much a run tries of what could go on for ever: random examples and seeds."""

from __future__ import annotations

import os
from collections.abc import Iterable
from itertools import islice
from typing import Any, Final, TypeVar

import pytest

EFFORT: Final = int(os.environ.get("EFFORT", "1"))
"""1 in `make test`; `make test-slow` tries sixteen times as much."""

T = TypeVar("T")


def examples(count: int) -> int:
    """Return how many random examples a property is tried with: `count` in `make test`."""
    return count * EFFORT


def first_of(cases: Iterable[T], count: int) -> list[T]:
    """Return the first `count` of cases that repeat themselves; all of them in `make test-slow`."""
    return list(islice(cases, count if EFFORT == 1 else None))


def others_slow(cases: Iterable[Any], count: int = 1) -> list[Any]:
    """Return parameters of an expensive test, the first `count` for `make test`."""
    return [
        case if number < count else pytest.param(case, marks=pytest.mark.slow)
        for number, case in enumerate(cases)
    ]
