"""The task that mirrors topics: what is new in its partitions, as one split in order.

Ends are asked of the source's brokers, so each micro-batch is bounded. Records stay bytes if
nothing transforms them. After each micro-batch, offset syncs say at which offsets the target has
them. Source: MirrorSourceTask (Kafka 4.3).
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from confluent_kafka import KafkaError, Message, Producer

from barnabas.connect.config.values import names
from barnabas.connect.connectors.base import (
    Figure,
    Receipts,
    SinkRange,
    SourceReader,
    TaskContext,
)
from barnabas.connect.connectors.base import TopicPartition as Place
from barnabas.connect.connectors.mirror.cluster import cluster_of
from barnabas.connect.connectors.mirror.figures import SourceFigures, Tally
from barnabas.connect.connectors.mirror.flow import Flow
from barnabas.connect.connectors.mirror.ranges import close_consumers, read_ranges
from barnabas.connect.connectors.mirror.records import OffsetSync
from barnabas.connect.connectors.mirror.syncs import Runs, SyncPlan
from barnabas.connect.record import Header, JsonMap, RawRecord, SourceRecord
from barnabas.kafka.partitioners import JAVA_PARTITIONER
from barnabas.schemas.data.schema import Schema, Type

# Writes offset syncs into their topic, partition 0, in the source or the target.

_CLOSE_SECONDS: Final = 5.0
_WAIT_SECONDS: Final = 0.1
_log = logging.getLogger(__name__)


class SyncWriter:
    """A producer. What is lost is logged: a later sync of the partition takes its place."""

    def __init__(self, flow: Flow) -> None:
        side = flow.syncs_side
        self._topic = flow.syncs_topic
        role = f"offset-syncs-{side}-producer"
        self._producer = Producer(
            {
                **JAVA_PARTITIONER,
                **flow.client(side, "producer", role, **{"enable.idempotence": True}),
                "delivery.report.only.error": True,
                # No method of this object: the producer would last until garbage is collected.
                "on_delivery": partial(_tell, self._topic),
            }
        )

    def send(self, sync: OffsetSync) -> None:
        """Queue a sync."""
        while True:
            try:
                self._producer.produce(self._topic, sync.value, sync.key, partition=0)
                break
            except BufferError:
                self._producer.poll(_WAIT_SECONDS)
        self._producer.poll(0)

    def close(self) -> None:
        """Send what is queued, or give up after a while."""
        self._producer.flush(_CLOSE_SECONDS)
        self._producer.purge()


def _tell(topic: str, error: KafkaError | None, _message: Message) -> None:
    if error is not None and error.code() != KafkaError._PURGE_QUEUE:
        _log.error("cannot write an offset sync to %s: %s", topic, error.str())


ASSIGNED: Final = "task.assigned.partitions"
BATCH_RECORDS_MAX: Final = 50_000
"""Records of one micro-batch, dealt out among the partitions."""
_PARTITION_RECORDS_MIN: Final = 500
_PROMOTE_SECONDS: Final = 5.0
_KEY: Final = Schema(Type.BYTES, optional=True)
_VALUE: Final = Schema(Type.BYTES)


def _assigned(text: str) -> list[Place]:
    parts = (part.rpartition("-") for part in names(text))
    return [(topic, int(number)) for topic, _, number in parts]


@dataclass(slots=True)
class WrittenRuns:
    """Notes the offsets of written records by the partitions of the source; is Receipts."""

    sources: dict[str, str]
    """The source's topic of each of the target's."""
    runs: Runs = field(default_factory=Runs)
    tallies: dict[Place, Tally] = field(default_factory=dict)

    def read(self, record: RawRecord) -> None:
        """A record is read."""
        place = record.topic, record.partition or 0
        tally = self.tallies.get(place)
        if tally is None:
            tally = self.tallies[place] = Tally()
        tally.size_bytes += len(record.value or b"")
        if record.timestamp_ms is not None:
            tally.age_ms.add(time.time_ns() // 1_000_000 - record.timestamp_ms)

    def written(self, record: SourceRecord | RawRecord, offset: int) -> None:
        """A record is written at an offset of the target."""
        if isinstance(record, RawRecord):
            place = self.sources[record.topic], record.partition or 0
            self.runs.add(place, record.offset, offset)
        else:
            where = record.source_partition
            place = where["topic"], where["partition"]
            self.runs.add(place, record.source_offset["offset"], offset)
        tally = self.tallies[place]
        tally.records += 1
        if record.timestamp_ms is not None:
            tally.latency_ms.add(time.time_ns() // 1_000_000 - record.timestamp_ms)


class MirrorReader(SourceReader):
    """Offsets between engine and reader are the next ones to read, by `topic-partition`."""

    def __init__(self, context: TaskContext, flow: Flow) -> None:
        self._flow = flow
        self._id = f"{context.connector}-{context.task} {id(self)} {time.time_ns()}"
        self._places = _assigned(context.settings.get(ASSIGNED, ""))
        self._stored = context.offsets
        policy = flow.policy()
        self._remote = {
            topic: policy.format_remote_topic(flow.source, topic) for topic, _ in self._places
        }
        self._consumer = flow.consumer("source", "replication-consumer")
        self._starts_late = self._consumer.pop("auto.offset.reset", "earliest") == "latest"
        self._positions: dict[Place, int] = {}
        self._begins: dict[Place, int] = {}
        self._driver: _Driver | None = None
        self._figures: SourceFigures | None = SourceFigures(flow.source, flow.target)
        self._noting: WrittenRuns | None = None

    def __getstate__(self) -> dict[str, Any]:
        own = {"_driver": None, "_stored": None, "_figures": None, "_noting": None}
        return {**self.__dict__, **own}

    def _on_driver(self) -> _Driver:
        if self._driver is None:
            self._driver = _Driver(self._flow)
        return self._driver

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802  # Spark's
        """Return behind what is stored; else the beginning, or the end if it is so configured."""
        fresh: list[Place] = []
        for place in self._places:
            stored_offset = (
                None if self._stored is None else self._stored.offset(self._partition(place))
            )
            offset = -1 if stored_offset is None else int(stored_offset.get("offset", -1))
            if offset < 0:
                fresh.append(place)
            else:
                self._positions[place] = offset + 1
        source = self._on_driver().source
        self._positions |= source.offsets(fresh, is_latest=self._starts_late)
        return self._named(self._positions)

    def latestOffset(self) -> dict[str, Any]:  # noqa: N802  # Spark's
        """Return where the source's partitions end now, or so far as one micro-batch goes."""
        driver = self._on_driver()
        is_committed = self._flow.reads_committed
        ends = driver.source.offsets(self._places, is_latest=True, is_committed=is_committed)
        changed = [place for place, end in ends.items() if end != self._positions.get(place, -1)]
        if not changed:
            driver.promote()
            return self._named(self._positions)
        # A partition may have been truncated at its beginning, or recreated.
        begins = driver.source.offsets(changed, is_latest=False)
        count = max(_PARTITION_RECORDS_MIN, BATCH_RECORDS_MAX // len(changed))
        self._begins = {}
        upto = dict(self._positions)
        for place in changed:
            start, begin = self._positions.get(place, -1), begins.get(place, 0)
            if start < begin or start > ends[place]:
                start = begin
            self._begins[place] = start
            upto[place] = min(ends[place], start + count)
        return self._named(upto)

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[Any]:
        """Return one split for all: tasks are what is read side by side."""
        return [
            [
                SinkRange(*place, first, end[f"{place[0]}-{place[1]}"])
                for place, first in self._begins.items()
            ]
        ]

    def read(self, partition: Any) -> Iterator[SourceRecord]:
        """Yield the records."""
        for raw in self._read(partition):
            place = raw.topic, raw.partition or 0
            yield SourceRecord(
                source_partition=self._partition(place),
                source_offset={"offset": raw.offset},
                topic=self._remote[raw.topic],
                partition=raw.partition,
                key_schema=_KEY,
                key=raw.key,
                value_schema=_VALUE,
                value=raw.value,
                timestamp_ms=raw.timestamp_ms,
                headers=[Header(name, _VALUE, value) for name, value in raw.headers],
            )

    def read_bytes(self, partition: Any) -> Iterator[RawRecord]:
        """Yield the records under the names of their topics in the target."""
        remote = self._remote
        for raw in self._read(partition):
            raw.topic = remote[raw.topic]
            yield raw

    def _read(self, ranges: Sequence[SinkRange]) -> Iterator[RawRecord]:
        noting = self._noting
        for raw in read_ranges(self._id, self._consumer, ranges):
            if noting is not None:
                noting.read(raw)
            yield raw

    def receipts(self, partition: Any) -> Receipts | None:
        """Return what notes the offsets of written records, and counts."""
        self._noting = WrittenRuns({remote: topic for topic, remote in self._remote.items()})
        return self._noting

    def written(self, receipts: Sequence[Any]) -> None:
        """Tell which offsets belong together, and count."""
        self._on_driver().written(receipts)
        figures = self._figures
        assert figures is not None
        for one in receipts:
            for (topic, number), tally in one.tallies.items():
                figures.add((self._remote[topic], number), tally)

    def figures(self) -> Sequence[Figure]:
        """Return MirrorMaker's metrics of partitions."""
        return () if self._figures is None else self._figures.seen()

    def offsets(self, end: dict[str, Any]) -> Sequence[tuple[JsonMap, JsonMap]]:
        """Return the last offset that was read of each partition, as Kafka's task stores it."""
        return [
            (self._partition(place), {"offset": end[f"{place[0]}-{place[1]}"] - 1})
            for place in self._begins
            if end[f"{place[0]}-{place[1]}"] > 0
        ]

    def sent(self, end: dict[str, Any]) -> bool:
        """Go on behind it before it is committed; the offset syncs follow later."""
        self.commit(end)
        return True

    def commit(self, end: dict[str, Any]) -> None:
        """Go on behind it."""
        for place in self._begins:
            self._positions[place] = end[f"{place[0]}-{place[1]}"]

    def stop(self) -> None:
        """Close the connections."""
        close_consumers(self._id)
        if self._driver is not None:
            self._driver.stop()

    def _partition(self, place: Place) -> JsonMap:
        return {"cluster": self._flow.source, "partition": place[1], "topic": place[0]}

    def _named(self, offsets: dict[Place, int]) -> dict[str, Any]:
        return {f"{topic}-{number}": offset for (topic, number), offset in offsets.items()}


class _Driver:
    """The open resources of a reader on the driver."""

    def __init__(self, flow: Flow) -> None:
        self.source = cluster_of(flow, "source", "replication-offsets-admin")
        self._plan = SyncPlan(int(flow.values["offset.lag.max"]))
        self._writer = SyncWriter(flow) if flow.values["emit.offset-syncs.enabled"] else None
        self._promoted_s = time.monotonic()

    def written(self, receipts: Sequence[WrittenRuns]) -> None:
        if self._writer is None:
            return
        for one in receipts:
            for sync in self._plan.add(one.runs):
                self._writer.send(sync)
        if time.monotonic() - self._promoted_s > _PROMOTE_SECONDS:
            self.promote()

    def promote(self) -> None:
        if self._writer is None:
            return
        self._promoted_s = time.monotonic()
        for sync in self._plan.promote():
            self._writer.send(sync)

    def stop(self) -> None:
        if self._writer is not None:
            self.promote()
            self._writer.close()
        self.source.close()
