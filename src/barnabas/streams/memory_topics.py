"""The topics of a test in memory, and a pipeline's queries that read and write them."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from barnabas.kafka.memory import MemoryTopics
from barnabas.schemas.memory_registry import MemoryRegistry
from barnabas.spark.interruption import interruptible
from barnabas.spark.supervision import why
from barnabas.streams.environment import query_settings
from barnabas.streams.errors import PipelineError
from barnabas.streams.formats import Binding, Writer
from barnabas.streams.outputs import Output
from barnabas.streams.steps import Building, ReadTopic

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from barnabas.streams.sources import Source

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
_MILLISECOND: Final = timedelta(milliseconds=1)
_SLOW_WORKER: Final = "Python worker failed to connect back"
"""Spark gives the first process of an operator ten seconds: too few on a machine under load."""
_STARTS_MAX: Final = 5
_RECORD: Final = (
    "k STRING, v STRING, topic STRING, p INT, o BIGINT, t BIGINT, "
    "h ARRAY<STRUCT<key: STRING, value: STRING>>, tick BIGINT"
)


@dataclass(frozen=True)
class Record:
    """A record that a pipeline has written. Keys and values are as their formats read them."""

    key: Any
    value: Any
    at: datetime
    headers: Mapping[str, bytes] = field(default_factory=dict, compare=False)


@dataclass
class Sent:
    """A record as it lies in a topic."""

    key: bytes | None
    value: bytes | None
    at: datetime
    partition: int = 0
    offset: int = 0
    headers: Sequence[tuple[str, bytes]] = ()

    def line(self, topic: str) -> str:
        return json.dumps(
            {
                "k": _text(self.key),
                "v": _text(self.value),
                "topic": topic,
                "p": self.partition,
                "o": self.offset,
                "t": micros(self.at),
                "h": [{"key": name, "value": _text(value)} for name, value in self.headers],
            }
        )


class Feed:
    """The topics of a test as one query streams them from memory: the Environment of its steps.

    All are one stream of Spark's, so that what is piped together is one micro-batch.
    """

    def __init__(self, topics: Topics) -> None:
        from barnabas.spark.java_code import HAS_MOVED_CLASSES

        self.spark = topics.spark
        self.dead_letters = topics.dead_letters
        self.binding = topics.binding
        self.first_ends = topics.first_ends
        self._topics = topics
        jvm: Any = self.spark.sparkContext._jvm
        self._jvm = jvm
        package = jvm.org.apache.spark.sql
        streaming, session = package.execution.streaming, self.spark._jsparkSession
        if HAS_MOVED_CLASSES:
            make, given = streaming.runtime.MemoryStream, session
        else:
            make, given = streaming.MemoryStream, session.sqlContext()
        none = getattr(jvm.scala, "Option").empty()  # noqa: B009  as Py4J names it
        self._memory = make(_next_id(), given, none, package.Encoders.STRING())

    def records(self, source: ReadTopic) -> DataFrame:
        """Stream a topic."""
        from pyspark.sql import DataFrame

        lines = DataFrame(self._memory.toDF(), self.spark)
        return _unfolded(lines, source.topic)

    def records_now(self, source: ReadTopic) -> DataFrame:
        """Return what was written to a topic."""
        lines = [sent.line(source.topic) for sent in self._topics.written.get(source.topic, ())]
        return _Still(self._topics, lines).records_now(source)

    def add(self, lines: list[str]) -> None:
        """Add records of any topics."""
        self._memory.addData(self._jvm.PythonUtils.toSeq(lines))


class Topics(MemoryTopics[Sent]):
    """The topics of a test: what was written to them, and how."""

    def __init__(
        self, spark: SparkSession, schemas: MemoryRegistry, dead_letters: str | None
    ) -> None:
        super().__init__()
        self.spark = spark
        self.dead_letters = dead_letters
        self._schemas = schemas
        self._pins: dict[str, str] = {}
        self.failed: list[Record] = []
        """Dead letters of functions, which nobody has read yet."""
        self._readers: dict[tuple[str, str], Any] = {}

    def binding(self, topic: str, part: str) -> Binding:
        """Return what binds a format to a topic."""
        return Binding(f"{topic}-{part}", self._schemas, {}, self._pinned)

    def first_ends(self, topic: str) -> dict[int, int]:
        """Return none: nothing was there before the test."""
        return {}

    def encoded(self, source: Source, part: str, value: Any) -> bytes | None:
        """Return a value as its format writes it."""
        if value is None:
            return None
        if (source.topic, part) not in self._readers:
            key, content = source.readers(Building(_Still(self, [])))
            self._readers[source.topic, "key"] = key
            self._readers[source.topic, "value"] = content
        data: bytes = self._readers[source.topic, part].to_bytes(value)
        return data

    def letters(self, source: Source, done: int, pipeline: str) -> list[Record]:
        """Return the dead letters among what was written since the first `done` records."""
        from pyspark.sql import functions as f

        from barnabas.streams.sources import dead_letters

        lines = [sent.line(source.topic) for sent in self.written.get(source.topic, [])[done:]]
        if not lines:
            return []
        still = _Still(self, lines)
        letters = dead_letters([source], still, pipeline)
        rows = letters.select("key", "value", f.unix_millis("timestamp").alias("at"), "headers")
        return [
            Record(
                _letter_key(row.key),
                None if row.value is None else bytes(row.value),
                EPOCH + row.at * _MILLISECOND,
                {header.key: bytes(header.value or b"") for header in row.headers},
            )
            for row in rows.collect()
        ]

    def _pinned(self, name: str, make: Callable[[], str]) -> str:
        if name not in self._pins:
            self._pins[name] = make()
        return self._pins[name]


class _Still:
    """The same topics, with given records, as frames that are not streams."""

    def __init__(self, topics: Topics, lines: list[str]) -> None:
        self.spark = topics.spark
        self.dead_letters = topics.dead_letters
        self.binding = topics.binding
        self.first_ends = topics.first_ends
        self._lines = lines

    def records(self, source: ReadTopic) -> DataFrame:
        """Return the records."""
        return self.records_now(source)

    def records_now(self, source: ReadTopic) -> DataFrame:
        """Return the records."""
        lines = self.spark.createDataFrame([(line,) for line in self._lines], "value STRING")
        return _unfolded(lines, source.topic)


class Query:
    """One output of a pipeline under test."""

    def __init__(self, output: Output, topics: Topics, checkpoint: str, pipeline: str) -> None:
        from pyspark.sql import functions as f

        from barnabas.streams.dead_letters import FailedRows

        self.output = output
        self._spark = topics.spark
        self._mode = output.mode()
        self._feed = Feed(topics)
        self._topics = topics
        self._failed_rows = (
            None if topics.dead_letters is None else FailedRows(topics.spark, pipeline)
        )
        with query_settings(topics.spark):
            frame, self._key, self._value = output.records(self._feed, self._failed_rows)
        self._frame = frame.select("key", "value", f.unix_millis("timestamp").alias("at"))
        self._checkpoint = checkpoint
        self._query: StreamingQuery | None = None
        self._written: list[Sent] = []

    def start(self) -> None:
        with query_settings(self._spark, {"spark.sql.shuffle.partitions": "1"}):
            self._query = (
                self._frame.writeStream.foreachBatch(interruptible(self._write))
                .outputMode(self._mode)
                .option("checkpointLocation", self._checkpoint)
                .start()
            )

    def stop(self) -> None:
        if self._query is not None:
            self._query.stop()
            self._query = None

    def process(self, lines: list[str]) -> None:
        from pyspark.errors import StreamingQueryException

        assert self._query is not None
        self._feed.add(lines)
        for left in reversed(range(_STARTS_MAX)):
            try:
                self._query.processAllAvailable()
                return
            except StreamingQueryException as error:
                if left == 0 or _SLOW_WORKER not in str(error):
                    raise PipelineError(f"{self.output.topic}: {why(error)}") from error
                self.start()

    def take(self) -> list[Sent]:
        written, self._written = self._written, []
        return written

    def record(self, sent: Sent) -> Record:
        return Record(_python(self._key, sent.key), _python(self._value, sent.value), sent.at)

    def _write(self, frame: DataFrame, _batch_id: int) -> None:
        for row in frame.collect():
            at = EPOCH + (row.at or 0) * _MILLISECOND
            self._written.append(Sent(_bytes(row.key), _bytes(row.value), at))
        for failed in () if self._failed_rows is None else self._failed_rows.take():
            at = EPOCH + (failed.at or 0) * _MILLISECOND
            headers = {name: value or b"" for name, value in failed.headers}
            self._topics.failed.append(Record(_letter_key(failed.key), failed.value, at, headers))


def _unfolded(lines: DataFrame, topic: str) -> DataFrame:
    from pyspark.sql import functions as f

    record = f.from_json("value", _RECORD).alias("r")
    return (
        lines.select(record)
        .where(f.col("r.topic") == topic)
        .select(
            f.unbase64("r.k").alias("key"),
            f.unbase64("r.v").alias("value"),
            f.col("r.topic").alias("topic"),
            f.col("r.p").alias("partition"),
            f.col("r.o").alias("offset"),
            f.timestamp_micros("r.t").alias("timestamp"),
            f.transform(
                "r.h",
                lambda header: f.struct(
                    header.key.alias("key"), f.unbase64(header.value).alias("value")
                ),
            ).alias("headers"),
            f.timestamp_micros("r.tick").alias("tick"),
        )
    )


_ids = iter(range(1, 2**31))


def _next_id() -> int:
    return next(_ids)


def _python(writer: Writer, data: bytes | None) -> Any:
    return None if data is None else writer.to_python(data)


def _bytes(data: Any) -> bytes | None:
    return None if data is None else bytes(data)


def _letter_key(data: Any) -> str | None:
    return None if data is None else bytes(data).decode(errors="replace")


def _text(data: bytes | None) -> str | None:
    return None if data is None else base64.b64encode(data).decode()


def micros(at: datetime) -> int:
    return (at - EPOCH) // _MICROSECOND
