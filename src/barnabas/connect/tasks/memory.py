"""Topics in memory, in place of Kafka's: for tests of connectors."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from threading import Event
from typing import Final

from barnabas.connect.config.values import names
from barnabas.connect.connectors.base import SinkRange, TopicPartition
from barnabas.connect.record import JsonMap, RawColumn, RawRecord
from barnabas.connect.tasks.base import TaskPlan
from barnabas.connect.tasks.chain import Settings
from barnabas.connect.tasks.jobs import partition_key
from barnabas.connect.tasks.transport import GroupListener, Offsets
from barnabas.java.regex import compile_java
from barnabas.kafka import memory
from barnabas.schemas.data.errors import ConfigError

_COLUMN_RECORDS_MAX: Final = 1000


class MemoryTopics(memory.MemoryTopics[RawRecord]):
    """Topics with records, offsets of sources, and groups."""

    def __init__(self, partitions: int = 1) -> None:
        super().__init__(partitions)
        self.stored: dict[tuple[str, str], tuple[JsonMap, JsonMap]] = {}
        self.members: dict[str, list[MemoryGroup]] = {}

    def store(self, connector: str, offsets: Offsets) -> None:
        """Store offsets of a source."""
        with self.lock:
            for partition, offset in offsets:
                self.stored[connector, partition_key(partition)] = partition, offset

    def transport(self, plan: TaskPlan, settings: Settings, run: str) -> MemoryTransport:
        """Return what the local engine takes."""
        return MemoryTransport(self, plan.id.connector, settings)


@dataclass(slots=True)
class MemoryOffsets:
    """Reads a connector's offsets; an OffsetReader."""

    topics: MemoryTopics
    connector: str

    def offset(self, partition: JsonMap) -> JsonMap | None:
        """Return the offset of a source partition."""
        offset = self.topics.stored.get((self.connector, partition_key(partition)))
        return None if offset is None else offset[1]

    def all(self) -> Sequence[tuple[JsonMap, JsonMap]]:
        """Return all (partition, offset)."""
        with self.topics.lock:
            return [
                pair for (name, _), pair in self.topics.stored.items() if name == self.connector
            ]


@dataclass(slots=True)
class MemoryTransport:
    """The topics, for one task."""

    topics: MemoryTopics
    connector: str
    settings: Settings = field(repr=False)

    def output(self) -> MemoryOutput:
        """Return an output."""
        return MemoryOutput(self.topics)

    def transactional_output(self) -> MemoryOutput:
        """Return an output."""
        return MemoryOutput(self.topics)

    def dead_letters(self) -> MemoryOutput:
        """Return an output that keeps nothing back."""
        return MemoryOutput(self.topics, is_direct=True)

    def read(self, where: SinkRange) -> Iterator[RawRecord]:
        """Yield the records of a range."""
        yield from self.topics.read((where.topic, where.partition), where.start, where.end)

    def read_columns(self, where: SinkRange) -> Iterator[RawColumn]:
        """Yield the records of a range, many at once."""
        records = list(self.read(where))
        for start in range(0, len(records), _COLUMN_RECORDS_MAX):
            yield _column(records[start : start + _COLUMN_RECORDS_MAX])

    def group(self, listener: GroupListener) -> MemoryGroup:
        """Join the group of the connector."""
        return MemoryGroup(self.topics, self.connector, self.settings, listener)

    def close(self) -> None:
        """Nothing is open."""


def _column(records: list[RawRecord]) -> RawColumn:
    return RawColumn(
        keys=[one.key for one in records],
        values=[one.value for one in records],
        has_headers=any(one.headers for one in records),
        records=lambda: records,
    )


@dataclass(slots=True)
class MemoryOutput:
    """Keeps records back until they are flushed, or committed with offsets."""

    topics: MemoryTopics
    is_direct: bool = False
    waiting: list[tuple[RawRecord, Callable[[int], None] | None]] = field(default_factory=list)

    def heed(self, stopping: Event) -> None:
        """There is always room."""

    def send(self, record: RawRecord, on_written: Callable[[int], None] | None = None) -> None:
        """Queue a record."""
        self.waiting.append((record, on_written))
        if self.is_direct:
            self._write()

    def send_values(
        self, topic: str, values: Sequence[bytes | None], timestamp_ms: int | None
    ) -> None:
        """Queue records that have nothing else."""
        for value in values:
            self.send(RawRecord(topic=topic, value=value, timestamp_ms=timestamp_ms))

    def flush(self, stopping: Event) -> Sequence[tuple[RawRecord, Exception]]:
        """Write what waits."""
        self._write()
        return ()

    def commit(self, connector: str, offsets: Offsets) -> None:
        """Write what waits, and offsets."""
        with self.topics.lock:
            self._write()
            self.topics.store(connector, offsets)

    def abort(self) -> None:
        """Take back what waits."""
        self.waiting.clear()

    def close(self) -> None:
        """Give up what waits."""
        self.waiting.clear()

    def _write(self) -> None:
        with self.topics.lock:
            for record, on_written in self.waiting:
                written = self.topics.put(record.topic, record)
                if on_written is not None:
                    on_written(written.offset)
            self.waiting.clear()


class MemoryGroup:
    """A member of a group; partitions are reassigned when members come and go."""

    def __init__(
        self, topics: MemoryTopics, connector: str, settings: Settings, listener: GroupListener
    ) -> None:
        self._topics = topics
        self._names = names(settings.get("topics", ""))
        self._pattern = compile_java(settings["topics.regex"]) if not self._names else None
        if not self._names and self._pattern is None:
            raise ConfigError("Must configure one of topics or topics.regex")
        self._listener = listener
        self.owned: dict[TopicPartition, int] = {}
        with topics.lock:
            self._members = topics.members.setdefault(connector, [])
            self._members.append(self)
            self._committed = topics.committed.setdefault(connector, {})
        self._wake = Event()

    def poll(self, seconds: float) -> None:
        """Take part in the group for so long."""
        with self._topics.lock:
            due = self._due()
            lost = [place for place in self.owned if place not in due]
            others = {
                place for member in self._members if member is not self for place in member.owned
            }
            new = [place for place in due if place not in self.owned and place not in others]
        if lost:
            self._listener.revoked(lost, is_lost=False)
            with self._topics.lock:
                for place in lost:
                    self.owned.pop(place, None)
        if new:
            with self._topics.lock:
                for place in new:
                    self.owned[place] = self._committed.get(place, 0)
            self.owned.update(self._listener.assigned(new) or {})
        if seconds and not lost and not new:
            self._wake.wait(min(seconds, 0.01))

    def ranges(self) -> Sequence[SinkRange]:
        """Return what there is to read."""
        with self._topics.lock:
            ends = {place: self._topics.end(place) for place in self.owned}
            return [
                SinkRange(*place, start, ends[place])
                for place, start in self.owned.items()
                if start < ends[place]
            ]

    def advance(self, ranges: Sequence[SinkRange]) -> None:
        """So much is written."""
        for one in ranges:
            if (one.topic, one.partition) in self.owned:
                self.owned[one.topic, one.partition] = one.end

    def commit(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Commit offsets."""
        with self._topics.lock:
            self._committed.update(offsets)

    def close(self) -> None:
        """Leave the group."""
        if self.owned:
            self._listener.revoked(list(self.owned), is_lost=False)
        with self._topics.lock:
            self.owned.clear()
            self._members.remove(self)

    def _due(self) -> list[TopicPartition]:
        pattern = self._pattern
        topics = [
            topic
            for topic in self._topics.topics
            if topic in self._names or (pattern is not None and pattern.matches(topic))
        ]
        places = self._topics.places(sorted(topics))
        return places[self._members.index(self) :: len(self._members)]
