"""How much a run tries of what could go on for ever: random examples and seeds."""

from __future__ import annotations

import os
from typing import Final

EFFORT: Final = int(os.environ.get("EFFORT", "1"))
"""1 in `make test`; `make test-slow` tries several times as much."""


def examples(count: int) -> int:
    """Return how many random examples a property is tried with: `count` in `make test`."""
    return count * EFFORT
