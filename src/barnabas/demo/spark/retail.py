"""The shop's story: activity, conversion, searches, and what is bought together."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from barnabas.demo.spark.events import each_once, window_bounds, window_of
from barnabas.demo.topics import (
    ACTIVITY_KINDS,
    MINUTE_MS,
    RECOMMENDATIONS_COUNT_MAX,
    TOP_SEARCHES_COUNT_MAX,
)
from barnabas.pipeline.sink import Rows


def activity_minutes(activity: DataFrame) -> DataFrame:
    """Return one row per minute: how many of each kind, sessions opened, purchases, revenue.

    One aggregation serves two topics: `activity_counts` and `conversion` split it.
    """
    kind = f.col("kind")
    return (
        each_once(activity)
        .groupBy(window_of(MINUTE_MS))
        .agg(
            *(f.count_if(kind == name).alias(name) for name in ACTIVITY_KINDS),
            f.count_if(f.col("sequence") == 0).alias("sessions"),
            f.sum("amount_cents").alias("revenue_cents"),
        )
        .select(*window_bounds(), *ACTIVITY_KINDS, "sessions", "revenue_cents")
    )


def activity_counts(minutes: Rows) -> Rows:
    """Return rows of `activity-counts` from `activity_minutes`; kinds without an event are out."""
    return [
        {
            "kind": kind,
            "events": minute[kind],
            "window_start_ms": minute["window_start_ms"],
            "window_end_ms": minute["window_end_ms"],
        }
        for minute in minutes
        for kind in ACTIVITY_KINDS
        if minute[kind]
    ]


def conversion(minutes: Rows) -> Rows:
    """Return rows of `conversion` from `activity_minutes`."""
    return [
        {
            "window_start_ms": minute["window_start_ms"],
            "window_end_ms": minute["window_end_ms"],
            "sessions": minute["sessions"],
            "purchases": minute["purchase"],
            "revenue_cents": minute["revenue_cents"],
        }
        for minute in minutes
    ]


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
