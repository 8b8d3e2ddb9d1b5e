"""The whole world of the demo, minute by minute of event time, with its truth.

`World.step()` is a pure function of the plan and the state: a world restored from a snapshot yields
exactly what the one that was snapshotted would have yielded.
"""

from __future__ import annotations

from typing import Any

from barnabas.demo.contract import START_TIME_MS, Plan, Truth
from barnabas.demo.generators.charging import (
    EVENTS_PER_STATION_MINUTE,
    ChargingSimulation,
    station_table,
)
from barnabas.demo.generators.delivery import Delivery, DeliverySimulation
from barnabas.demo.generators.retail import EVENTS_PER_SESSION, RetailSimulation
from barnabas.demo.topics import MINUTE_MS, Station
from barnabas.demo.truth import TruthLedger

_STATIONS_MIN = 6
_EVOLVES_AFTER_SECONDS = 60
"""Of wall time, in a run that has no end to be in the middle of."""
_SIMULATED_EVENTS_MAX = 100_000


class World:
    """Stations, users, the delivery of their events, and the ledger of the truth."""

    __slots__ = ("_charging", "_delivery", "_evolves", "_ledger", "_retail", "minutes", "plan")

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        # Half of the events come from the stations, half from the shop.
        per_minute = plan["rate"] * 60 / plan["acceleration"] / 2
        stations = max(_STATIONS_MIN, round(per_minute / EVENTS_PER_STATION_MINUTE))
        self.minutes = 0
        whole = minutes_planned(plan)
        self._evolves = (
            _EVOLVES_AFTER_SECONDS * plan["acceleration"] // 60 if whole is None else whole // 2
        )
        self._charging = ChargingSimulation(plan["seed"], stations)
        self._retail = RetailSimulation(plan["seed"], per_minute / EVENTS_PER_SESSION)
        self._delivery = DeliverySimulation(plan["seed"])
        self._ledger = TruthLedger(self._charging.stations)

    @property
    def stations(self) -> list[Station]:
        """The station table as it is now."""
        return station_table(len(self._charging.stations), self.minutes)

    @property
    def minutes_planned(self) -> int | None:
        """Minutes of event time in the plan, None where it has no end."""
        return minutes_planned(self.plan)

    @property
    def time_ms(self) -> int:
        """Event time reached: the start of the next minute."""
        return START_TIME_MS + self.minutes * MINUTE_MS

    @property
    def evolves_ms(self) -> int:
        """The event time from which on stations report their temperature.

        It is in the middle of the plan that the world began with; one that goes on beyond its end
        keeps to it.
        """
        return START_TIME_MS + self._evolves * MINUTE_MS

    @property
    def has_evolved(self) -> bool:
        """True if the next minute is one in which stations report their temperature."""
        return self.minutes >= self._evolves

    @property
    def at_end(self) -> bool:
        """True if every minute of the plan has been simulated."""
        planned = self.minutes_planned
        return planned is not None and self.minutes >= planned

    @property
    def events(self) -> int:
        """Distinct events so far."""
        return sum(self._ledger.events.values())

    def step(self) -> list[Delivery]:
        """Simulate the next minute and return what arrives in it, in order of arrival.

        The last minute of the plan delivers everything that was held back.
        """
        minute_ms = self.time_ms
        happened = self._charging.step(minute_ms, self.has_evolved) + self._retail.step(minute_ms)
        for event in happened:
            self._ledger.count(event.topic, event.value)
        arrivals = self._delivery.step(minute_ms, happened)
        self.minutes += 1
        if self.at_end:
            arrivals += self.release_held()
        return arrivals

    def release_held(self) -> list[Delivery]:
        """Deliver what is held back now, so that nothing that happened is missing."""
        return self._delivery.release_all()

    def truth(self) -> Truth:
        """Return the truth of everything that has happened so far."""
        return {
            "plan": self.plan,
            "done": self.at_end,
            "event_time_ms": self.time_ms,
            "pending": self._delivery.pending,
            "events": dict(self._ledger.events),
            "duplicates": self._delivery.duplicates,
            "late": self._delivery.late,
            "figures": self._ledger.figures(),
        }

    def snapshot(self) -> dict[str, Any]:
        """Return the whole state as JSON can hold it; it does not change with the world."""
        return {
            "plan": dict(self.plan),
            "minutes": self.minutes,
            "evolves": self._evolves,
            "charging": self._charging.snapshot(),
            "retail": self._retail.snapshot(),
            "delivery": self._delivery.snapshot(),
            "ledger": self._ledger.snapshot(),
        }

    @classmethod
    def restore(cls, snapshot: dict[str, Any]) -> World:
        """Build the world that `snapshot` was taken of."""
        world = cls(snapshot["plan"])
        world.minutes = snapshot["minutes"]
        world._evolves = snapshot["evolves"]
        world._charging.restore(snapshot["charging"])
        world._retail.restore(snapshot["retail"])
        world._delivery.restore(snapshot["delivery"])
        world._ledger.restore(snapshot["ledger"])
        return world


def events_planned(plan: Plan) -> int | None:
    """Return how many events a plan makes, None where it has no end.

    Exact for the plans of a demo, which are simulated to find out; of a long one, the mean.
    """
    if plan["seconds"] is None:
        return None
    if plan["seconds"] * plan["rate"] > _SIMULATED_EVENTS_MAX:
        return plan["seconds"] * plan["rate"]
    world = World(plan)
    while not world.at_end:
        world.step()
    return world.events


def minutes_planned(plan: Plan) -> int | None:
    """Return the minutes of event time that a plan spans (rounded up), None without an end."""
    if plan["seconds"] is None:
        return None
    return -(-plan["seconds"] * plan["acceleration"] // 60)
