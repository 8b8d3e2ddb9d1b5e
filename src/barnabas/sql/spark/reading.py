"""How a query's topics are read: by its workers as columns, or by Spark's source as records.

`why_spark_reads` decides. Workers get ranges of offsets (`barnabas.spark.kafka_ranges`), fetch the
batches over connections of our own, and make Arrow arrays of them. At the same offsets both give
the same records, and both leave the same checkpoint. An operator that has a partition for each of
its topics' gets the ranges themselves (`range_parcels`), and no worker runs before it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession

from barnabas.base.errors import ConfigError
from barnabas.kafka.bearer_login import client_access
from barnabas.kafka.wire_reader import Fetched, Place, ReadError, WireReader
from barnabas.protocol.records.batch import CorruptBatchError
from barnabas.spark.batch_columns import columns_of_batches
from barnabas.spark.kafka_ranges import labelled_ranges_of, why_no_ranges
from barnabas.sql.columns.sources import RawColumns
from barnabas.sql.spark.hosting import RangeReading
from barnabas.sql.spark.options import SparkQueryOptions
from barnabas.sql.spark.parcels import RANGE_NUMBERS, Range, encode_parcel

_readers: dict[RangeReading, WireReader] = {}


def read_ranges(reading: RangeReading, ranges: pa.RecordBatch) -> Iterator[RawColumns]:
    """The records of rows of topic, partition, first offset, and the offset behind the last.

    Raises ReadError.
    """
    for row in zip(*(column.to_pylist() for column in ranges.columns), strict=True):
        yield from read_range(reading, *row)


def read_range(
    reading: RangeReading, topic: str, partition: int, first: int, until: int
) -> Iterator[RawColumns]:
    """The records of a partition from offset `first` on, before `until`.

    Tasks of one worker process run one after the other and share its connections. Raises ReadError.
    """
    for fetched in _reader_of(reading).read(topic, partition, first, until):
        yield from _columns((topic, partition), fetched, until)


@dataclass(slots=True)
class PolledColumns:
    """Records of a partition from an offset on. `next` and `end` are those of `Polled`."""

    next: int
    end: int
    records: list[RawColumns]

    @property
    def latest_ms(self) -> int | None:
        """The latest timestamp; None without records."""
        return max((pc.max(one.timestamps).as_py() for one in self.records), default=None)

    def until(self, time_ms: int) -> PolledColumns:
        """The records before the first that has a later timestamp."""
        taken: list[RawColumns] = []
        for one in self.records:
            first = pc.index(pc.greater(one.timestamps, time_ms), value=True).as_py()
            if first >= 0:
                if first:
                    taken.append(one.slice(first))
                return PolledColumns(one.offsets[first].as_py(), self.end, taken)
            taken.append(one)
        return self


def poll_topics(
    reading: RangeReading,
    offsets: Mapping[Place, int],
    wait_ms: int,
    last: Collection[Place],
    size_bytes_max: int,
) -> tuple[dict[Place, PolledColumns], dict[Place, ReadError]]:
    """Fetch the records of partitions from these offsets on; also returns why some cannot be read.

    `wait_ms`, `last` and `size_bytes_max` are those of `WireReader.poll`.
    """
    polled, errors = _reader_of(reading).poll(offsets, wait_ms, last, size_bytes_max)
    found: dict[Place, PolledColumns] = {}
    for place, one in polled.items():
        try:
            columns = [
                records for fetched in one.fetched for records in _columns(place, fetched, one.next)
            ]
        except ReadError as error:
            errors[place] = error
        else:
            found[place] = PolledColumns(one.next, one.end, columns)
    return found, errors


def _reader_of(reading: RangeReading) -> WireReader:
    reader = _readers.get(reading)
    if reader is None:
        settings = {**dict(reading.clients), "bootstrap.servers": reading.bootstrap_servers}
        reader = WireReader(settings, is_committed_only=reading.is_committed_only)
        _readers[reading] = reader
    return reader


def _columns(place: Place, fetched: Fetched, until: int) -> Iterator[RawColumns]:
    """The records of batches before `until`. Raises ReadError."""
    topic, partition = place
    try:
        for one in columns_of_batches(fetched.batches, fetched.first, until, fetched.aborted):
            if len(one):
                yield RawColumns(
                    partition, one.offsets, one.timestamps, one.keys, one.values, one.headers
                )
    except CorruptBatchError as error:
        raise ReadError(f"cannot read {topic}-{partition}: {error}") from error


def range_parcels(
    records: DataFrame, stage: int, place: int, topic: str, labels: Sequence[int], tasks: int
) -> tuple[DataFrame, bool]:
    """The ranges of Spark's source `records` as rows of labels and parcels.

    `labels`: by partition of the operator that takes them, in so many tasks. Also returns whether
    each row is in the partition of its task already.
    """
    head = encode_parcel(Range(stage, place, topic, 0, 0, 0))[: -RANGE_NUMBERS.size]
    return labelled_ranges_of(records, head, labels, tasks)


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
