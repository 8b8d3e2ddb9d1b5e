"""`format("barnabas")`: rows of a Spark query into topics, exactly once, from the executors.

    executor   task: rows ─▶ records of one transaction, left open ─┐ its id and epoch
    executor   task: rows ─▶ records of one transaction, left open ─┤
    driver     batch: all tasks are done ◀──────────────────────────┘
               decision, durable ─▶ commit each transaction

Spark calls `write` in the tasks, and `commit` or `abort` in a process beside the driver.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pyspark.sql.datasource
from pyspark import TaskContext
from pyspark.sql import SparkSession
from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceStreamWriter,
    DataSourceWriter,
    WriterCommitMessage,
)
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    IntegerType,
    LongType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from barnabas.kafka.wire import Access
from barnabas.spark.datasource.committer import Committer, task_prefix
from barnabas.spark.datasource.options import OptionError, SinkOptions, read_options
from barnabas.spark.datasource.protocol import Prepared
from barnabas.spark.datasource.task import TaskPlace, WriteError, write_rows

if TYPE_CHECKING:
    from pyarrow import RecordBatch

NAME: Final = "barnabas"
_QUERY_PROPERTY: Final = "sql.streaming.queryId"
_BATCH_PROPERTY: Final = "streaming.sql.batchId"
"""What Spark tells the tasks of a micro-batch. Source: StreamExecution, MicroBatchExecution."""
_BYTES: Final = (StringType, BinaryType)
_COLUMNS: Final[Mapping[str, tuple[type[DataType], ...]]] = {
    "key": _BYTES,
    "value": _BYTES,
    "headers": (ArrayType,),
    "topic": (StringType,),
    "partition": (IntegerType,),
    "timestamp": (TimestampType, TimestampNTZType, LongType),
}


def register_sink(spark: SparkSession) -> None:
    """Make `format("barnabas")` known to a session."""
    spark.dataSource.register(BarnabasSink)


class BarnabasSink(DataSource):
    """The data source; it writes, and does not read."""

    @classmethod
    def name(cls) -> str:
        """Return the name for `format`."""
        return NAME

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """Return the writer of a batch job. Raises OptionError, SchemaError."""
        options = self._checked(schema)
        if overwrite:
            raise OptionError('a topic is not overwritten: write with mode("append")')
        return JobWriter(options, options.sink_id or uuid.uuid4().hex)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: N802  # Spark's
        """Return the writer of a streaming query. Raises OptionError, SchemaError."""
        return QueryWriter(self._checked(schema))  # type: ignore[return-value]  # see there

    def _checked(self, schema: StructType) -> SinkOptions:
        options = read_options(dict(self.options.items()))
        check_schema(schema, options.topic)
        return options


class SchemaError(ValueError):
    """The rows do not have the columns of records."""


def check_schema(schema: StructType, topic: str | None) -> None:
    """Check the columns of the rows. Raises SchemaError."""
    for field in schema.fields:
        kinds = _COLUMNS.get(field.name)
        if kinds is None:
            raise SchemaError(f"unknown column {field.name}; there are {', '.join(_COLUMNS)}")
        if not isinstance(field.dataType, kinds):
            names = " or ".join(kind.typeName() for kind in kinds)
            raise SchemaError(
                f"column {field.name} is {names}, not {field.dataType.simpleString()}"
            )
        if isinstance(field.dataType, ArrayType):
            _check_headers(field.dataType)
    if "value" not in schema.names:
        raise SchemaError("there is no column value")
    if topic is None and "topic" not in schema.names:
        raise SchemaError("set the option topic, or add a column topic")


def _check_headers(headers: ArrayType) -> None:
    of = headers.elementType
    fields = of.fields if isinstance(of, StructType) else []
    kinds = [(field.name, isinstance(field.dataType, _BYTES)) for field in fields]
    if kinds != [("key", True), ("value", True)]:
        raise SchemaError("column headers is array<struct<key:string,value:binary>>")


@dataclass(slots=True)
class TaskDone(WriterCommitMessage):
    """A task's report to the driver."""

    sink_id: str
    prepared: tuple[Prepared, ...]
    was_retried: bool


if TYPE_CHECKING:
    _StreamArrowWriter = DataSourceArrowWriter
else:
    # Spark 4.1 has a class for streams, and takes no other; 4.0 has none.
    _StreamArrowWriter = getattr(
        pyspark.sql.datasource, "DataSourceStreamArrowWriter", DataSourceArrowWriter
    )


class QueryWriter(_StreamArrowWriter):
    """Writes the micro-batches of a streaming query.

    It has the methods of a DataSourceStreamWriter. On Spark 4.0 it is not one: Spark passes Arrow's
    batches, instead of single rows, only to a DataSourceArrowWriter.
    """

    def __init__(self, options: SinkOptions) -> None:
        self._options = options

    def write(self, iterator: Iterator[RecordBatch]) -> WriterCommitMessage:
        """Write the rows of a task; runs on an executor. Raises WriteError."""
        context = TaskContext.get()
        assert context is not None
        query = context.getLocalProperty(_QUERY_PROPERTY)
        batch = context.getLocalProperty(_BATCH_PROPERTY)
        if query is None or batch is None:
            raise WriteError("this task belongs to no streaming query")
        return _write(self._options, query, int(batch), iterator)

    def commit(  # type: ignore[override]  # see the class
        self, messages: Sequence[WriterCommitMessage | None], batch_id: int
    ) -> None:
        """Commit a micro-batch; runs beside the driver."""
        done = _done(messages)
        if done:
            _commit(self._options, done[0].sink_id, batch_id, done)

    def abort(  # type: ignore[override]  # see the class
        self, messages: Sequence[WriterCommitMessage | None], batch_id: int
    ) -> None:
        """Abort a micro-batch of which a task, or the commit, has failed.

        Only its tasks know the query. If none is done, their open transactions have to wait for the
        query's next commit.
        """
        done = _done(messages)
        if done:
            _abort(self._options, done[0].sink_id, batch_id, done)


class JobWriter(DataSourceArrowWriter):
    """Writes a batch job, as batch 0 of a sink."""

    def __init__(self, options: SinkOptions, sink_id: str) -> None:
        self._options = options
        self._sink_id = sink_id

    def write(self, iterator: Iterator[RecordBatch]) -> WriterCommitMessage:
        """Write the rows of a task; runs on an executor. Raises WriteError."""
        return _write(self._options, self._sink_id, 0, iterator)

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Commit the job; runs beside the driver."""
        _commit(self._options, self._sink_id, 0, _done(messages))

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Abort a job of which a task, or the commit, has failed."""
        _abort(self._options, self._sink_id, 0, _done(messages))


_COMMITTERS: dict[tuple[str, Access, str, bool], Committer] = {}
"""Of this process, by options and sink."""


def _write(
    options: SinkOptions, sink_id: str, batch: int, rows: Iterator[RecordBatch]
) -> WriterCommitMessage:
    context = TaskContext.get()
    assert context is not None
    task = context.partitionId()
    prepared = write_rows(options, TaskPlace(task_prefix(sink_id), batch, task), rows)
    return TaskDone(sink_id, prepared, context.attemptNumber() > 0)


def _commit(options: SinkOptions, sink_id: str, batch: int, done: Sequence[TaskDone]) -> None:
    prepared = [prepared for one in done for prepared in one.prepared]
    was_retried = any(one.was_retried for one in done)
    _committer(options, sink_id).commit(batch, prepared, was_retried=was_retried)


def _abort(options: SinkOptions, sink_id: str, batch: int, done: Sequence[TaskDone]) -> None:
    prepared = [prepared for one in done for prepared in one.prepared]
    _committer(options, sink_id).abort(batch, prepared)


def _done(messages: Sequence[WriterCommitMessage | None]) -> list[TaskDone]:
    return [message for message in messages if isinstance(message, TaskDone)]


def _committer(options: SinkOptions, sink_id: str) -> Committer:
    key = sink_id, options.access, options.decision_topic, options.skips_lost
    if key not in _COMMITTERS:
        # One at a time: a session that runs for months has many queries after one another.
        close_committer()
        _COMMITTERS[key] = Committer(options, sink_id)
    return _COMMITTERS[key]


def close_committer() -> None:
    """Close what this process keeps open between commits."""
    for committer in _COMMITTERS.values():
        committer.close()
    _COMMITTERS.clear()
