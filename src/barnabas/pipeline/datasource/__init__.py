"""Spark data sources of ours, for plain PySpark: `register(spark)` makes them known."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def register(spark: SparkSession) -> None:
    """Make `format("barnabas")`, which writes exactly once, and `format("barnabas-share")` known.

    The second one reads topics as a member of a share group.
    """
    from barnabas.pipeline.datasource.share import register_share_source
    from barnabas.pipeline.datasource.sink import register_sink

    register_sink(spark)
    register_share_source(spark)
