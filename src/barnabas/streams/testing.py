"""The test kit: a pipeline on given records, in virtual time, without a broker.

    with PipelineTest(pipeline) as test:
        test.pipe("stations", {"name": "North", "city": "Ghent"}, key="s1")
        test.pipe("charging-events", {"station": "s1", "kwh": 2.5}, at=10)
        test.advance("2 minutes")
        assert test.read("energy-per-minute") == [...]

It is the pipeline itself that runs, in Spark, formats and state included: topics are memory, and
results are read as Python values. Records piped between two reads are one micro-batch.
"""

from __future__ import annotations

import json
import re
import shutil
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from barnabas.schemas.memory_registry import MemoryRegistry
from barnabas.streams.errors import PipelineError
from barnabas.streams.memory_topics import Query, Record, Sent, Topics, micros
from barnabas.streams.outputs import Output
from barnabas.streams.pipeline import Pipeline, as_pipeline

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["PipelineTest", "Record"]

_START: Final = datetime(2026, 1, 1, tzinfo=UTC)
_UNITS: Final = {"second": 1, "minute": 60, "hour": 3600, "day": 86400, "millisecond": 0.001}
Moment = datetime | str | float
"""A datetime (UTC where it has no zone), its ISO text, or seconds after the test's start."""


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
        self._schemas = MemoryRegistry(schemas or {})
        self._topics = Topics(spark or _session(), self._schemas, self.pipeline.dead_letters)
        self._directory = tempfile.mkdtemp(prefix="barnabas-pipeline-test-")
        self._queries = [self._query(output) for output in self.pipeline.outputs]
        self._letters_read: dict[str, int] = {}
        self._unread: dict[str, list[Record]] = defaultdict(list)
        self._sources = {source.topic: source for source in self.pipeline.sources()}
        self._waiting: dict[str, list[str]] = defaultdict(list)

    def __enter__(self) -> PipelineTest:
        return self

    def __exit__(self, *_: object) -> None:
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
        are written as they are, to see what happens to malformed ones; None is a null. `at` is the
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
            Sent(
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

        Records piped so far are processed first. A window ends when time has passed its end by the
        watermark's delay.
        """
        self.advance_to(self.now + _duration(by))

    def advance_to(self, at: Moment) -> None:
        """Let time pass until a moment."""
        self.process()
        self.now = max(self.now, self._moment(at))
        for topic in self._sources:
            tick = json.dumps({"topic": topic, "tick": micros(self.now)})
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

    def _query(self, output: Output) -> Query:
        directory = f"{self._directory}/{output.topic}"
        query = Query(output, self._topics, directory, self.pipeline.name)
        query.start()
        return query

    def _write(self, topic: str, sent: Sent) -> None:
        written = self._topics.put(topic, sent)
        self._waiting[topic].append(written.line(topic))

    def _read_letters(self) -> list[Record]:
        letters = []
        for source in self.pipeline.sources():
            done = self._letters_read.get(source.topic, 0)
            self._letters_read[source.topic] = len(self._topics.written.get(source.topic, ()))
            letters += self._topics.letters(source, done, self.pipeline.name)
        failed, self._topics.failed = self._topics.failed, []
        return letters + failed

    def _moment(self, at: Moment) -> datetime:
        if isinstance(at, str):
            at = datetime.fromisoformat(at)
        if isinstance(at, datetime):
            return at.replace(tzinfo=UTC) if at.tzinfo is None else at
        return self.start_time + timedelta(seconds=at)


def _session() -> SparkSession:
    from pyspark.sql import SparkSession

    session = SparkSession.getActiveSession()
    if session is None:
        from barnabas.spark.session import SessionOptions, start_session

        session = start_session(
            SessionOptions(
                app_name="barnabas-pipeline-test", shuffle_partitions=1, small_batches=True
            )
        )
    return session


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
