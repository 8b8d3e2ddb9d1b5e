"""First steps of both stories: a watermark, and each event once."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from barnabas.demo.topics import WATERMARK_DELAY_MS


def each_once(events: DataFrame) -> DataFrame:
    """Drop the copies of an event (same `event_id`, same event time), wherever they come.

    On a stream an id is remembered until the watermark has passed its event time by the delay. A
    copy carries its event's time, so one that comes after that is behind the watermark itself and
    dropped as late: no copy is ever counted, however late it is.
    """
    if not events.isStreaming:
        return events.dropDuplicates(["event_id"])
    return events.withWatermark(
        "event_time", f"{WATERMARK_DELAY_MS} milliseconds"
    ).dropDuplicatesWithinWatermark(["event_id"])


def window_of(size_ms: int) -> Column:
    """Return the tumbling window of `event_time`."""
    return f.window("event_time", f"{size_ms} milliseconds")


def window_bounds() -> tuple[Column, Column]:
    """Return `window_start_ms` and `window_end_ms` of a column `window`."""
    return (
        f.unix_millis("window.start").alias("window_start_ms"),
        f.unix_millis("window.end").alias("window_end_ms"),
    )
