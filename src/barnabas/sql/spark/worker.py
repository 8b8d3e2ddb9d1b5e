"""The functions that Spark runs in its Python workers.

Rows between operators have the columns of `SCHEMA`; a row is a parcel.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark import TaskContext
from pyspark.sql.types import BinaryType, IntegerType, StructField, StructType

from barnabas.spark.archives import keep_archives
from barnabas.spark.batch_columns import TOGETHER_RECORDS_MAX, TOGETHER_SIZE_BYTES_MAX
from barnabas.spark.datasource.committer import task_prefix
from barnabas.spark.datasource.task import TaskPlace
from barnabas.sql.columns.sources import RawColumns
from barnabas.sql.spark.hosted import HostedPlan, Placed, forgotten_on_failure
from barnabas.sql.spark.hosting import Hosting, RangeReading
from barnabas.sql.spark.parcels import (
    Notes,
    Parcel,
    Range,
    Raw,
    Results,
    Written,
    decode_parcel,
    encode_parcel,
)
from barnabas.sql.spark.reading import read_range, read_ranges
from barnabas.sql.spark.results import (
    ExactlyOnce,
    ResultRecords,
    TaskResults,
    write_from_task,
)
from barnabas.sql.spark.state import MapStatePages, PartitionState, partition_state

if TYPE_CHECKING:
    import pandas as pd  # type: ignore[import-untyped]  # comes without types

SCHEMA = StructType(
    [StructField("label", IntegerType(), nullable=False), StructField("parcel", BinaryType())]
)
"""`label` names the partition; see `topology.labels`."""
PARCEL_COLUMN: Final = 1

_ARROW = pa.schema([pa.field("label", pa.int32(), nullable=False), ("parcel", pa.binary())])


@dataclass(frozen=True)
class SourceFunction:
    """For `mapInArrow` over records: partition, offset, timestamp, key, value, headers.

    Or over the ranges of `reading`, whose records it fetches.
    """

    hosting: Hosting
    stage: int
    place: int
    reading: RangeReading | None = None

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        keep_archives()
        began = time.perf_counter()
        for some in self._read(batches):
            with forgotten_on_failure(self.hosting) as plan:
                rows = self._run(plan, some, began)
            yield _to_arrow(rows)
            began = time.perf_counter()

    def _read(self, batches: Iterable[pa.RecordBatch]) -> Iterator[list[RawColumns]]:
        """Records that are processed together, by partition."""
        if self.reading is None:
            for batch in batches:
                if batch.num_rows:
                    yield list(_by_partition(batch))
            return
        waiting: list[RawColumns] = []
        count = size_bytes = 0
        for batch in batches:
            for one in read_ranges(self.reading, batch):
                waiting.append(one)
                count += len(one)
                size_bytes += one.keys.nbytes + one.values.nbytes
                if count >= TOGETHER_RECORDS_MAX or size_bytes >= TOGETHER_SIZE_BYTES_MAX:
                    yield waiting
                    waiting, count, size_bytes = [], 0, 0
        if waiting:
            yield waiting

    def _run(
        self, plan: HostedPlan, some: Iterable[RawColumns], began: float
    ) -> list[tuple[int, bytes]]:
        placed: list[Placed] = []
        for records in some:
            placed += plan.from_source(Raw(self.stage, self.place, records))
        rows, written = sent(plan, placed)
        notes = plan.take_notes()
        notes.written = written
        notes.seconds = time.perf_counter() - began
        rows.append((plan.labels[0], encode_parcel(notes)))
        return rows


_BATCH_PROPERTY = "streaming.sql.batchId"
"""What Spark tells the tasks of a micro-batch. Source: MicroBatchExecution."""


@dataclass(frozen=True)
class ResultFunction:
    """For `mapInArrow` over the last parcels of a micro-batch: writes the results exactly once."""

    to: ExactlyOnce
    records: ResultRecords
    label: int

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        keep_archives()
        context = TaskContext.get()
        assert context is not None
        number = context.getLocalProperty(_BATCH_PROPERTY)
        assert number is not None, "a micro-batch has a number"
        place = TaskPlace(task_prefix(self.to.name), int(number), context.partitionId())
        results, notes = TaskResults(self.to, self.records, place), Notes()
        try:
            for batch in batches:
                for data in batch.column(1).to_pylist():
                    parcel = decode_parcel(data)
                    if isinstance(parcel, Results):
                        results.write(parcel)
                    elif isinstance(parcel, Notes):
                        notes.add(parcel)
            prepared = results.prepare()
        except BaseException:
            results.abort()
            raise
        notes.written += results.count
        was_retried = context.attemptNumber() > 0
        parcels: list[Parcel] = [notes, *(Written(one, was_retried) for one in prepared)]
        yield _to_arrow([(self.label, encode_parcel(parcel)) for parcel in parcels])


def _by_partition(batch: pa.RecordBatch) -> Iterator[RawColumns]:
    """The records of a batch by the topic's partition; mostly there is one."""
    partitions = batch.column(0)
    for partition in pc.unique(partitions).to_pylist():
        mask = pc.equal(partitions, partition)
        of_one = batch if pc.all(mask).as_py() else batch.filter(mask)
        _, offsets, timestamps, keys, values, headers = of_one.columns
        has_headers = headers.null_count < len(headers)
        yield RawColumns(
            partition,
            offsets,
            timestamps,
            keys.cast(pa.binary()),
            values.cast(pa.binary()),
            _headers(headers) if has_headers else None,
        )


def _headers(column: pa.Array) -> list[Any]:
    return [
        tuple((header["key"], header["value"]) for header in headers or ())
        for headers in column.to_pylist()
    ]


def sent(plan: HostedPlan, placed: Iterable[Placed]) -> tuple[list[tuple[int, bytes]], int]:
    """The rows of parcels, but for results that are written here: how many those were."""
    rows: list[tuple[int, bytes]] = []
    written = 0
    hosting = plan.hosting
    for partition, _, parcel in placed:
        if isinstance(parcel, Results) and hosting.sink_servers is not None:
            to = ResultRecords.of_plan(plan)
            written += write_from_task(hosting.sink_servers, to, parcel, hosting.clients)
        else:
            rows.append((plan.labels[partition], encode_parcel(parcel)))
    return rows, written


def _to_arrow(rows: list[tuple[int, bytes]]) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(
        [
            pa.array([label for label, _ in rows], pa.int32()),
            pa.array([data for _, data in rows], pa.binary()),
        ],
        schema=_ARROW,
    )


def run_operator(
    hosting: Hosting,
    number: int,
    state: Any,
    label: int,
    rows: Iterator[pd.DataFrame],
    reading: RangeReading | None = None,
) -> pd.DataFrame:
    """Run an operator on the parcels of one label; `state` is Spark's map of its pages.

    `reading`: how to fetch the records of ranges among them. Raises ReadError.
    """
    import pandas as pd  # here, as the module is read where pandas is not

    with forgotten_on_failure(hosting) as plan:
        made = _run_operator(plan, number, MapStatePages(state), label, rows, reading)
    return pd.DataFrame(
        {
            "label": pd.Series([label for label, _ in made], dtype="int32"),
            "parcel": [data for _, data in made],
        }
    )


def _run_operator(
    plan: HostedPlan,
    number: int,
    pages: MapStatePages,
    label: int,
    rows: Iterator[pd.DataFrame],
    reading: RangeReading | None,
) -> list[tuple[int, bytes]]:
    began = time.perf_counter()
    partition = plan.labels.index(label)
    parcels: list[Parcel] = []
    for frame in rows:
        for data in frame["parcel"].to_numpy():
            parcel = decode_parcel(bytes(data))
            if isinstance(parcel, Range):
                parcels += _fetched(plan, parcel, reading)
            else:
                parcels.append(parcel)
    name = f"{plan.hosting.state_name}/{number}"
    state = partition_state(name, partition, PartitionState)
    state.attach(pages)
    placed = plan.run_operator(number, partition, parcels, state.open)
    made, written = sent(plan, placed)
    state.flush()
    notes = Notes()
    for parcel in parcels:
        if isinstance(parcel, Notes):
            notes.add(parcel)
    notes.add(plan.take_notes())
    notes.written += written
    notes.calls += pages.calls
    notes.seconds += time.perf_counter() - began
    made.append((plan.labels[0], encode_parcel(notes)))
    return made


def _fetched(plan: HostedPlan, of: Range, reading: RangeReading | None) -> Iterator[Parcel]:
    """The records of a range, as if a source had sent them."""
    assert reading is not None, "ranges come with the access to read them"
    for records in read_range(reading, of.topic, of.partition, of.first, of.until):
        for _, _, parcel in plan.from_source(Raw(of.stage, of.place, records)):
            yield parcel
