"""The truth: every figure of the dashboard, counted as the events happen.

It shares no code with the pipeline, sees each event once, before any is delayed or doubled, and
knows nothing of windows that are open or closed: what it says is what must come out.
"""

from __future__ import annotations

from collections import Counter
from itertools import combinations
from typing import Any

from barnabas.demo.contract import CityAvailability, Figures
from barnabas.demo.topics import (
    ACTIVITY_KINDS,
    CHARGING_EVENTS,
    INPUT_TOPICS,
    MINUTE_MS,
    RECOMMENDATIONS_COUNT_MAX,
    STATION_STATES,
    STATION_STATUS,
    TOP_SEARCHES_COUNT_MAX,
    ItemCount,
    Station,
)

_CHARGE_TOTALS = {
    "meter": "readings",
    "start": "charges_started",
    "stop": "charges_stopped",
    "fault": "faults",
}


class TruthLedger:
    """Running counts of everything that the dashboard shows."""

    __slots__ = (
        "_activity",
        "_activity_per_minute",
        "_available",
        "_charging",
        "_cities",
        "_conversion",
        "_energy_per_city",
        "_energy_per_minute",
        "_pairs",
        "_reports",
        "_searches",
        "_state",
        "events",
    )

    def __init__(self, stations: list[Station]) -> None:
        self._cities = {station["station_id"]: station["city"] for station in stations}
        self.events: Counter[str] = Counter(dict.fromkeys(INPUT_TOPICS, 0))
        self._state: dict[str, list[Any]] = {}
        """By station: [event time, sequence, state] of its latest report."""
        self._reports: Counter[str] = Counter()
        self._available: Counter[str] = Counter()
        self._charging: Counter[str] = Counter()
        self._energy_per_city: Counter[str] = Counter()
        self._energy_per_minute: Counter[str] = Counter()
        self._activity: Counter[str] = Counter()
        self._activity_per_minute: Counter[str] = Counter()
        self._conversion: Counter[str] = Counter()
        self._searches: Counter[str] = Counter()
        self._pairs: Counter[str] = Counter()
        """By 'item|other', both in ascending order: purchases that hold both."""

    def count(self, topic: str, event: dict[str, Any]) -> None:
        """Count one event of an input topic."""
        self.events[topic] += 1
        if topic == STATION_STATUS:
            self._count_status(event)
        elif topic == CHARGING_EVENTS:
            self._count_charging(event)
        else:
            self._count_activity(event)

    def _count_status(self, event: dict[str, Any]) -> None:
        station_id = event["station_id"]
        report = [event["event_time_ms"], event["sequence"], event["state"]]
        if station_id not in self._state or report[:2] > self._state[station_id][:2]:
            self._state[station_id] = report
        self._reports[self._cities[station_id]] += 1
        self._available[self._cities[station_id]] += event["state"] == "available"

    def _count_charging(self, event: dict[str, Any]) -> None:
        self._charging[_CHARGE_TOTALS[event["kind"]]] += 1
        self._charging["energy_wh"] += event["energy_wh"]
        if event["energy_wh"]:
            self._energy_per_city[self._cities[event["station_id"]]] += event["energy_wh"]
            self._energy_per_minute[_minute(event)] += event["energy_wh"]

    def _count_activity(self, event: dict[str, Any]) -> None:
        self._activity[event["kind"]] += 1
        self._activity_per_minute[_minute(event)] += 1
        self._conversion["sessions"] += event["sequence"] == 0
        if event["kind"] == "search":
            self._searches[event["query"]] += 1
        elif event["kind"] == "purchase":
            self._conversion["purchases"] += 1
            self._conversion["revenue_cents"] += event["amount_cents"]
            for item, other in combinations(sorted(event["items"]), 2):
                self._pairs[f"{item}|{other}"] += 1

    def figures(self) -> Figures:
        """Return every figure."""
        states = dict.fromkeys(STATION_STATES, 0)
        for _, _, state in self._state.values():
            states[state] += 1
        availability: dict[str, CityAvailability] = {
            city: {"reports": reports, "available_reports": self._available[city]}
            for city, reports in sorted(self._reports.items())
        }
        return {
            "stations_by_state": states,
            "availability_by_city": availability,
            "charging": {
                "energy_wh": self._charging["energy_wh"],
                "readings": self._charging["readings"],
                "charges_started": self._charging["charges_started"],
                "charges_stopped": self._charging["charges_stopped"],
                "faults": self._charging["faults"],
            },
            "energy_wh_by_city": dict(sorted(self._energy_per_city.items())),
            "energy_wh_per_minute": dict(sorted(self._energy_per_minute.items())),
            "activity": {kind: self._activity[kind] for kind in ACTIVITY_KINDS},
            "activity_per_minute": dict(sorted(self._activity_per_minute.items())),
            "conversion": {
                "sessions": self._conversion["sessions"],
                "purchases": self._conversion["purchases"],
                "revenue_cents": self._conversion["revenue_cents"],
            },
            "top_searches": [
                {"query": query, "count": count}
                for query, count in _ranked(self._searches, TOP_SEARCHES_COUNT_MAX)
            ],
            "recommendations": self._recommendations(),
        }

    def _recommendations(self) -> dict[str, list[ItemCount]]:
        together: dict[str, Counter[str]] = {}
        for pair, count in self._pairs.items():
            item, other = pair.split("|")
            together.setdefault(item, Counter())[other] = count
            together.setdefault(other, Counter())[item] = count
        return {
            item: [
                {"item_id": other, "count": count}
                for other, count in _ranked(others, RECOMMENDATIONS_COUNT_MAX)
            ]
            for item, others in sorted(together.items())
        }

    def snapshot(self) -> dict[str, Any]:
        """Return the counts as JSON can hold them."""
        return {name: dict(getattr(self, name)) for name in self.__slots__ if name != "_cities"}

    def restore(self, snapshot: dict[str, Any]) -> None:
        """Go on from a snapshot."""
        for name, counts in snapshot.items():
            setattr(self, name, dict(counts) if name == "_state" else Counter(counts))


def _minute(event: dict[str, Any]) -> str:
    return str(event["event_time_ms"] // MINUTE_MS * MINUTE_MS)


def _ranked(counts: Counter[str], count_max: int) -> list[tuple[str, int]]:
    return sorted(counts.items(), key=lambda entry: (-entry[1], entry[0]))[:count_max]
