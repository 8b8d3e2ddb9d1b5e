"""Interests of the shop's users: searches, and products bought together, ranked.

SQL lacks two things that this needs: each event once, over all time, and an order among all rows
of a result.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from barnabas.demo.topics import (
    RECOMMENDATIONS_COUNT_MAX,
    TOP_SEARCHES_COUNT_MAX,
    WATERMARK_DELAY_MS,
)
from barnabas.spark.sink import Rows


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


def interest_totals(activity: DataFrame) -> DataFrame:
    """Count searches by their words, and purchases by each ordered pair of their items.

    Rows (`item_id`, `other`, `count`): a search has its query in `other` and no `item_id`. Over all
    time, so for Spark's complete mode: bounded by the words and the catalogue, not by the events.
    """
    items = f.array_distinct("items")
    pairs = f.flatten(
        f.transform(
            items,
            lambda item: f.transform(
                f.filter(items, lambda other: other != item),
                lambda other: f.struct(item.alias("item_id"), other.alias("other")),
            ),
        )
    )
    words = f.struct(f.lit(None).cast("string").alias("item_id"), f.col("query").alias("other"))
    interests = f.when(f.col("kind") == "search", f.array(words)).when(
        f.col("kind") == "purchase", pairs
    )
    return (
        each_once(activity)
        .select(f.explode(interests).alias("interest"))
        .groupBy("interest.item_id", "interest.other")
        .agg(f.count("*").alias("count"))
    )


def top_searches(totals: Rows) -> Rows:
    """Return the one row of `top-searches` from all of `interest_totals`, if there is a search."""
    searches = [total for total in totals if total["item_id"] is None]
    ranking = _ranking(searches, "query", TOP_SEARCHES_COUNT_MAX)
    return [{"searches": ranking}] if ranking else []


def recommendations(totals: Rows) -> Rows:
    """Return rows of `recommendations` from all of `interest_totals`."""
    pairs: dict[str, Rows] = {}
    for total in totals:
        if total["item_id"] is not None:
            pairs.setdefault(total["item_id"], []).append(total)
    return [
        {"item_id": item_id, "together": _ranking(of, "item_id", RECOMMENDATIONS_COUNT_MAX)}
        for item_id, of in pairs.items()
    ]


def _ranking(totals: Rows, name: str, count_max: int) -> Rows:
    """The `count_max` greatest, by count descending, then name ascending."""
    ranked = sorted(totals, key=lambda total: (-total["count"], total["other"]))[:count_max]
    return [{name: total["other"], "count": total["count"]} for total in ranked]
