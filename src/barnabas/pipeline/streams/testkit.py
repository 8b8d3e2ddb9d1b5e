"""The test kit: a pipeline on given records, in virtual time, without a broker.

    with PipelineTest(pipeline) as test:
        test.pipe("stations", {"name": "North", "city": "Ghent"}, key="s1")
        test.pipe("charging-events", {"station": "s1", "kwh": 2.5}, at=10)
        test.advance("2 minutes")
        assert test.read("energy-per-minute") == [...]

It is the pipeline itself that runs, in Spark, formats and state included: topics are memory, and
results are read as Python values. What is piped between two reads is one micro-batch.
"""

from __future__ import annotations

import base64
import json
import re
import shutil
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from barnabas.pipeline.streams.errors import PipelineError
from barnabas.pipeline.streams.failures import why
from barnabas.pipeline.streams.formats import Binding, Writer
from barnabas.pipeline.streams.memory_schemas import MemorySchemas
from barnabas.pipeline.streams.outputs import Output
from barnabas.pipeline.streams.pipeline import Pipeline, as_pipeline
from barnabas.pipeline.streams.steps import Building

if TYPE_CHECKING:
    from types import TracebackType

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from barnabas.pipeline.streams.sources import Source

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_START: Final = datetime(2026, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
_MILLISECOND: Final = timedelta(milliseconds=1)
_RECORD: Final = (
    "k STRING, v STRING, topic STRING, p INT, o BIGINT, t BIGINT, "
    "h ARRAY<STRUCT<key: STRING, value: STRING>>, tick BIGINT"
)
_UNITS: Final = {"second": 1, "minute": 60, "hour": 3600, "day": 86400, "millisecond": 0.001}
Moment = datetime | str | float
"""A datetime (UTC where it has no zone), its ISO text, or seconds after the test's start."""


@dataclass(frozen=True)
class Record:
    """A record that a pipeline has written. Keys and values are as their formats read them."""

    key: Any
    value: Any
    at: datetime
    headers: Mapping[str, bytes] = field(default_factory=dict, compare=False)


@dataclass
class _Sent:
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
                "t": _micros(self.at),
                "h": [{"key": name, "value": _text(value)} for name, value in self.headers],
            }
        )


class PipelineTest:
    """Runs a pipeline in memory; a context manager.

    `schemas`: Avro texts by subject, for topics that are read with `avro()` alone. `start`: when
    virtual time begins. `spark`: the session; by default that of the process, or a small new one,
    which takes some seconds once.
    """

    def __init__(
        self,
        pipeline: Pipeline | Output,
        *,
        spark: SparkSession | None = None,
        schemas: Mapping[str, str] | None = None,
        start: datetime = _START,
    ) -> None:
        self.pipeline = as_pipeline(pipeline, "test")
        self.start_time = self.now = start
        self._schemas = MemorySchemas(schemas or {})
        self._topics = _Topics(spark or _session(), self._schemas, self.pipeline.dead_letters)
        self._directory = tempfile.mkdtemp(prefix="barnabas-pipeline-test-")
        self._queries = [self._query(output) for output in self.pipeline.outputs]
        self._letters_read: dict[str, int] = {}
        self._unread: dict[str, list[Record]] = defaultdict(list)
        self._sources = {source.topic: source for source in self.pipeline.sources()}
        self._next: dict[tuple[str, int], int] = defaultdict(int)
        self._waiting: dict[str, list[str]] = defaultdict(list)

    def __enter__(self) -> PipelineTest:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the queries and forget all."""
        for query in self._queries:
            query.stop()
        shutil.rmtree(self._directory, ignore_errors=True)

    # --- in ----------------------------------------------------------------------------------

    def pipe(
        self,
        topic: str,
        value: Any = None,
        *,
        key: Any = None,
        at: Moment | None = None,
        partition: int = 0,
        headers: Mapping[str, bytes] | None = None,
    ) -> None:
        """Write a record to a topic that the pipeline reads.

        Values are what the topic's format writes: a dict or a dataclass for JSON and Avro. Bytes
        are written as they are, to see what becomes of malformed ones; None is a null. `at` is the
        record's timestamp, by default now; a later one moves `now` on.
        """
        source = self._sources.get(topic)
        if source is None:
            known = ", ".join(sorted(self._sources))
            raise PipelineError(f"the pipeline does not read {topic}: it reads {known}")
        moment = self.now if at is None else self._moment(at)
        self.now = max(self.now, moment)
        self._write(
            topic,
            _Sent(
                self._topics.encoded(source, "key", key),
                self._topics.encoded(source, "value", value),
                moment,
                partition,
                headers=tuple((headers or {}).items()),
            ),
        )

    def pipe_all(self, topic: str, values: Iterable[Any], **how: Any) -> None:
        """Write several records."""
        for value in values:
            self.pipe(topic, value, **how)

    def advance(self, by: str | float | timedelta) -> None:
        """Let time pass in all topics: `advance("1 minute")`, or seconds.

        What was piped is processed before. A window ends when time has passed its end by the
        watermark's delay.
        """
        self.advance_to(self.now + _duration(by))

    def advance_to(self, at: Moment) -> None:
        """Let time pass until a moment."""
        self.process()
        self.now = max(self.now, self._moment(at))
        for topic in self._sources:
            tick = json.dumps({"topic": topic, "tick": _micros(self.now)})
            self._waiting[topic].append(tick)
        self.process()

    # --- out ---------------------------------------------------------------------------------

    def read(self, topic: str) -> list[Record]:
        """Process what was piped; return what was written to a topic since the last read of it."""
        self.process()
        if topic == self.pipeline.dead_letters:
            self._unread[topic] += self._read_letters()
        elif all(query.output.topic != topic for query in self._queries):
            known = ", ".join(query.output.topic for query in self._queries)
            raise PipelineError(f"the pipeline does not write {topic}: it writes {known}")
        return self._unread.pop(topic, [])

    def values(self, topic: str) -> list[Any]:
        """Return the values of `read`."""
        return [record.value for record in self.read(topic)]

    def last(self, topic: str) -> dict[Any, Any]:
        """Return the last value by key of `read`; keys that are objects become tuples."""
        return {_hashable(record.key): record.value for record in self.read(topic)}

    def process(self) -> None:
        """Process what was piped."""
        while any(self._waiting.values()):
            waiting, self._waiting = self._waiting, defaultdict(list)
            lines = [line for of_topic in waiting.values() for line in of_topic]
            for query in self._queries:
                query.process(lines)
                for sent in query.take():
                    self._unread[query.output.topic].append(query.record(sent))
                    if query.output.topic in self._sources:
                        self._write(query.output.topic, sent)

    def restart(self) -> None:
        """Stop the queries, and start them again from their checkpoints."""
        self.process()
        for query in self._queries:
            query.stop()
            query.start()

    # --- inside ------------------------------------------------------------------------------

    def _query(self, output: Output) -> _Query:
        query = _Query(output, self._topics, f"{self._directory}/{output.topic}")
        query.start()
        return query

    def _write(self, topic: str, sent: _Sent) -> None:
        sent.offset = self._next[topic, sent.partition]
        self._next[topic, sent.partition] += 1
        self._topics.written[topic].append(sent)
        self._waiting[topic].append(sent.line(topic))

    def _read_letters(self) -> list[Record]:
        letters = []
        for source in self.pipeline.sources():
            done = self._letters_read.get(source.topic, 0)
            self._letters_read[source.topic] = len(self._topics.written[source.topic])
            letters += self._topics.letters(source, done, self.pipeline.name)
        return letters

    def _moment(self, at: Moment) -> datetime:
        if isinstance(at, str):
            at = datetime.fromisoformat(at)
        if isinstance(at, datetime):
            return at.replace(tzinfo=UTC) if at.tzinfo is None else at
        return self.start_time + timedelta(seconds=at)


class _Feed:
    """The topics of a test as one query streams them from memory: the Environment of its steps.

    All are one stream of Spark's, so that what is piped together is one micro-batch.
    """

    def __init__(self, topics: _Topics) -> None:
        self.spark = topics.spark
        self.dead_letters = topics.dead_letters
        self.binding = topics.binding
        self.first_ends = topics.first_ends
        self._jvm: Any = self.spark.sparkContext._jvm
        package = self._jvm.org.apache.spark.sql
        self._memory = package.execution.streaming.MemoryStream(
            _next_id(),
            self.spark._jsparkSession.sqlContext(),
            getattr(self._jvm.scala, "Option").empty(),  # noqa: B009  as Py4J names it
            package.Encoders.STRING(),
        )

    def records(self, source: Source) -> DataFrame:
        """Stream a topic."""
        from pyspark.sql import DataFrame

        lines = DataFrame(self._memory.toDF(), self.spark)
        return _unfolded(lines, source.topic)

    def add(self, lines: list[str]) -> None:
        """Add records of any topics."""
        self._memory.addData(self._jvm.PythonUtils.toSeq(lines))


class _Topics:
    """The topics of a test: what was written to them, and how."""

    def __init__(
        self, spark: SparkSession, schemas: MemorySchemas, dead_letters: str | None
    ) -> None:
        self.spark = spark
        self.dead_letters = dead_letters
        self.written: dict[str, list[_Sent]] = defaultdict(list)
        self._schemas = schemas
        self._pins: dict[str, str] = {}
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
            key, content = source.readers(Building(self))
            self._readers[source.topic, "key"] = key
            self._readers[source.topic, "value"] = content
        data: bytes = self._readers[source.topic, part].to_bytes(value)
        return data

    def letters(self, source: Source, done: int, pipeline: str) -> list[Record]:
        """Return the dead letters among what was written since the first `done` records."""
        from pyspark.sql import functions as f

        from barnabas.pipeline.streams.dead_letters import dead_letters

        lines = [sent.line(source.topic) for sent in self.written[source.topic][done:]]
        if not lines:
            return []
        still = _Still(self, lines)
        found = dead_letters([source], still, pipeline)
        rows = found.select("key", "value", f.unix_millis("timestamp").alias("at"), "headers")
        return [
            Record(
                None if row.key is None else bytes(row.key).decode(errors="replace"),
                None if row.value is None else bytes(row.value),
                _EPOCH + row.at * _MILLISECOND,
                {header.key: bytes(header.value or b"") for header in row.headers},
            )
            for row in rows.collect()
        ]

    def _pinned(self, name: str, make: Callable[[], str]) -> str:
        if name not in self._pins:
            self._pins[name] = make()
        return self._pins[name]


class _Still:
    """The same topics, with given records, as frames that are no streams."""

    def __init__(self, topics: _Topics, lines: list[str]) -> None:
        self.spark = topics.spark
        self.dead_letters = topics.dead_letters
        self.binding = topics.binding
        self.first_ends = topics.first_ends
        self._lines = lines

    def records(self, source: Source) -> DataFrame:
        """Return the records."""
        lines = self.spark.createDataFrame([(line,) for line in self._lines], "value STRING")
        return _unfolded(lines, source.topic)


class _Query:
    """One output of a pipeline under test."""

    def __init__(self, output: Output, topics: _Topics, checkpoint: str) -> None:
        from pyspark.sql import functions as f

        self.output = output
        self._spark = topics.spark
        self._mode = output.mode()
        self._feed = _Feed(topics)
        frame, self._key, self._value = output.records(self._feed)
        self._frame = frame.select("key", "value", f.unix_millis("timestamp").alias("at"))
        self._checkpoint = checkpoint
        self._query: StreamingQuery | None = None
        self._written: list[_Sent] = []

    def start(self) -> None:
        from barnabas.pipeline.streams.query_settings import query_settings

        with query_settings(self._spark, {"spark.sql.shuffle.partitions": "1"}):
            self._query = (
                self._frame.writeStream.foreachBatch(self._write)
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
        try:
            self._query.processAllAvailable()
        except StreamingQueryException as error:
            raise PipelineError(f"{self.output.topic}: {why(error)}") from error

    def take(self) -> list[_Sent]:
        written, self._written = self._written, []
        return written

    def record(self, sent: _Sent) -> Record:
        return Record(_python(self._key, sent.key), _python(self._value, sent.value), sent.at)

    def _write(self, frame: DataFrame, _batch_id: int) -> None:
        for row in frame.collect():
            at = _EPOCH + (row.at or 0) * _MILLISECOND
            self._written.append(_Sent(_bytes(row.key), _bytes(row.value), at))


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


def _session() -> SparkSession:
    from pyspark.sql import SparkSession

    session = SparkSession.getActiveSession()
    if session is None:
        from barnabas.pipeline.session import SessionOptions, start_session

        session = start_session(
            SessionOptions(
                app_name="barnabas-pipeline-test", shuffle_partitions=1, small_batches=True
            )
        )
    return session


_ids = iter(range(1, 2**31))


def _next_id() -> int:
    return next(_ids)


def _python(writer: Writer, data: bytes | None) -> Any:
    return None if data is None else writer.to_python(data)


def _bytes(data: Any) -> bytes | None:
    return None if data is None else bytes(data)


def _text(data: bytes | None) -> str | None:
    return None if data is None else base64.b64encode(data).decode()


def _micros(at: datetime) -> int:
    return (at - _EPOCH) // _MICROSECOND


def _duration(by: str | float | timedelta) -> timedelta:
    if isinstance(by, timedelta):
        return by
    if isinstance(by, str):
        match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([a-z]+?)s?", by.strip())
        if match is None or match[2] not in _UNITS:
            raise ValueError(f"a duration is '90 seconds' or '2 minutes', not {by!r}")
        return timedelta(seconds=float(match[1]) * _UNITS[match[2]])
    return timedelta(seconds=by)


def _hashable(key: Any) -> Any:
    return tuple(key.values()) if isinstance(key, dict) else key
