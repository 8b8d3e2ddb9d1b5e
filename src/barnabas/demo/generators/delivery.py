"""Between what happened and what arrives: some events come late, some come twice.

Late means out of order by up to `LATE_MS_MAX` of event time, always within the pipeline's watermark
delay, so that an exact answer exists: a correct pipeline counts every event once.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Any, Final

from barnabas.demo.generators.events import Event
from barnabas.demo.topics import MINUTE_MS

LATE_MS_MAX: Final = 12 * MINUTE_MS
_LATE_SHARE: Final = 0.02
_DUPLICATE_SHARE: Final = 0.03


@dataclass(slots=True)
class Delivery:
    """A record to publish at `publish_ms` (on the axis of event time)."""

    publish_ms: int
    topic: str
    key: str
    value: dict[str, Any]
    is_duplicate: bool = False
    is_late: bool = False


class DeliverySimulation:
    """Holds back late events and second copies until their time comes."""

    __slots__ = ("_seed", "duplicates", "held", "late")

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self.held: list[Delivery] = []
        self.duplicates = 0
        self.late = 0

    @property
    def pending(self) -> int:
        """Events that have happened and not been delivered yet (copies do not count)."""
        return sum(not delivery.is_duplicate for delivery in self.held)

    def snapshot(self) -> dict[str, Any]:
        """Return the state as JSON can hold it."""
        return {
            "duplicates": self.duplicates,
            "late": self.late,
            "held": [
                [d.publish_ms, d.topic, d.key, d.value, d.is_duplicate, d.is_late]
                for d in self.held
            ],
        }

    def restore(self, snapshot: dict[str, Any]) -> None:
        """Go on from a snapshot."""
        self.duplicates = snapshot["duplicates"]
        self.late = snapshot["late"]
        self.held = [Delivery(*fields) for fields in snapshot["held"]]

    def step(self, minute_ms: int, events: list[Event]) -> list[Delivery]:
        """Take the events of a minute and return what arrives in it, in order."""
        rng = Random(f"{self._seed}:delivery:{minute_ms}")
        for event in events:
            first = Delivery(event.event_time_ms, event.topic, event.key, event.value)
            if rng.random() < _LATE_SHARE:
                first.publish_ms += rng.randrange(MINUTE_MS, LATE_MS_MAX)
                first.is_late = True
                self.late += 1
            self.held.append(first)
            if rng.random() < _DUPLICATE_SHARE:
                again_ms = event.event_time_ms + rng.randrange(LATE_MS_MAX)
                self.held.append(
                    Delivery(again_ms, event.topic, event.key, event.value, is_duplicate=True)
                )
                self.duplicates += 1
        return self._release(minute_ms + MINUTE_MS)

    def release_all(self) -> list[Delivery]:
        """Return all that is held back, in order: nothing more will happen for now."""
        return self._release(None)

    def _release(self, before_ms: int | None) -> list[Delivery]:
        due = [d for d in self.held if before_ms is None or d.publish_ms < before_ms]
        self.held = [d for d in self.held if before_ms is not None and d.publish_ms >= before_ms]
        due.sort(key=lambda d: (d.publish_ms, d.value["event_id"], d.is_duplicate))
        return due
