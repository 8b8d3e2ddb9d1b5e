"""Runs a plan stage by stage over batches, as a host like Spark does: records cross stages as
bytes, state is in stores as bytes, and every batch binds its stages again."""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

from barnabas.sql.plan.steps import QueryPlan
from barnabas.sql.runtime.build import build
from barnabas.sql.runtime.driver import MemoryStore
from barnabas.sql.runtime.evaluation import Compiler, no_log
from barnabas.sql.runtime.records import Record, WindowBounds
from barnabas.sql.runtime.rows_encoding import (
    pack,
    partition_of,
    unpack,
)
from barnabas.sql.runtime.stage import Channel, Stage
from barnabas.sql.runtime.stores import Store
from barnabas.sql.runtime.topics import TopicReader, TopicRecord, TopicWriter


def pack_record(record: Record) -> bytes:
    """The bytes of a record on its way between two stages."""
    return pack(
        (
            record.key,
            record.value,
            record.timestamp_ms,
            record.old_value,
            record.window and tuple(record.window),
            record.headers,
            record.partition,
            record.offset,
        )
    )


def unpack_record(data: bytes) -> Record:
    """The record that `pack_record` was given."""
    key, value, timestamp_ms, old_value, window, headers, partition, offset = unpack(data)
    return Record(
        None if key is None else tuple(key),
        value,
        timestamp_ms,
        WindowBounds(*window) if window else None,
        tuple((name, content) for name, content in headers),
        partition,
        offset,
        old_value,
    )


class BytesStore(MemoryStore):
    """Values as bytes."""

    def get(self, key: tuple[Any, ...]) -> Any:
        data = super().get(key)
        return None if data is None else unpack(data)

    def put(self, key: tuple[Any, ...], value: Any) -> None:
        super().put(key, None if value is None else pack(value))

    def range(
        self, low: tuple[Any, ...], high: tuple[Any, ...]
    ) -> Iterator[tuple[tuple[Any, ...], Any]]:
        return ((key, unpack(data)) for key, data in super().range(low, high))


Waiting = dict[tuple[int, int], list[list[bytes]]]
"""For an input and a partition of its stage: a queue from each partition of who wrote it."""


class BatchHost:
    def __init__(self, plan: QueryPlan, compiler: Compiler, partitions: int) -> None:
        self._plan = plan
        self._compiler = compiler
        self._partitions = partitions
        self._stores: dict[tuple[int, int, str], BytesStore] = {}

    def run(self, batch: Sequence[tuple[str, TopicRecord]]) -> list[TopicRecord]:
        """Return what a batch of records of topics makes the sink write."""
        stages = build(self._plan, self._compiler).stages
        waiting: dict[int, Waiting] = defaultdict(lambda: defaultdict(list))
        written: list[TopicRecord] = []
        for stage in stages:
            self._read(stage, batch, waiting[stage.index])
            for partition in range(self._partitions):
                for to, queue in self._run(stage, partition, waiting[stage.index]).items():
                    output = stage.outputs[to]
                    if isinstance(output, Channel):
                        self._send(stages, output, queue, waiting)
                    else:
                        writer = TopicWriter(output, self._plan.window, None, no_log)  # type: ignore[arg-type]
                        made = [writer.write(unpack_record(data)) for data in queue]
                        written += [record for record in made if record is not None]
        return written

    def _read(
        self, stage: Stage, batch: Sequence[tuple[str, TopicRecord]], waiting: Waiting
    ) -> None:
        for index, given in enumerate(stage.inputs):
            if isinstance(given, Channel):
                continue
            reader = TopicReader(given, None, no_log)
            rows = [reader.read(record) for topic, record in batch if topic == given.topic]
            self._divide(index, [pack_record(row) for row in rows if row is not None], waiting)

    def _send(
        self,
        stages: Sequence[Stage],
        channel: Channel,
        queue: list[bytes],
        waiting: dict[int, Waiting],
    ) -> None:
        for stage in stages:
            if channel in stage.inputs:
                self._divide(stage.inputs.index(channel), queue, waiting[stage.index])

    def _divide(self, index: int, queue: list[bytes], waiting: Waiting) -> None:
        divided: dict[int, list[bytes]] = defaultdict(list)
        for data in queue:
            record = unpack_record(data)
            key = record.key
            place = record.partition if key is None else partition_of(key, self._partitions)
            divided[place % self._partitions].append(data)
        for place, part in divided.items():
            waiting[index, place].append(part)

    def _run(self, stage: Stage, partition: int, waiting: Waiting) -> dict[int, list[bytes]]:
        def open_store(name: str) -> Store:
            return self._stores.setdefault((stage.index, partition, name), BytesStore())

        stage.bind(open_store)
        emitted: dict[int, list[bytes]] = defaultdict(list)
        queues = [
            (index, [unpack_record(data) for data in queue])
            for (index, place), parts in sorted(waiting.items())
            if place == partition
            for queue in parts
        ]
        for index, record in _by_head(queues):
            for output, made in stage.process(index, record):
                emitted[output].append(pack_record(made))
        stage.flush()
        return emitted


def _by_head(queues: list[tuple[int, list[Record]]]) -> Iterator[tuple[int, Record]]:
    """Records of queues in their order; of all heads, the earliest first, then by input."""
    heads = [
        (queue[0].timestamp_ms, index, number, 0) for number, (index, queue) in enumerate(queues)
    ]
    heapq.heapify(heads)
    while heads:
        _, index, number, place = heapq.heappop(heads)
        queue = queues[number][1]
        if place + 1 < len(queue):
            later = queue[place + 1].timestamp_ms
            heapq.heappush(heads, (later, index, number, place + 1))
        yield index, queue[place]
