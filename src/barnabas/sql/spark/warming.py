"""A streaming query over nothing, which leaves a session warm for the first statement.

The JVM has loaded and run then what a query needs (its Kafka source, RocksDB, the operators of
Python), and the workers are forked that it will use.
"""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # comes without types
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from barnabas.sql.spark.query import ROCKSDB
from barnabas.sql.spark.worker import SCHEMA

if TYPE_CHECKING:
    import pandas as pd  # type: ignore[import-untyped]  # comes without types

_WARM_SECONDS_MAX: Final = 60.0
"""The first statement waits no longer for it."""
_POLL_SECONDS: Final = 0.1
_CLASSES: Final = (
    "org.apache.spark.sql.kafka010.KafkaSourceProvider",
    "org.apache.kafka.clients.consumer.KafkaConsumer",
    "org.apache.kafka.clients.admin.KafkaAdminClient",
)


def warm(spark: SparkSession, is_closing: threading.Event) -> bool:
    """Run it to its first micro-batch, if nothing closes before. Returns whether it got there.

    Raises PySparkException, Py4JError, OSError.
    """
    session = spark.newSession()
    has_run = threading.Event()
    until = time.monotonic() + _WARM_SECONDS_MAX
    with tempfile.TemporaryDirectory(prefix="barnabas-warm-", ignore_cleanup_errors=True) as place:
        _load_classes(session)
        stream = _start(session, place, has_run)
        try:
            while not has_run.wait(_POLL_SECONDS):
                if is_closing.is_set() or time.monotonic() > until:
                    return False
                if not stream.isActive:
                    raise stream.exception() or PySparkException("the query over nothing ended")
            return True
        finally:
            with suppress(PySparkException, Py4JError, OSError):
                stream.stop()


def _load_classes(session: SparkSession) -> None:
    jvm: Any = session.sparkContext._jvm
    loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    for name in _CLASSES:
        with suppress(Py4JError):  # a session without Kafka's connector
            loader.loadClass(name)


def _start(session: SparkSession, place: str, has_run: threading.Event) -> Any:
    tasks = session.sparkContext.defaultParallelism
    for name, value in {
        "spark.sql.shuffle.partitions": str(tasks),
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.streaming.stateStore.providerClass": ROCKSDB,
        "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    }.items():
        session.conf.set(name, value)

    def take(frame: DataFrame, _batch_id: int) -> None:
        frame.collect()
        has_run.set()

    rows = (
        session.readStream.format("rate-micro-batch")
        .option("rowsPerBatch", str(tasks))
        .option("numPartitions", str(tasks))
        .load()
    )
    return (
        rows.mapInArrow(_label, SCHEMA)
        .groupBy("label")
        .transformWithStateInPandas(_Idle(), SCHEMA, "Append", "None")
        .writeStream.foreachBatch(take)
        .outputMode("append")
        .option("checkpointLocation", place)
        # Once is enough: it is stopped before the second.
        .trigger(processingTime="1 hour")
        .start()
    )


def _label(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        labels = pa.array(range(batch.num_rows), pa.int32())
        parcels = pa.array([b""] * batch.num_rows, pa.binary())
        yield pa.RecordBatch.from_arrays([labels, parcels], ["label", "parcel"])


class _Idle(StatefulProcessor):
    """Keeps nothing."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._state = handle.getValueState("nothing", "value binary")

    def handleInputRows(  # noqa: N802  Spark's name
        self,
        key: Any,
        rows: Iterator[pd.DataFrame],
        timerValues: Any,  # noqa: N803  Spark's name
    ) -> Iterator[pd.DataFrame]:
        yield from rows

    def close(self) -> None:
        pass
