"""The charging stations' story: availability and energy, joined to the station table."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from barnabas.demo.spark.events import each_once, window_bounds, window_of
from barnabas.demo.topics import AVAILABILITY_WINDOW_MS, MINUTE_MS


def station_availability(status: DataFrame, stations: DataFrame) -> DataFrame:
    """Return rows of `station-availability` from events of `station-status`."""
    state = f.struct("event_time_ms", "sequence", "state")
    windows = (
        each_once(status)
        .join(f.broadcast(stations), "station_id")
        .groupBy(window_of(AVAILABILITY_WINDOW_MS), "station_id", "name", "city")
        .agg(
            f.max(state).alias("latest"),
            f.count("*").alias("reports"),
            f.count_if(f.col("state") == "available").alias("available_reports"),
        )
    )
    return windows.select(
        "station_id",
        "name",
        "city",
        *window_bounds(),
        f.col("latest.state").alias("state"),
        f.col("latest.event_time_ms").alias("state_time_ms"),
        f.col("latest.sequence").alias("state_sequence"),
        "reports",
        "available_reports",
    )


def energy_per_minute(events: DataFrame, stations: DataFrame) -> DataFrame:
    """Return rows of `energy-per-minute` from events of `charging-events`."""
    kind = f.col("kind")
    windows = (
        each_once(events)
        .join(f.broadcast(stations.select("station_id", "city")), "station_id")
        .groupBy(window_of(MINUTE_MS), "city")
        .agg(
            f.sum("energy_wh").alias("energy_wh"),
            f.count_if(kind == "meter").alias("readings"),
            f.count_if(kind == "start").alias("charges_started"),
            f.count_if(kind == "stop").alias("charges_stopped"),
            f.count_if(kind == "fault").alias("faults"),
        )
    )
    return windows.select(
        "city",
        *window_bounds(),
        "energy_wh",
        "readings",
        "charges_started",
        "charges_stopped",
        "faults",
    )
