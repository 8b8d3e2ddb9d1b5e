"""What is measured of an engine: rates, latencies, starts; each a function that returns figures."""

from __future__ import annotations

import itertools
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from confluent_kafka import Consumer, Producer, TopicPartition

from bench.measure import percentile
from bench.queries.engines import Engine, SqlServer
from bench.queries.jobs import (
    KEYS,
    PARTITIONS,
    SOURCE,
    Job,
    Results,
    batches,
    key_of,
    value_of,
)
from bench.settings import Settings
from bench.wire import WireClient, make_topic

Figures = dict[str, float]
MS_PER_SECOND: Final = 1_000


@dataclass(slots=True)
class QuerySession:
    """A broker with the sources' topics, and how many records the stream has so far."""

    port: int
    settings: Settings
    records: int = 0
    _names: itertools.count[int] = field(default_factory=itertools.count)

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self.port}"

    def job(self, engine: Engine, kind: str, *, is_exactly_once: bool = False) -> Job:
        sink = f"results-{engine.name}-{next(self._names)}"
        make_topic(self.port, sink, PARTITIONS)
        return Job(kind, sink, is_exactly_once)

    def append(self, records: int) -> Callable[[], None]:
        """Encode so many records now; what is returned writes them, one batch after the other."""
        encoded = list(batches(self.records, records))
        self.records += records

        def write() -> None:
            with WireClient(self.port) as client:
                for partition, batch in encoded:
                    if error := client.produce_batch(SOURCE, partition, batch):
                        raise RuntimeError(f"the source's records: {error.name}")

        return write


class Reader:
    """Reads the results of a job in a thread of its own consumer."""

    def __init__(self, session: QuerySession, job: Job) -> None:
        self._consumer = Consumer(
            {
                "bootstrap.servers": session.bootstrap,
                "group.id": f"bench-{job.sink}",
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
                "fetch.wait.max.ms": 10,
            }
        )
        self._consumer.assign([TopicPartition(job.sink, each, 0) for each in range(PARTITIONS)])
        self.results = Results(job.kind)

    def await_covered(self, engine: Engine, records: int, timeout_seconds: float) -> None:
        """Read until the results cover so many records. Raises RuntimeError."""
        deadline = time.monotonic() + timeout_seconds
        while self.results.covered < records:
            self.take()
            engine.check_alive()
            if time.monotonic() > deadline:
                raise RuntimeError(
                    f"{engine.name}: results of {self.results.covered} of {records} records "
                    f"after {timeout_seconds:g} s"
                )

    def take(self) -> list[tuple[bytes, int]]:
        """The keys of new results, with the number of records that each newly covers."""
        found = []
        for message in self._consumer.consume(10_000, 0.01):
            if message.error() is None:
                key, value = message.key() or b"", message.value() or b"null"
                found.append((key, self.results.take(key, value)))
        return found

    def close(self) -> None:
        self._consumer.close()


def rate(
    session: QuerySession,
    engine: Engine,
    kind: str,
    *,
    is_exactly_once: bool = False,
) -> tuple[float, float]:
    """Events per second, end to end; and seconds from the start of the job to its first result.

    The job starts on a stream that has records already; when it has caught up, and has done a
    warm-up of a tenth, the records that count are appended at once.
    """
    settings = session.settings
    job = session.job(engine, kind, is_exactly_once=is_exactly_once)
    session.append(settings.query_records // 10)()
    write = session.append(settings.query_records)
    reader = Reader(session, job)
    try:
        began = time.monotonic()
        engine.run(job)
        reader.await_covered(engine, 1, settings.timeout_seconds)
        first = time.monotonic() - began
        reader.await_covered(
            engine, session.records - settings.query_records, settings.timeout_seconds
        )
        began = time.monotonic()
        write()
        reader.await_covered(engine, session.records, settings.timeout_seconds)
        took = time.monotonic() - began
    finally:
        reader.close()
        engine.end()
    return settings.query_records / took, first


def latency(session: QuerySession, engine: Engine) -> Figures:
    """From a record to the result that counts it, at a constant rate; the second half counts."""
    settings = session.settings
    job = session.job(engine, "count")
    reader = Reader(session, job)
    load = Load(session, settings.query_rate)
    latencies: list[float] = []
    try:
        engine.run(job)
        reader.await_covered(engine, session.records, settings.timeout_seconds)
        load.start()
        began = time.monotonic()
        while (elapsed := time.monotonic() - began) < settings.query_seconds:
            found = reader.take()
            now = time.monotonic()
            for key, newly in found:
                times = load.sent[key[:-8].decode()]
                for _ in range(newly):
                    sent = times.popleft()
                    if elapsed > settings.query_seconds / 2:
                        latencies.append(now - sent)
            engine.check_alive()
    finally:
        load.stop()
        reader.close()
        engine.end()
    session.records += load.count
    if not latencies:
        raise RuntimeError(f"{engine.name}: no results in the second half")
    latencies.sort()
    return {
        "query_latency_p50_ms": percentile(latencies, 0.5) * MS_PER_SECOND,
        "query_latency_p99_ms": percentile(latencies, 0.99) * MS_PER_SECOND,
    }


class Load:
    """A producer at a constant rate that remembers when it sent each record of a key."""

    def __init__(self, session: QuerySession, records_per_second: int) -> None:
        self.sent: dict[str, deque[float]] = {f"k{number}": deque() for number in range(KEYS)}
        self.count = 0
        self._first = session.records
        self._rate = records_per_second
        self._producer = Producer({"bootstrap.servers": session.bootstrap, "linger.ms": 5})
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._ended.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        began = time.monotonic()
        while not self._ended.wait(0.01):
            due = int((time.monotonic() - began) * self._rate)
            while self.count < due:
                number = self._first + self.count
                partition = number % PARTITIONS
                key = key_of(number, partition)
                self.sent[key.decode()].append(time.monotonic())
                self._producer.produce(SOURCE, value_of(number), key, partition)
                self.count += 1
            self._producer.poll(0)
        self._producer.flush()


def pull(session: QuerySession, server: SqlServer) -> Figures:
    """Pull queries by key, one after the other, on a table that is filled."""
    settings = session.settings
    job = session.job(server, "count")
    session.append(settings.query_records // 10)()
    reader = Reader(session, job)
    name = job.sink.replace("-", "_")
    try:
        server.run(job)
        reader.await_covered(server, session.records, settings.timeout_seconds)
        took = []
        for number in range(settings.query_pulls):
            began = time.monotonic()
            rows = server.rows(f"SELECT * FROM {name} WHERE k = 'k{number % KEYS}';")
            took.append(time.monotonic() - began)
            if not rows:
                raise RuntimeError(f"no rows of k{number % KEYS}")
    finally:
        reader.close()
        server.end()
    took.sort()
    return {
        "query_pull_p50_ms": percentile(took, 0.5) * MS_PER_SECOND,
        "query_pull_p99_ms": percentile(took, 0.99) * MS_PER_SECOND,
    }
