"""Folding the pipeline's output topics into the figures that the dashboard shows."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from barnabas.demo.contract import CityAvailability, Figures
from barnabas.demo.topics import (
    ACTIVITY_KINDS,
    ACTIVITY_PER_MINUTE,
    ENERGY_PER_MINUTE,
    OUTPUT_TOPICS,
    RECOMMENDATIONS,
    STATION_AVAILABILITY,
    STATION_STATES,
    TOP_SEARCHES,
    TOP_SEARCHES_KEY,
)


class FigureBoard:
    """The latest value of each key of each output topic, and what they add up to."""

    __slots__ = ("rows",)

    def __init__(self) -> None:
        self.rows: dict[str, dict[bytes, Any]] = {topic: {} for topic in OUTPUT_TOPICS}

    def apply(self, topic: str, key: bytes, row: dict[str, Any]) -> None:
        """Upsert one row of an output topic, as `results.read_row` gives it.

        Raises KeyError for a topic that is not an output topic.
        """
        self.rows[topic][key] = row

    def station_rows(self) -> dict[str, dict[str, Any]]:
        """Return each station's newest row of `station-availability`, by station id."""
        newest: dict[str, dict[str, Any]] = {}
        for row in self.rows[STATION_AVAILABILITY].values():
            known = newest.get(row["station_id"])
            if known is None or _state_order(row) > _state_order(known):
                newest[row["station_id"]] = row
        return newest

    def figures(self) -> Figures:
        """Return every figure, in the shape and order in which the truth has them."""
        by_state = dict.fromkeys(STATION_STATES, 0)
        for row in self.station_rows().values():
            by_state[row["state"]] += 1
        availability: dict[str, CityAvailability] = {}
        for row in self.rows[STATION_AVAILABILITY].values():
            city = availability.setdefault(row["city"], {"reports": 0, "available_reports": 0})
            city["reports"] += row["reports"]
            city["available_reports"] += row["available_reports"]
        energy = list(self.rows[ENERGY_PER_MINUTE].values())
        activity = list(self.rows[ACTIVITY_PER_MINUTE].values())
        by_kind = _sums(activity, "kind", "events")
        searches = self.rows[TOP_SEARCHES].get(TOP_SEARCHES_KEY.encode(), {"searches": []})
        by_city = _sums(energy, "city", "energy_wh")
        return {
            "stations_by_state": by_state,
            "availability_by_city": dict(sorted(availability.items())),
            "charging": {
                "energy_wh": _sum(energy, "energy_wh"),
                "readings": _sum(energy, "readings"),
                "charges_started": _sum(energy, "charges_started"),
                "charges_stopped": _sum(energy, "charges_stopped"),
                "faults": _sum(energy, "faults"),
            },
            "energy_wh_by_city": {city: wh for city, wh in by_city.items() if wh},
            "energy_wh_per_minute": {
                minute: wh
                for minute, wh in _sums(energy, "window_start_ms", "energy_wh").items()
                if wh
            },
            "activity": {**dict.fromkeys(ACTIVITY_KINDS, 0), **by_kind},
            "activity_per_minute": _sums(activity, "window_start_ms", "events"),
            "conversion": {
                "sessions": _sum(activity, "sessions"),
                "purchases": by_kind.get("purchase", 0),
                "revenue_cents": _sum(activity, "revenue_cents"),
            },
            "top_searches": searches["searches"],
            "recommendations": {
                row["item_id"]: row["together"]
                for _, row in sorted(self.rows[RECOMMENDATIONS].items())
            },
        }


def _state_order(row: dict[str, Any]) -> tuple[int, int]:
    return row["state_time_ms"], row["state_sequence"]


def _sum(rows: list[dict[str, Any]], field: str) -> int:
    return sum(row[field] for row in rows)


def _sums(rows: list[dict[str, Any]], by: str, field: str) -> dict[str, int]:
    totals: dict[str, int] = defaultdict(int)
    for row in rows:
        totals[str(row[by])] += row[field]
    return dict(sorted(totals.items()))
