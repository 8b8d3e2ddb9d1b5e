"""The shop's story: activity, conversion, searches, and what is bought together."""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as f

from barnabas.demo.spark.events import each_once, window_bounds, window_of
from barnabas.demo.topics import (
    ACTIVITY_KINDS,
    MINUTE_MS,
    RECOMMENDATIONS_COUNT_MAX,
    TOP_SEARCHES_COUNT_MAX,
)


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


def activity_counts(minutes: DataFrame) -> DataFrame:
    """Return rows of `activity-counts` from `activity_minutes`; kinds without an event are out."""
    kinds = f.explode(
        f.create_map(*(part for kind in ACTIVITY_KINDS for part in (f.lit(kind), f.col(kind))))
    )
    return minutes.select(kinds.alias("kind", "events"), "window_start_ms", "window_end_ms").where(
        "events > 0"
    )


def conversion(minutes: DataFrame) -> DataFrame:
    """Return rows of `conversion` from `activity_minutes`."""
    return minutes.select(
        "window_start_ms",
        "window_end_ms",
        "sessions",
        f.col("purchase").alias("purchases"),
        "revenue_cents",
    )


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


def top_searches(totals: DataFrame) -> DataFrame:
    """Return the one row of `top-searches` from all of `interest_totals`."""
    searches = totals.where("item_id IS NULL")
    return _ranking(searches, "query", TOP_SEARCHES_COUNT_MAX).select(
        f.col("ranking").alias("searches")
    )


def recommendations(totals: DataFrame) -> DataFrame:
    """Return rows of `recommendations` from all of `interest_totals`."""
    pairs = totals.where("item_id IS NOT NULL")
    return _ranking(pairs, "item_id", RECOMMENDATIONS_COUNT_MAX).select(
        f.col("of").alias("item_id"), f.col("ranking").alias("together")
    )


def _ranking(totals: DataFrame, name: str, count_max: int) -> DataFrame:
    """By `item_id`: its `count_max` greatest, by count descending, then name ascending."""
    order = Window.partitionBy("of").orderBy(f.col("count").desc(), "other")
    entry = f.struct("place", f.col("other").alias(name), "count")
    return (
        totals.withColumnRenamed("item_id", "of")
        .withColumn("place", f.row_number().over(order))
        .where(f.col("place") <= count_max)
        .groupBy("of")
        .agg(f.sort_array(f.collect_list(entry)).alias("entries"))
        .select("of", f.transform("entries", lambda e: e.dropFields("place")).alias("ranking"))
    )
