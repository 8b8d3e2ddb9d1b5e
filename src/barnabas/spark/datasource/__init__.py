"""Spark data sources for plain PySpark; `register(spark)` registers them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def register(spark: SparkSession) -> None:
    """Make `format("barnabas")`, which writes exactly once, and `format("barnabas-share")` known.

    The second one reads topics as a member of a share group. Spark looks such names up in the
    session that is active in the calling thread, which a thread of your own does not have: there
    this sets it. Call it in each thread that starts queries.
    """
    from barnabas.spark.datasource.share import register_share_source
    from barnabas.spark.datasource.sink import register_sink

    register_sink(spark)
    register_share_source(spark)
    _make_active(spark)


def _make_active(spark: SparkSession) -> None:
    from pyspark.sql.utils import is_remote

    if not is_remote():  # Spark Connect's server does that itself
        jvm = spark.sparkContext._jvm
        assert jvm is not None
        jvm.org.apache.spark.sql.SparkSession.setActiveSession(spark._jsparkSession)
