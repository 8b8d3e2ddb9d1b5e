"""Settings of Spark's that the queries of pipelines start with, whatever the session has."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SETTINGS: Final = {
    # Timers and joins with tables need it.
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    # A window ends when the watermark passes it, and not only with the next record.
    "spark.sql.streaming.noDataMicroBatches.enabled": "true",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.session.timeZone": "UTC",
}
_lock = threading.Lock()


@contextmanager
def query_settings(
    spark: SparkSession, more: Mapping[str, str] = MappingProxyType({})
) -> Iterator[None]:
    """Set them while queries start: each query copies its session's settings then."""
    settings = {**SETTINGS, **more}
    with _lock:
        before = {name: spark.conf.get(name, None) for name in settings}
        try:
            for name, value in settings.items():
                spark.conf.set(name, value)
            yield
        finally:
            for name, old in before.items():
                if old is None:
                    spark.conf.unset(name)
                else:
                    spark.conf.set(name, old)
