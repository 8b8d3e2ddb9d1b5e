"""Runs plans in memory: the reference for every other way to run them, and the test kit.

Topics are lists of records. A record that is piped into a topic runs through every query that
reads it, and on through what they write, before the next one, as in Kafka Streams'
TopologyTestDriver: repartitioned records wait in the queue of their channel, and of all queues
the one whose head is earliest is next.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter, defaultdict, deque
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from barnabas.java.hash import murmur2
from barnabas.schemas.registry_client import SchemaStore
from barnabas.sql.plan.steps import QueryPlan
from barnabas.sql.runtime.build import build
from barnabas.sql.runtime.evaluation import Compiler, Log, no_log
from barnabas.sql.runtime.records import Record
from barnabas.sql.runtime.rows_encoding import encode_key, partition_of
from barnabas.sql.runtime.stage import Channel, Result, Stage
from barnabas.sql.runtime.topics import TopicReader, TopicRecord, TopicWriter


class PlanDriver:
    """One plan over rows, with any number of partitions."""

    def __init__(
        self, plan: QueryPlan, compiler: Compiler, *, partitions: int = 1, log: Log = no_log
    ) -> None:
        self.plan = plan
        self.stores: dict[tuple[int, str], MemoryStore] = {}
        """By partition and name."""
        self._partitions = [build(plan, compiler, log) for _ in range(partitions)]
        self.bind()
        self._channels: dict[int, tuple[int, int]] = {}
        for stage in self._partitions[0].stages:
            for index, given in enumerate(stage.inputs):
                if isinstance(given, Channel):
                    self._channels[given.index] = (stage.index, index)
        self._queues: dict[tuple[int, int, int], deque[tuple[int, Record]]] = defaultdict(deque)
        self._count = 0

    def bind(self) -> None:
        """Open the stores in `stores`, as at the start of a batch."""
        for partition, staged in enumerate(self._partitions):
            for stage in staged.stages:
                stage.bind(partial(self._open, partition))

    def _open(self, partition: int, name: str) -> MemoryStore:
        return self.stores.setdefault((partition, name), MemoryStore())

    @property
    def stages(self) -> tuple[Stage, ...]:
        """The stages of the first partition."""
        return self._partitions[0].stages

    def pipe(self, stage: int, given: int, record: Record) -> list[Record]:
        """Run one record of a source through the plan: what comes out of the sink, in order."""
        self._enqueue(stage, given, record)
        written: list[Record] = []
        while self._queues:
            place = min(
                self._queues,
                key=lambda p: (self._queues[p][0][1].timestamp_ms, self._queues[p][0][0]),
            )
            queue = self._queues[place]
            _, next_record = queue.popleft()
            if not queue:
                del self._queues[place]
            self._run(*place, next_record, written)
        return written

    def _run(
        self, stage_index: int, given: int, partition: int, record: Record, written: list[Record]
    ) -> None:
        stage = self._partitions[partition].stages[stage_index]
        for output, emitted in stage.process(given, record):
            to = stage.outputs[output]
            if isinstance(to, Channel):
                self._enqueue(*self._channels[to.index], emitted)
            else:
                written.append(emitted)

    def _enqueue(self, stage: int, given: int, record: Record) -> None:
        count = len(self._partitions)
        if record.key is None:
            partition = record.partition % count
        else:
            partition = partition_of(record.key, count)
        self._count += 1
        self._queues[stage, given, partition].append((self._count, record))

    def flush(self) -> None:
        """Write what stages keep outside of their stores, as at the end of a batch."""
        for staged in self._partitions:
            for stage in staged.stages:
                stage.flush()


class Driver:
    """Queries over topics of bytes. A record that one of them writes is read by the others."""

    def __init__(
        self,
        plans: Sequence[QueryPlan],
        compiler: Compiler,
        *,
        schemas: SchemaStore | None = None,
        partitions: int = 1,
        log: Log = no_log,
    ) -> None:
        self.topics: dict[str, list[TopicRecord]] = defaultdict(list)
        self._schemas = schemas
        self._partitions = partitions
        self._log = log
        self._offsets: Counter[tuple[str, int]] = Counter()
        self._queries: list[TopicsDriver] = []
        for plan in plans:
            self.add(plan, compiler)

    def add(self, plan: QueryPlan, compiler: Compiler, *, replaces: str | None = None) -> None:
        """Run one more query, on the records from now on.

        `replaces`: the id of a query that ends, and whose state the new one goes on with.
        """
        driver = PlanDriver(plan, compiler, partitions=self._partitions, log=self._log)
        for old in self._queries:
            if old.driver.plan.query_id == replaces:
                driver.stores = old.driver.stores
                driver.bind()
        if replaces is not None:
            self.remove(replaces)
        self._queries.append(TopicsDriver(driver, self._schemas, self._log))

    def remove(self, query_id: str) -> None:
        """End a query."""
        self._queries = [q for q in self._queries if q.driver.plan.query_id != query_id]

    def pipe(self, topic: str, record: TopicRecord) -> None:
        """Append a record to a topic and run all that follows from it."""
        if record.partition is None:
            hashed = murmur2(record.key) if record.key is not None else 0
            record.partition = (hashed & 0x7FFFFFFF) % self._partitions
        place = (topic, record.partition)
        record.offset = self._offsets[place]
        self._offsets[place] += 1
        self.topics[topic].append(record)
        for query in self._queries:
            made = [one for result in query.pipe(topic, record) for one in query.written(result)]
            for sink_topic, written in made:
                self.pipe(sink_topic, written)


class TopicsDriver:
    """One plan over the records of topics: bytes in, and what its sink writes."""

    def __init__(self, driver: PlanDriver, schemas: SchemaStore | None, log: Log) -> None:
        self.driver = driver
        self._readers: dict[str, list[tuple[int, int, TopicReader]]] = defaultdict(list)
        self._writers: list[tuple[str, TopicWriter]] = []
        for stage in driver.stages:
            for index, given in enumerate(stage.inputs):
                if not isinstance(given, Channel):
                    reader = TopicReader(given, schemas, log)
                    self._readers[given.topic].append((stage.index, index, reader))
            for sink in stage.outputs:
                if not isinstance(sink, Channel | Result):
                    writer = TopicWriter(sink, driver.plan.window, schemas, log)
                    self._writers.append((sink.topic, writer))

    @property
    def topics(self) -> Sequence[str]:
        """The topics that the plan reads."""
        return tuple(self._readers)

    def pipe(self, topic: str, record: TopicRecord) -> list[Record]:
        """Return the plan's output for one record of a topic."""
        written: list[Record] = []
        for stage, index, reader in self._readers.get(topic, ()):
            row = reader.read(record)
            if row is not None:
                written += self.driver.pipe(stage, index, row)
        return written

    def written(self, result: Record) -> Iterator[tuple[str, TopicRecord]]:
        """The plan's output as its sink writes it, with the topic."""
        for topic, writer in self._writers:
            made = writer.write(result)
            if made is not None:
                yield topic, made


class MemoryStore:
    """A Store whose entries lie in a dictionary, with a sorted list of the encoded keys."""

    def __init__(self) -> None:
        self._entries: dict[bytes, tuple[tuple[Any, ...], Any]] = {}
        self._sorted: list[bytes] = []

    def get(self, key: tuple[Any, ...]) -> Any:
        entry = self._entries.get(encode_key(key))
        return entry[1] if entry else None

    def get_all(self, keys: Sequence[tuple[Any, ...]]) -> list[Any]:
        return [self.get(key) for key in keys]

    def put(self, key: tuple[Any, ...], value: Any) -> None:
        encoded = encode_key(key)
        if value is None:
            if self._entries.pop(encoded, None) is not None:
                del self._sorted[bisect_left(self._sorted, encoded)]
            return
        if encoded not in self._entries:
            insort(self._sorted, encoded)
        self._entries[encoded] = (key, value)

    def put_all(self, keys: Sequence[tuple[Any, ...]], values: Sequence[Any]) -> None:
        for key, value in zip(keys, values, strict=True):
            self.put(key, value)

    def range(
        self, low: tuple[Any, ...], high: tuple[Any, ...]
    ) -> Iterator[tuple[tuple[Any, ...], Any]]:
        start = bisect_left(self._sorted, encode_key(low))
        stop = bisect_left(self._sorted, encode_key(high))
        return iter([self._entries[key] for key in self._sorted[start:stop]])

    def numbered(
        self,
        head: tuple[Any, ...],
        keys: Sequence[tuple[Any, ...]],
        lows: Sequence[int],
        highs: Sequence[int],
    ) -> list[list[tuple[int, int, Any]]]:
        return [
            [
                (*place[-2:], value)
                for place, value in self.range((*head, *key, low), (*head, *key, high + 1))
            ]
            for key, low, high in zip(keys, lows, highs, strict=True)
        ]

    def __len__(self) -> int:
        return len(self._entries)
