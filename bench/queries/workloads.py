"""What is measured of an engine: rates, latencies, starts; each a function that returns figures."""

from __future__ import annotations

import itertools
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Final

import httpx
from confluent_kafka import Consumer, Producer, TopicPartition

from bench.barnabas_server import BarnabasServer
from bench.measure import percentile
from bench.queries.engines import Engine, EngineAccess, SqlServer
from bench.queries.jobs import (
    AVRO,
    AVRO_SOURCE,
    KEYS,
    OTHER,
    PARTITIONS,
    SCHEMA,
    SOURCE,
    Job,
    Results,
    avro_value_of,
    batches,
    key_of,
    make_sources,
    once_each,
    plain_key,
    value_of,
    window_keys,
)
from bench.registry.servers import OwnRegistry
from bench.settings import Settings
from bench.wire import WireClient, make_topic, produce_first

Figures = dict[str, float]
MS_PER_SECOND: Final = 1_000
_BACK_MS: Final = 45 * 60 * 1_000
"""The records' clock begins so long ago: brokers refuse timestamps an hour ahead of now."""
_APPEND_MS: Final = 60 * 1_000
RATES: Final = tuple(int(5_000 * 1.25**step) for step in range(23))
"""Of the search for the highest one: from 5,000 to 678,000 records per second."""
_RATE_SECONDS: Final = 12.0
COMMITTED_SECONDS: Final = 3.0
"""So long after a result, all engines have committed what led to it: that is part of its cost."""
_RATE_P99_MS: Final = 1_000.0


@dataclass(slots=True)
class QuerySession:
    """A broker with the sources' topics, and how many records the stream has so far."""

    port: int
    broker_pid: int
    settings: Settings
    access: EngineAccess
    records: int = 0
    avro_records: int = 0
    counts: Counter[bytes] = field(default_factory=Counter)
    """The right results of the windowed count of the appended records, by key."""
    clock_ms: int = field(default_factory=lambda: time.time_ns() // 1_000_000 - _BACK_MS)
    _names: itertools.count[int] = field(default_factory=itertools.count)

    def job(self, engine: Engine, kind: str, *, is_exactly_once: bool = False) -> Job:
        sink = f"results-{engine.name}-{next(self._names)}"
        make_topic(self.port, sink, PARTITIONS)
        return Job(kind, sink, is_exactly_once)

    def total(self, kind: str) -> int:
        """The number of records that a job of this kind reads."""
        return self.avro_records if kind == AVRO else self.records

    def append(self, records: int, kind: str = "count") -> Callable[[], None]:
        """Encode so many records now, for a job of this kind; what is returned writes them, one
        batch after the other."""
        at_ms = self.clock_ms
        self.clock_ms += _APPEND_MS
        if kind == AVRO:
            made = batches(
                self.avro_records, records, at_ms, lambda n: avro_value_of(n, self.access.schema_id)
            )
            encoded = [(AVRO_SOURCE, *batch) for batch in made]
            self.avro_records += records
        else:
            encoded = [(OTHER, *batch) for batch in once_each(at_ms)]
            made = batches(self.records, records, at_ms, value_of)
            encoded += [(SOURCE, *batch) for batch in made]
            self.counts.update(window_keys(self.records, records, at_ms))
            self.records += records

        def write() -> None:
            with WireClient(self.port) as client:
                for topic, partition, batch in encoded:
                    if error := client.produce_batch(topic, partition, batch):
                        raise RuntimeError(f"the source's records: {error.name}")

        return write


@contextmanager
def query_session(settings: Settings) -> Iterator[QuerySession]:
    """A broker with the sources' topics, and a schema registry, for as long as this lasts."""
    directory = settings.directory
    with BarnabasServer(directory / "query-broker") as broker, ExitStack() as stack:
        broker.format()
        broker.start()
        produce_first(broker.port, "bench-first")
        make_sources(broker.port)
        bootstrap = f"127.0.0.1:{broker.port}"
        registry = stack.enter_context(
            OwnRegistry(directory / "query-registry", bootstrap, "_schemas")
        )
        registry.start()
        registry.await_answer("GET", "/subjects", settings.timeout_seconds)
        url = f"http://127.0.0.1:{registry.port}"
        answer = httpx.post(
            f"{url}/subjects/{AVRO_SOURCE}-value/versions", json={"schema": SCHEMA}, trust_env=False
        )
        answer.raise_for_status()
        access = EngineAccess(bootstrap, url, answer.json()["id"])
        yield QuerySession(broker.port, broker.pid, settings, access)


class Reader:
    """Reads the results of a job with a consumer in a separate thread."""

    def __init__(self, session: QuerySession, job: Job) -> None:
        self._consumer = Consumer(
            {
                "bootstrap.servers": session.access.bootstrap,
                "group.id": f"bench-{job.sink}",
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
                "fetch.wait.max.ms": 10,
                # With 100,000 results in its queue librdkafka stops fetching for a second by
                # default, but they are taken within 0.2 s.
                "fetch.queue.backoff.ms": 10,
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
                key, value = plain_key(message.key() or b""), message.value() or b"null"
                found.append((key, self.results.take(key, value)))
        return found

    def close(self) -> None:
        self._consumer.close()


@dataclass(frozen=True, slots=True)
class Rate:
    """`events_s`: per second, end to end. `first_s`: from the start of the job to its first result.

    `cpu_us`: of all the engine's processes for an event; `memory_mb`: of all of them, afterwards.
    """

    events_s: float
    first_s: float
    cpu_us: float
    memory_mb: float


def rate(
    session: QuerySession,
    engine: Engine,
    kind: str,
    *,
    is_exactly_once: bool = False,
) -> Rate:
    """Measure how fast records are processed, and at which cost.

    The job starts on a stream that has records already; when it has caught up, and has done a
    warm-up of a tenth, the records that count are appended at once.
    """
    settings = session.settings
    job = session.job(engine, kind, is_exactly_once=is_exactly_once)
    session.append(settings.query_records // 10, kind)()
    caught_up = session.total(kind)
    write = session.append(settings.query_records, kind)
    reader = Reader(session, job)
    try:
        began = time.monotonic()
        engine.run(job)
        reader.await_covered(engine, 1, settings.timeout_seconds)
        first = time.monotonic() - began
        reader.await_covered(engine, caught_up, settings.timeout_seconds)
        time.sleep(COMMITTED_SECONDS)
        used_s = engine.cpu_seconds()
        began = time.monotonic()
        write()
        reader.await_covered(engine, session.total(kind), settings.timeout_seconds)
        took = time.monotonic() - began
        time.sleep(COMMITTED_SECONDS)
        used_s = engine.cpu_seconds() - used_s
        memory_mb = engine.memory_megabytes()
        reader.results.check(session.total(kind), session.counts)
    finally:
        reader.close()
        engine.end()
    records = settings.query_records
    return Rate(records / took, first, used_s / records * 1e6, memory_mb)


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


def highest_rate(session: QuerySession, engine: Engine) -> Figures:
    """The highest of `RATES` at which the p99 from a record to its result is a second at most."""
    job = session.job(engine, "count")
    reader = Reader(session, job)
    timeout = session.settings.timeout_seconds
    low, high = -1, len(RATES)
    try:
        engine.run(job)
        reader.await_covered(engine, session.records, timeout)
        while high - low > 1:
            middle = (low + high) // 2
            if _keeps_up(session, engine, reader, RATES[middle]):
                low = middle
            else:
                high = middle
            reader.await_covered(engine, session.records, timeout)
    finally:
        reader.close()
        engine.end()
    return {"query_highest_rate_s": float(RATES[low]) if low >= 0 else 0.0}


def _keeps_up(session: QuerySession, engine: Engine, reader: Reader, per_second: int) -> bool:
    """Write at a constant rate for a while: whether the second half's results are in time."""
    load = Batches(session, per_second)
    latencies: list[float] = []
    done: Counter[bytes] = Counter()
    load.start()
    try:
        deadline = time.monotonic() + _RATE_SECONDS + 2 * _RATE_P99_MS / MS_PER_SECOND
        while time.monotonic() < deadline and (load.is_running or sum(done.values()) < load.count):
            for key, newly in reader.take():
                now = time.monotonic()
                for round_number in range(done[key], done[key] + newly):
                    sent_s, since_s = load.sent(key, round_number)
                    if since_s > _RATE_SECONDS / 2:
                        latencies.append(now - sent_s)
                done[key] += newly
            engine.check_alive()
    finally:
        load.stop()
    session.records += load.count
    latencies.sort()
    is_complete = sum(done.values()) == load.count
    return (
        is_complete
        and load.count >= 0.97 * per_second * _RATE_SECONDS
        and percentile(latencies, 0.99) * MS_PER_SECOND <= _RATE_P99_MS
    )


class Batches:
    """A producer of batches at a constant rate, all of one time: each has each key of a partition
    once, so the n-th result of a key is of the n-th batch."""

    def __init__(self, session: QuerySession, records_per_second: int) -> None:
        at_ms = session.clock_ms
        session.clock_ms += _APPEND_MS
        self._batches = list(once_each(at_ms))
        self._port = session.port
        self._pause_s = KEYS / PARTITIONS / records_per_second
        self._times: list[list[float]] = [[] for _ in range(PARTITIONS)]
        self._began_s = 0.0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run)

    @property
    def is_running(self) -> bool:
        return self._thread.is_alive()

    @property
    def count(self) -> int:
        """The number of records written so far."""
        return sum(map(len, self._times)) * KEYS // PARTITIONS

    def sent(self, key: bytes, number: int) -> tuple[float, float]:
        """When a key's record with this number was sent: the time, and how long after the start."""
        window_bytes = 8
        partition = int(key[1:-window_bytes]) % PARTITIONS
        at_s = self._times[partition][number]
        return at_s, at_s - self._began_s

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._ended.set()
        self._thread.join()

    def _run(self) -> None:
        self._began_s = due_s = time.monotonic()
        with WireClient(self._port) as client:
            while due_s < self._began_s + _RATE_SECONDS:
                if self._ended.wait(max(0.0, due_s - time.monotonic())):
                    return
                number = sum(map(len, self._times)) % PARTITIONS
                partition, batch = self._batches[number]
                self._times[partition].append(time.monotonic())
                if error := client.produce_batch(SOURCE, partition, batch):
                    raise RuntimeError(f"the source's records: {error.name}")
                due_s += self._pause_s
                if time.monotonic() > self._began_s + _RATE_SECONDS:
                    return


class Load:
    """A producer at a constant rate that remembers when it sent each record of a key."""

    def __init__(self, session: QuerySession, records_per_second: int) -> None:
        self.sent: dict[str, deque[float]] = {f"k{number}": deque() for number in range(KEYS)}
        self.count = 0
        self._first = session.records
        self._rate = records_per_second
        self._producer = Producer({"bootstrap.servers": session.access.bootstrap, "linger.ms": 5})
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
