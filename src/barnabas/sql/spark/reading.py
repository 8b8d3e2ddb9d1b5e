"""How a query's topics are read: by its workers as columns, or by Spark's source as records.

`why_spark_reads` decides. Workers get ranges of offsets (`barnabas.spark.kafka_ranges`), fetch the
batches over connections of our own, and make Arrow arrays of them. At the same offsets both give
the same records, and both leave the same checkpoint.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

from barnabas.base.errors import ConfigError
from barnabas.kafka.bearer_login import client_access
from barnabas.kafka.wire_reader import ReadError, WireReader
from barnabas.protocol.records.batch import CorruptBatchError
from barnabas.spark.batch_columns import columns_of_batches
from barnabas.spark.kafka_ranges import why_no_ranges
from barnabas.sql.columns.sources import RawColumns
from barnabas.sql.spark.options import SparkQueryOptions


@dataclass(frozen=True)
class RangeReading:
    """The access that workers read ranges with. Small: it is pickled with each task.

    `clients`: settings of librdkafka's.
    """

    bootstrap_servers: str
    clients: tuple[tuple[str, Any], ...] = field(default=(), repr=False)
    is_committed_only: bool = False


_readers: dict[RangeReading, WireReader] = {}


def read_ranges(reading: RangeReading, ranges: pa.RecordBatch) -> Iterator[RawColumns]:
    """The records of rows of topic, partition, first offset, and the offset behind the last.

    Tasks of one worker process run one after the other and share its connections. Raises ReadError.
    """
    reader = _readers.get(reading)
    if reader is None:
        settings = {**dict(reading.clients), "bootstrap.servers": reading.bootstrap_servers}
        reader = WireReader(settings, is_committed_only=reading.is_committed_only)
        _readers[reading] = reader
    for topic, partition, first, until in zip(
        *(column.to_pylist() for column in ranges.columns), strict=True
    ):
        try:
            for fetched in reader.read(topic, partition, first, until):
                for one in columns_of_batches(
                    fetched.batches, fetched.first, until, fetched.aborted
                ):
                    if len(one):
                        yield RawColumns(
                            partition,
                            one.offsets,
                            one.timestamps,
                            one.keys,
                            one.values,
                            one.headers,
                        )
        except CorruptBatchError as error:
            raise ReadError(f"cannot read {topic}-{partition}: {error}") from error


def why_spark_reads(options: SparkQueryOptions, spark: SparkSession | None) -> str:
    """Why Spark's source reads a query's topics; empty if the workers do.

    Without a session it is not known whether Spark allows it.
    """
    if not options.reads_in_workers:
        return "workers.read is false"
    try:
        client_access({"bootstrap.servers": options.bootstrap_servers, **options.clients})
    except ConfigError as error:
        return f"workers do not support this login: {error}"
    return "" if spark is None else why_no_ranges(spark)
