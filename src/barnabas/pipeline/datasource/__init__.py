"""Spark data sources of ours, for plain PySpark: `register(spark)` makes them known."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def register(spark: SparkSession) -> None:
    """Make `format("barnabas")`, the sink that writes exactly once, known to a session."""
    from barnabas.pipeline.datasource.sink import register_sink

    register_sink(spark)
