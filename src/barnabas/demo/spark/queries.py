"""The streaming queries of the two stories, as data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pyspark.sql import DataFrame

from barnabas.demo import topics
from barnabas.demo.spark import charging, retail
from barnabas.pipeline.sink import Output, Rows


@dataclass(slots=True, frozen=True)
class StoryOutput:
    """One topic and table that a query feeds. `row` is the TypedDict of its rows.

    `key_columns` make the record's key, joined by `@`; none for a table of one row, whose key is
    `key`.
    """

    topic: str
    row: type
    key_columns: tuple[str, ...]
    rows: Callable[[Rows], Rows] = list
    key: str = ""

    @property
    def table(self) -> str:
        """The warehouse table's name."""
        return self.topic.replace("-", "_")

    def as_output(self) -> Output:
        """Return what the sink needs."""
        if not self.key_columns:
            return Output(self.topic, self.rows, lambda _: self.key)
        return Output(
            self.topic, self.rows, lambda row: "@".join(str(row[name]) for name in self.key_columns)
        )


@dataclass(slots=True, frozen=True)
class StoryQuery:
    """One streaming query: a topic, what it becomes, and where that goes.

    `transform` takes the events and the station table. `output_mode` is Spark's: `update` emits
    what changed, so no figure waits for the watermark; `complete` all there is, for rankings.
    """

    name: str
    group: str
    topic: str
    transform: Callable[[DataFrame, DataFrame], DataFrame]
    output_mode: str
    outputs: tuple[StoryOutput, ...]
    joins_stations: bool = False


STORY_QUERIES = (
    StoryQuery(
        name="station-availability",
        group=topics.GROUP_STATIONS,
        topic=topics.STATION_STATUS,
        transform=charging.station_availability,
        output_mode="update",
        outputs=(
            StoryOutput(
                topics.STATION_AVAILABILITY,
                topics.StationAvailability,
                ("station_id", "window_start_ms"),
            ),
        ),
        joins_stations=True,
    ),
    StoryQuery(
        name="energy-per-minute",
        group=topics.GROUP_CHARGING,
        topic=topics.CHARGING_EVENTS,
        transform=charging.energy_per_minute,
        output_mode="update",
        outputs=(
            StoryOutput(
                topics.ENERGY_PER_MINUTE, topics.EnergyPerMinute, ("city", "window_start_ms")
            ),
        ),
        joins_stations=True,
    ),
    StoryQuery(
        name="activity-minutes",
        group=topics.GROUP_RETAIL,
        topic=topics.USER_ACTIVITY,
        transform=lambda events, _: retail.activity_minutes(events),
        output_mode="update",
        outputs=(
            StoryOutput(
                topics.ACTIVITY_COUNTS,
                topics.ActivityCounts,
                ("kind", "window_start_ms"),
                retail.activity_counts,
            ),
            StoryOutput(
                topics.CONVERSION, topics.Conversion, ("window_start_ms",), retail.conversion
            ),
        ),
    ),
    StoryQuery(
        name="interest-totals",
        group=topics.GROUP_RETAIL,
        topic=topics.USER_ACTIVITY,
        transform=lambda events, _: retail.interest_totals(events),
        output_mode="complete",
        outputs=(
            StoryOutput(
                topics.TOP_SEARCHES,
                topics.TopSearches,
                (),
                retail.top_searches,
                key=topics.TOP_SEARCHES_KEY,
            ),
            StoryOutput(
                topics.RECOMMENDATIONS,
                topics.Recommendations,
                ("item_id",),
                retail.recommendations,
            ),
        ),
    ),
)
