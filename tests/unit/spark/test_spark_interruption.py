"""Stopping a query in the middle of a micro-batch, which its function of `foreachBatch` runs."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]  # comes without types
from pyspark.sql import DataFrame, SparkSession

from barnabas.spark.interruption import interruptible
from support.node_process import wait_until
from support.patience import PATIENCE_S


def endless(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """For a worker, which Spark ends with its task."""
    for batch in batches:
        time.sleep(PATIENCE_S)
        yield batch


def test_a_query_that_is_stopped_in_a_micro_batch_ends_without_a_word(
    spark: SparkSession, tmp_path: Path
) -> None:
    directory = spark.sparkContext.getConf().get("spark.local.dir")
    assert directory is not None
    printed = Path(directory) / "spark.log"
    before = printed.stat().st_size
    entered = threading.Event()
    raised: list[BaseException] = []

    def take(frame: DataFrame, _batch_id: int) -> None:
        entered.set()
        frame.collect()

    def watched(frame: DataFrame, batch_id: int) -> None:
        try:
            interruptible(take)(frame, batch_id)
        except Exception as error:
            raised.append(error)
            raise

    query = (
        spark.readStream.format("rate-micro-batch")
        .option("rowsPerBatch", "1")
        .load()
        .select("value")
        .mapInArrow(endless, "value long")
        .writeStream.foreachBatch(watched)
        .option("checkpointLocation", str(tmp_path))
        .start()
    )
    assert entered.wait(PATIENCE_S)
    # Its job runs: what is interrupted before has another error.
    jobs = spark.sparkContext.statusTracker()
    wait_until(lambda: bool(jobs.getActiveStageIds()), "the job of the micro-batch")
    query.stop()
    assert [type(error).__name__ for error in raised] == ["BatchInterruptedError"]
    assert query.exception() is None
    assert b"StackOverflowError" not in printed.read_bytes()[before:]


class JavaError(Py4JJavaError):  # type: ignore[misc]  # it has no types
    """One without a JVM."""

    def __init__(self, name: str) -> None:
        self.name = name
        Exception.__init__(self, name)
        self.java_exception = self

    def getClass(self) -> Any:  # noqa: N802  Java's name
        return self

    def getName(self) -> str:  # noqa: N802  Java's name
        return self.name

    def __str__(self) -> str:
        return self.name


def test_what_else_a_function_fails_of_is_raised_as_it_is() -> None:
    for error in (JavaError("java.lang.OutOfMemoryError"), ValueError("a bad row")):

        def fail(_frame: Any, _batch_id: int, error: Exception = error) -> None:
            raise error

        frame: Any = None
        with pytest.raises(type(error)) as raised:
            interruptible(fail)(frame, 0)
        assert raised.value is error
