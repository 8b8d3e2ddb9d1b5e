"""Records of topics: pages of them, the live tail, searches over millions, and producing.

A reader is a consumer without a group that is assigned partitions from one place to another. Memory
is bounded by librdkafka's queue (`QUEUE_KBYTES_MAX`) and by what a page or a search keeps.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from confluent_kafka import (
    TIMESTAMP_NOT_AVAILABLE,
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
)

from barnabas.console.services.asking import AwayError, RefusedError
from barnabas.console.services.cluster import EARLIEST, LATEST, ClusterService, Place
from barnabas.console.services.decoding import Decoded, Decoder
from barnabas.console.services.expressions import Expression
from barnabas.console.services.right_of_way import RightOfWay
from barnabas.console.services.searched import (
    Searched,
    headers_of,
    hide,
    may_match,
    shown_header,
)
from barnabas.kafka.partitioners import JAVA_PARTITIONER

PAGE_MAX: Final = 500
READERS_MAX: Final = 32
"""Pages and tails that are read at the same time."""
SEARCHES_MAX: Final = 8
MATCHES_MAX: Final = 1_000
PAGE_S: Final = 8.0
"""A page that takes longer is given as far as it was read."""
POLL_S: Final = 0.25
BATCH_MAX: Final = 1_000
QUEUE_KBYTES_MAX: Final = 16_384
QUEUE_RECORDS: Final = 50_000
"""Records that a reader fetches ahead. Each costs librdkafka some hundred bytes beside its own."""
FULL_MS: Final = 20
"""The pause of a reader that has fetched QUEUE_RECORDS, before it checks for room again."""
TAIL_RECORDS_MAX: Final = 200
"""Records of one step of the live tail; more are skipped, and counted."""
PRODUCE_S: Final = 15.0
_EOF: Final = KafkaError._PARTITION_EOF
_AWAY: Final = (
    KafkaError._ALL_BROKERS_DOWN,
    KafkaError._TRANSPORT,
    KafkaError._TIMED_OUT,
    KafkaError._RESOLVE,
)


class TooManyError(RefusedError):
    """As many readers or searches are under way as are allowed."""


@dataclass(frozen=True, slots=True)
class Record:
    """A record, decoded."""

    partition: int
    offset: int
    timestamp_ms: int | None
    key: Decoded
    value: Decoded
    headers: tuple[tuple[str, Decoded], ...]


@dataclass(frozen=True, slots=True)
class Page:
    """Records, and where the next page begins or ends."""

    records: tuple[Record, ...]
    cursor: Mapping[int, int]
    """By partition: for older records the offset to end before, for newer the one to begin at."""
    is_complete: bool
    """True if it was read in time."""
    has_more: bool


@dataclass(frozen=True, slots=True)
class Start:
    """Where to begin: `newest`, `oldest`, `offset` or `time` with a value (ms since 1970)."""

    kind: str = "newest"
    value: int = 0


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of a search. `total` is an estimate: offsets may have gaps."""

    scanned: int
    total: int
    matches: int
    seconds: float
    is_done: bool = False
    is_full: bool = False
    """True if it ended because there are as many matches as are kept."""


@dataclass(frozen=True, slots=True)
class Tail:
    """New records, and how many more were skipped."""

    records: tuple[Record, ...]
    skipped: int


@dataclass(slots=True)
class Produced:
    """A record to write; None is null."""

    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, str | bytes | None]] = field(default_factory=list)
    partition: int | None = None


class MessageService:
    """Reads and writes records of one cluster. Methods block, and are for any thread.

    They raise AwayError, RefusedError and TooManyError.
    """

    def __init__(self, cluster: ClusterService, decoder: Decoder, right_of_way: RightOfWay) -> None:
        self._cluster, self.decoder, self._right_of_way = cluster, decoder, right_of_way
        self._readers = threading.BoundedSemaphore(READERS_MAX)
        self._searches = threading.BoundedSemaphore(SEARCHES_MAX)
        self._producer: Producer | None = None
        self._lock = threading.Lock()

    def page(
        self,
        topic: str,
        start: Start,
        *,
        partition: int | None = None,
        limit: int = 50,
        cursor: Mapping[int, int] | None = None,
        hidden: Sequence[str] = (),
    ) -> Page:
        """A page of a topic; newest first for `newest`, else in the order of reading."""
        limit = max(1, min(limit, PAGE_MAX))
        begins, ends = self._bounds(topic, partition)
        if start.kind == "newest":
            return self._older(topic, begins, ends, limit, cursor or {}, hidden)
        starts = self._starts(topic, start, begins, ends)
        starts |= {number: at for number, at in (cursor or {}).items() if number in starts}
        found: list[Record] = []
        positions = dict(starts)
        with _place(self._readers, "readers"), self._consumer() as consumer:
            reading = _Reading(consumer, topic, starts, ends)
            deadline = time.monotonic() + PAGE_S
            while len(found) < limit and not reading.is_done and time.monotonic() < deadline:
                for message in reading.poll(min(BATCH_MAX, limit - len(found))):
                    found.append(self.decoded(message, hidden))
                    positions[found[-1].partition] = found[-1].offset + 1
        has_more = any(positions[number] < end for number, end in ends.items())
        return Page(tuple(found), positions, reading.is_done or len(found) >= limit, has_more)

    def _older(
        self,
        topic: str,
        begins: Mapping[int, int],
        ends: Mapping[int, int],
        limit: int,
        cursor: Mapping[int, int],
        hidden: Sequence[str],
    ) -> Page:
        upto = {number: min(end, cursor.get(number, end)) for number, end in ends.items()}
        each = limit if len(upto) <= 4 else max(10, -(-2 * limit // len(upto)))
        starts = {number: max(begins[number], end - each) for number, end in upto.items()}
        found: list[Record] = []
        with _place(self._readers, "readers"), self._consumer() as consumer:
            reading = _Reading(consumer, topic, starts, upto)
            deadline = time.monotonic() + PAGE_S
            while not reading.is_done and time.monotonic() < deadline:
                found += [self.decoded(one, hidden) for one in reading.poll(BATCH_MAX)]
        found.sort(key=lambda one: (one.timestamp_ms or 0, one.offset), reverse=True)
        shown = found[:limit]
        lowest = dict(upto)
        for record in shown:
            lowest[record.partition] = min(lowest[record.partition], record.offset)
        if not shown:
            lowest = starts
        has_more = any(lowest[number] > begin for number, begin in begins.items())
        return Page(tuple(shown), lowest, reading.is_done, has_more)

    def one(
        self, topic: str, partition: int, offset: int, hidden: Sequence[str] = ()
    ) -> tuple[Message, Record] | None:
        """One record with its bytes; None if it is not there."""
        _, ends = self._bounds(topic, partition)
        starts, upto = {partition: offset}, {partition: min(offset + 1, ends[partition])}
        with _place(self._readers, "readers"), self._consumer() as consumer:
            reading = _Reading(consumer, topic, starts, upto)
            deadline = time.monotonic() + PAGE_S
            while not reading.is_done and time.monotonic() < deadline:
                for message in reading.poll(1):
                    if message.offset() == offset:
                        return message, self.decoded(message, hidden)
        return None

    def search(
        self,
        topic: str,
        expression: Expression,
        start: Start,
        stopping: threading.Event,
        *,
        partition: int | None = None,
        limit: int = 100,
        hidden: Sequence[str] = (),
        every_s: float = 0.25,
    ) -> Iterator[Record | Progress]:
        """The matching records and progress, until the end as it is now, or until `stopping`."""
        limit = max(1, min(limit, MATCHES_MAX))
        begins, ends = self._bounds(topic, partition)
        kind = Start("oldest") if start.kind == "newest" else start
        starts = self._starts(topic, kind, begins, ends)
        total = sum(max(0, ends[number] - at) for number, at in starts.items())
        begun_s = told_s = time.monotonic()
        scanned = matches = 0
        is_match, searched = expression.matches, Searched(self.decoder, hidden)
        may = may_match(expression.needles, self.decoder, hidden)
        with _place(self._searches, "searches"), self._consumer() as consumer:
            reading = _Reading(consumer, topic, starts, ends)
            yield Progress(0, total, 0, 0.0)
            while not (reading.is_done or stopping.is_set() or matches >= limit):
                for message in reading.poll(BATCH_MAX):
                    scanned += 1
                    if (may is None or may(message)) and is_match(searched.at(message)):
                        matches += 1
                        yield self.decoded(message, hidden)
                        if matches >= limit:
                            break
                self._right_of_way.give_way()
                now_s = time.monotonic()
                if now_s - told_s >= every_s:
                    told_s = now_s
                    yield Progress(scanned, total, matches, now_s - begun_s)
        seconds = time.monotonic() - begun_s
        is_full = matches >= limit
        yield Progress(scanned, total, matches, seconds, is_done=True, is_full=is_full)

    def tail(
        self,
        topic: str,
        stopping: threading.Event,
        *,
        expression: Expression | None = None,
        partition: int | None = None,
        hidden: Sequence[str] = (),
    ) -> Iterator[Tail]:
        """New records from now on, at most some of each step; an empty one when all is still."""
        _, ends = self._bounds(topic, partition)
        searched = Searched(self.decoder, hidden)
        with _place(self._readers, "readers"), self._consumer() as consumer:
            reading = _Reading(consumer, topic, ends, None)
            while not stopping.is_set():
                found: list[Message] = []
                skipped = 0
                until_s = time.monotonic() + POLL_S
                while time.monotonic() < until_s and not stopping.is_set():
                    for message in reading.poll(BATCH_MAX, max(0.01, until_s - time.monotonic())):
                        if expression is not None and not expression.matches(searched.at(message)):
                            continue
                        if len(found) < TAIL_RECORDS_MAX:
                            found.append(message)
                        else:
                            skipped += 1
                yield Tail(tuple(self.decoded(one, hidden) for one in found), skipped)

    def produce(self, topic: str, record: Produced) -> tuple[int, int]:
        """Write a record, acknowledged by all replicas in sync; returns partition and offset."""
        self._cluster.topic(topic)
        with self._lock:
            if self._producer is None:
                settings = self._cluster.access.librdkafka(
                    **{"acks": "all", "delivery.timeout.ms": int(PRODUCE_S * 1000)},
                    **JAVA_PARTITIONER,
                )
                self._producer = Producer(settings)
            producer = self._producer
        outcome: list[tuple[KafkaError | None, Message]] = []
        more: dict[str, Any] = {} if record.partition is None else {"partition": record.partition}
        try:
            producer.produce(
                topic,
                record.value,
                record.key,
                headers=record.headers,
                on_delivery=lambda error, message: outcome.append((error, message)),
                **more,
            )
            producer.flush(PRODUCE_S + 1)
        except (KafkaException, BufferError) as error:
            raise RefusedError(str(error)) from error
        if not outcome:
            raise AwayError("the brokers did not confirm the record in time")
        failure, message = outcome[0]
        if failure is not None:
            is_away = failure.code() in (*_AWAY, KafkaError._MSG_TIMED_OUT)
            raise (AwayError if is_away else RefusedError)(failure.str())
        return int(message.partition() or 0), int(message.offset() or 0)

    def decoded(self, message: Message, hidden: Sequence[str] = ()) -> Record:
        """A message as people see it."""
        headers = headers_of(message)
        kind, at_ms = message.timestamp()
        shown = [(name, shown_header(name, data, hidden)) for name, data in headers]
        key: Any = message.key()
        value: Any = message.value()
        return Record(
            int(message.partition() or 0),
            int(message.offset() or 0),
            None if kind == TIMESTAMP_NOT_AVAILABLE else at_ms,
            hide(self.decoder.decode(key, headers, is_key=True), hidden),
            hide(self.decoder.decode(value, headers, is_key=False), hidden),
            tuple(shown),
        )

    def close(self) -> None:
        """Let go of the producer."""
        with self._lock:
            self._producer = None

    def _bounds(self, topic: str, partition: int | None) -> tuple[dict[int, int], dict[int, int]]:
        """First and next offsets of the partitions that have a leader."""
        found = self._cluster.topic(topic)
        if partition is not None and partition not in {one.number for one in found.partitions}:
            raise RefusedError(f"{topic} has no partition {partition}")
        begins = self._numbered(self._cluster.offsets([topic], EARLIEST), partition)
        ends = self._numbered(self._cluster.offsets([topic], LATEST), partition)
        both = begins.keys() & ends.keys()
        if not both:
            raise AwayError(f"no leader of {topic} answers")
        return {one: begins[one] for one in both}, {one: ends[one] for one in both}

    @staticmethod
    def _numbered(found: Mapping[Place, int], partition: int | None) -> dict[int, int]:
        return {
            number: offset
            for (_, number), offset in found.items()
            if partition is None or number == partition
        }

    def _starts(
        self, topic: str, start: Start, begins: Mapping[int, int], ends: Mapping[int, int]
    ) -> dict[int, int]:
        if start.kind == "oldest":
            return dict(begins)
        if start.kind == "offset":
            return {one: min(max(start.value, begins[one]), ends[one]) for one in begins}
        if start.kind == "time":
            at = self._numbered(self._cluster.offsets([topic], start.value), None)
            found = {one: at.get(one, -1) for one in begins}
            return {one: ends[one] if offset < 0 else offset for one, offset in found.items()}
        raise RefusedError(f"{start.kind!r} is none of newest, oldest, offset, time")

    @contextmanager
    def _consumer(self, **more: Any) -> Iterator[Consumer]:
        settings = self._cluster.access.librdkafka(
            **{
                "group.id": "barnabas-console",  # it assigns partitions and never joins
                "enable.auto.commit": False,
                "enable.auto.offset.store": False,
                "enable.partition.eof": True,
                "auto.offset.reset": "earliest",
                "allow.auto.create.topics": False,
                "isolation.level": "read_committed",
                "fetch.wait.max.ms": 100,
                "queued.max.messages.kbytes": QUEUE_KBYTES_MAX,
                "queued.min.messages": QUEUE_RECORDS,
                "fetch.queue.backoff.ms": FULL_MS,
                "check.crcs": False,
            },
            **more,
        )
        consumer = Consumer(settings)
        try:
            yield consumer
        finally:
            consumer.close()


class _Reading:
    """Partitions of a topic that are read up to their ends; without ends, for ever."""

    def __init__(
        self,
        consumer: Consumer,
        topic: str,
        starts: Mapping[int, int],
        ends: Mapping[int, int] | None,
    ) -> None:
        self._consumer, self._topic, self._ends = consumer, topic, ends
        self._left = {number for number, at in starts.items() if ends is None or at < ends[number]}
        wanted = [TopicPartition(topic, number, starts[number]) for number in sorted(self._left)]
        if wanted:
            consumer.assign(wanted)

    @property
    def is_done(self) -> bool:
        """True if all partitions are read."""
        return not self._left

    def poll(self, count: int, timeout_s: float = POLL_S) -> Iterator[Message]:
        """The next records; none if none came in time. Raises AwayError, RefusedError."""
        ends, left = self._ends, self._left
        for message in self._consumer.consume(count, timeout_s):
            error = message.error()
            if error is not None:
                self._failed(message, error)
                continue
            if ends is None:
                yield message
                continue
            number: Any = message.partition()
            if number not in left:
                continue
            end, offset = ends[number], message.offset() or 0
            if offset < end:
                yield message
            if offset >= end - 1:
                self._finish(number)

    def _failed(self, message: Message, error: KafkaError) -> None:
        if error.code() == _EOF:
            number = message.partition()
            # Behind the last record there may be a transaction's marker, which nobody sees.
            if self._ends is not None and number in self._left:
                self._finish(number)
        elif error.code() in _AWAY:
            raise AwayError(error.str())
        elif error.fatal() or not error.retriable():
            raise RefusedError(error.str())

    def _finish(self, number: Any) -> None:
        self._left.discard(number)
        self._consumer.incremental_unassign([TopicPartition(self._topic, number)])


@contextmanager
def _place(places: threading.BoundedSemaphore, what: str) -> Iterator[None]:
    if not places.acquire(timeout=1.0):
        raise TooManyError(f"too many {what} are under way; try again in a moment")
    try:
        yield
    finally:
        places.release()
