"""Events of the simulations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(slots=True)
class Event:
    """One event as it happened: its topic, key, event time and value."""

    topic: str
    key: str
    event_time_ms: int
    value: dict[str, Any]
