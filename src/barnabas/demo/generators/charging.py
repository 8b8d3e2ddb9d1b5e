"""The charging stations: a pure simulation, one event minute per step.

A station is available, charging, faulted or offline. Cars arrive as the daily curve says, charge
with a reading a minute until they have what they came for, and now and then something breaks. A
station reports its state at each change and every five minutes.

A step depends on (seed, minute, state) only, so a run continued from a stored state is the same
run.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from random import Random
from typing import Any, Final

from barnabas.demo.contract import START_TIME_MS
from barnabas.demo.generators.curves import CHARGING_CURVE
from barnabas.demo.generators.events import Event
from barnabas.demo.topics import (
    CHARGING_EVENTS,
    MINUTE_MS,
    STATION_STATUS,
    ChargingEvent,
    Station,
    StationStatus,
)

_CITIES: Final = ("Aarhus", "Bergen", "Ghent", "Leipzig", "Lyon", "Turin")
_PLACES: Final = ("Harbour", "Station", "Market", "Stadium", "Airport", "Campus", "Museum", "Mill")
_POWERS_W: Final = (11_000, 22_000, 50_000, 150_000)
_FAULT_CODES: Final = ("overheat", "connector", "ground", "communication")

_ARRIVALS_PER_MINUTE: Final = 0.030
_FAULTS_PER_MINUTE: Final = 0.002
_OUTAGES_PER_MINUTE: Final = 0.0004
_REPORT_EVERY_MINUTES: Final = 5
_DAY_MS: Final = 24 * 60 * MINUTE_MS
FIRMWARE_EVERY_MINUTES: Final = 10

EVENTS_PER_STATION_MINUTE: Final = 0.68
"""Measured mean over a simulated day; the plan derives the number of stations from it."""


@dataclass(slots=True)
class StationState:
    """A station's state from minute to minute."""

    state: str = "available"
    until_ms: int = 0
    """End of a fault or an outage."""
    sequence: int = 0
    charges: int = 0
    left_wh: int = 0
    """The energy that the charging car still needs."""


def station_table(count: int, minutes: int = 0) -> list[Station]:
    """Return the station table: `count` stations, spread over the cities.

    After so many minutes some of them have a newer firmware: one gets it every ten minutes.
    """
    return [
        {
            "station_id": f"st-{index:04d}",
            "name": f"{city} {_PLACES[index // len(_CITIES) % len(_PLACES)]}"
            + (f" {index // 48 + 1}" if index >= 48 else ""),
            "city": city,
            "power_w": _POWERS_W[(index * 7 + index // len(_CITIES)) % len(_POWERS_W)],
            "since_ms": START_TIME_MS - (30 + index) * _DAY_MS,
            "firmware": f"1.{(minutes // FIRMWARE_EVERY_MINUTES + count - 1 - index) // count}",
        }
        for index, city in ((i, _CITIES[i % len(_CITIES)]) for i in range(count))
    ]


class ChargingSimulation:
    """All stations. `step` yields the events of one minute, in order of event time."""

    __slots__ = ("_seed", "states", "stations")

    def __init__(self, seed: int, count: int) -> None:
        self._seed = seed
        self.stations = station_table(count)
        self.states = [StationState() for _ in range(count)]

    def snapshot(self) -> list[dict[str, Any]]:
        """Return the state as JSON can hold it."""
        return [asdict(state) for state in self.states]

    def restore(self, snapshot: list[dict[str, Any]]) -> None:
        """Go on from a snapshot."""
        self.states = [StationState(**state) for state in snapshot]

    def step(self, minute_ms: int, with_temperature: bool = False) -> list[Event]:
        """Simulate the minute that starts at `minute_ms` (epoch milliseconds, a whole minute).

        Stations report their temperature or do not know of it yet.
        """
        rng = Random(f"{self._seed}:charging:{minute_ms}")
        arrivals = _ARRIVALS_PER_MINUTE * CHARGING_CURVE.at(minute_ms)
        minute = minute_ms // MINUTE_MS
        events: list[Event] = []
        for index, (station, state) in enumerate(zip(self.stations, self.states, strict=True)):
            temperature_c = _temperature_c(index, minute) if with_temperature else None
            turn = _StationMinute(station, state, events, temperature_c)
            if state.sequence == 0 or (minute + index) % _REPORT_EVERY_MINUTES == 0:
                turn.report(minute_ms + rng.randrange(0, 5_000))
            if state.state == "charging":
                self._charge(turn, minute_ms, rng)
            elif state.state != "available":
                if minute_ms >= state.until_ms:
                    turn.change("available", minute_ms + rng.randrange(10_000, 20_000))
            elif rng.random() < _OUTAGES_PER_MINUTE:
                state.until_ms = minute_ms + rng.randrange(10, 40) * MINUTE_MS
                turn.change("offline", minute_ms + rng.randrange(20_000, 50_000))
            elif rng.random() < arrivals:
                state.charges += 1
                state.left_wh = min(rng.randrange(2_000, 45_000), station["power_w"])
                at_ms = minute_ms + rng.randrange(20_000, 50_000)
                turn.charging("start", at_ms, 0)
                turn.change("charging", at_ms + rng.randrange(200, 900))
        events.sort(key=_event_order)
        return events

    def _charge(self, turn: _StationMinute, minute_ms: int, rng: Random) -> None:
        state, station = turn.state, turn.station
        full_minute_wh = station["power_w"] // 60
        reading_wh = min(state.left_wh, full_minute_wh * rng.randrange(78, 100) // 100)
        turn.charging("meter", minute_ms + rng.randrange(10_000, 25_000), reading_wh)
        state.left_wh -= reading_wh
        at_ms = minute_ms + rng.randrange(30_000, 58_000)
        last_wh = min(state.left_wh, full_minute_wh * rng.randrange(10, 50) // 100)
        if rng.random() < _FAULTS_PER_MINUTE:
            state.until_ms = minute_ms + rng.randrange(15, 60) * MINUTE_MS
            turn.charging("fault", at_ms, 0, fault_code=rng.choice(_FAULT_CODES))
            turn.change("faulted", at_ms + rng.randrange(200, 900))
        elif state.left_wh <= last_wh:
            turn.charging("stop", at_ms, last_wh)
            turn.change("available", at_ms + rng.randrange(200, 900))


@dataclass(slots=True)
class _StationMinute:
    """One station's events of one minute."""

    station: Station
    state: StationState
    events: list[Event]
    temperature_c: int | None
    """None where reports do not have it."""

    def change(self, to_state: str, at_ms: int) -> None:
        self.state.state = to_state
        self.report(at_ms)

    def report(self, at_ms: int) -> None:
        station_id = self.station["station_id"]
        self.state.sequence += 1
        value: StationStatus = {
            "event_id": f"{station_id}-r{self.state.sequence}",
            "station_id": station_id,
            "sequence": self.state.sequence,
            "event_time_ms": at_ms,
            "state": self.state.state,
        }
        if self.temperature_c is not None:
            value["temperature_c"] = self.temperature_c + 12 * (self.state.state == "charging")
        self.events.append(Event(STATION_STATUS, station_id, at_ms, dict(value)))

    def charging(
        self, kind: str, at_ms: int, energy_wh: int, fault_code: str | None = None
    ) -> None:
        station_id = self.station["station_id"]
        charge_id = f"{station_id}-c{self.state.charges}"
        value: ChargingEvent = {
            # Of a kind a charge has one event per minute at most.
            "event_id": f"{charge_id}-{kind}-{at_ms // MINUTE_MS}",
            "station_id": station_id,
            "charge_id": charge_id,
            "event_time_ms": at_ms,
            "kind": kind,
            "energy_wh": energy_wh,
            "fault_code": fault_code,
        }
        self.events.append(Event(CHARGING_EVENTS, station_id, at_ms, dict(value)))


def _temperature_c(index: int, minute: int) -> int:
    """Return what it is in an idle station's cabinet: warmest at noon, and none like another."""
    hour = minute // 60 % 24
    return 22 - abs(hour - 12) + index * 7 % 5


def _event_order(event: Event) -> tuple[int, str]:
    return event.event_time_ms, event.value["event_id"]
