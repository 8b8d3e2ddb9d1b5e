"""Aggregates that count each event once, however many copies of it come.

A copy has its event's time, so it falls into the same window, whose state remembers the ids. When
the window is closed, the ids go with it, and a copy that comes after that is dropped as late.
"""

from __future__ import annotations

from typing import Any

from barnabas.sql.udf import udaf


@udaf(
    "(event_id STRING, counts BOOLEAN) -> BIGINT STATE ARRAY<STRING>",
    description="How many distinct events there are for which the condition holds.",
)
class count_once:  # noqa: N801 - the function's name
    """Its state: the ids of the events that count."""

    def initial(self) -> list[str]:
        return []

    def add(self, ids: list[str], event_id: str, counts: bool) -> list[str]:
        return [*ids, event_id] if counts and event_id not in ids else ids

    def merge(self, left: list[str], right: list[str]) -> list[str]:
        return list(dict.fromkeys((*left, *right)))

    def result(self, ids: list[str]) -> int:
        return len(ids)


@udaf(
    "(event_id STRING, value BIGINT) -> BIGINT STATE MAP<STRING, BIGINT>",
    description="The sum of a column over distinct events.",
)
class sum_once:  # noqa: N801 - the function's name
    """Its state: what each event adds, by its id."""

    def initial(self) -> dict[str, Any]:
        return {}

    def add(self, values: dict[str, int], event_id: str, value: int) -> dict[str, int]:
        return values if not value or event_id in values else {**values, event_id: value}

    def merge(self, left: dict[str, int], right: dict[str, int]) -> dict[str, int]:
        return {**left, **right}

    def result(self, values: dict[str, int]) -> int:
        return sum(values.values())
