"""The streaming queries of the two stories, as data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from barnabas.demo import topics
from barnabas.demo.spark import charging, retail
from barnabas.demo.spark.schemas import ACTIVITY_SCHEMA, CHARGING_SCHEMA, STATION_STATUS_SCHEMA
from barnabas.pipeline.sink import Output


@dataclass(slots=True, frozen=True)
class StoryQuery:
    """One streaming query: a topic, what it becomes, and where that goes.

    `transform` takes the events and the station table. `output_mode` is Spark's: `update` emits
    what changed, so no figure waits for the watermark; `complete` all there is, for rankings.
    """

    name: str
    group: str
    topic: str
    schema: StructType
    transform: Callable[[DataFrame, DataFrame], DataFrame]
    output_mode: str
    outputs: tuple[Output, ...]


def _same(rows: DataFrame) -> DataFrame:
    return rows


STORY_QUERIES = (
    StoryQuery(
        name="station-availability",
        group=topics.GROUP_STATIONS,
        topic=topics.STATION_STATUS,
        schema=STATION_STATUS_SCHEMA,
        transform=charging.station_availability,
        output_mode="update",
        outputs=(
            Output(
                topics.STATION_AVAILABILITY,
                _same,
                "concat(station_id, '@', window_start_ms)",
                ("station_id", "window_start_ms"),
            ),
        ),
    ),
    StoryQuery(
        name="energy-per-minute",
        group=topics.GROUP_CHARGING,
        topic=topics.CHARGING_EVENTS,
        schema=CHARGING_SCHEMA,
        transform=charging.energy_per_minute,
        output_mode="update",
        outputs=(
            Output(
                topics.ENERGY_PER_MINUTE,
                _same,
                "concat(city, '@', window_start_ms)",
                ("city", "window_start_ms"),
            ),
        ),
    ),
    StoryQuery(
        name="activity-minutes",
        group=topics.GROUP_RETAIL,
        topic=topics.USER_ACTIVITY,
        schema=ACTIVITY_SCHEMA,
        transform=lambda events, _: retail.activity_minutes(events),
        output_mode="update",
        outputs=(
            Output(
                topics.ACTIVITY_COUNTS,
                retail.activity_counts,
                "concat(kind, '@', window_start_ms)",
                ("kind", "window_start_ms"),
            ),
            Output(topics.CONVERSION, retail.conversion, "window_start_ms", ("window_start_ms",)),
        ),
    ),
    StoryQuery(
        name="interest-totals",
        group=topics.GROUP_RETAIL,
        topic=topics.USER_ACTIVITY,
        schema=ACTIVITY_SCHEMA,
        transform=lambda events, _: retail.interest_totals(events),
        output_mode="complete",
        outputs=(
            Output(topics.TOP_SEARCHES, retail.top_searches, f"'{topics.TOP_SEARCHES_KEY}'", ()),
            Output(topics.RECOMMENDATIONS, retail.recommendations, "item_id", ("item_id",)),
        ),
    ),
)
