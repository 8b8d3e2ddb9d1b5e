"""Ranges of many partitions, read by one consumer that goes on where the last ranges ended."""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from confluent_kafka import (
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    TopicPartition,
)

from barnabas.connect.connectors.base import SinkRange
from barnabas.connect.connectors.base import TopicPartition as Place
from barnabas.connect.record import RawRecord
from barnabas.connect.tasks.kafka_errors import as_connect_error
from barnabas.connect.tasks.kafka_ranges import close_idle, record_of, take
from barnabas.schemas.data.errors import RetriableError

READ_TIMEOUT_SECONDS: Final = 60.0
WAITING_MAX: Final = 5000
"""Records of one partition that wait for the next ranges; beyond, it is not read for a while."""
_POLL_SECONDS: Final = 0.5
_CHUNK: Final = 2000
_OWN: Final[Mapping[str, Any]] = {
    "enable.partition.eof": True,
    "auto.offset.reset": "error",
    "fetch.wait.max.ms": 50,
    "queued.max.messages.kbytes": 65_536,
}
_CONSUMERS: Final[dict[tuple[int, str], RangesConsumer]] = {}
"""Of this process, by task; not those that are being read. Idle ones are closed: executors do not
hear of a task's end."""


def read_ranges(
    task: str, settings: Mapping[str, Any], ranges: Sequence[SinkRange]
) -> Iterator[RawRecord]:
    """Yield the records of ranges, each partition in order. Raises RetriableError, ConnectError."""
    key = os.getpid(), task
    consumer = _CONSUMERS.pop(key, None) or RangesConsumer(settings)
    close_idle(_CONSUMERS)
    try:
        yield from consumer.read(ranges)
    except KafkaException as error:
        raise as_connect_error("cannot read", error) from error
    finally:
        consumer.used_s = time.monotonic()
        _CONSUMERS[key] = consumer


def close_consumers(task: str) -> None:
    """Close what this process holds open for a task."""
    consumer = _CONSUMERS.pop((os.getpid(), task), None)
    if consumer is not None:
        consumer.close()


class _Partition:
    """How far a partition is read; `waiting` are records behind the range.

    `wanted` is behind all that the client has given: what comes again is passed over.
    """

    __slots__ = ("end", "end_seen", "is_paused", "position", "waiting", "wanted")

    def __init__(self, position: int) -> None:
        self.position = position
        self.wanted = position
        self.end = position
        self.end_seen = -1
        self.is_paused = False
        self.waiting: deque[Message] = deque()

    @property
    def is_done(self) -> bool:
        return self.position >= self.end or (self.end_seen >= self.end and not self.waiting)


class RangesConsumer:
    """Assigned all partitions that were asked for so far."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._consumer = Consumer({**_OWN, **settings, "enable.partition.eof": True})
        self._partitions: dict[Place, _Partition] = {}
        self.used_s = time.monotonic()

    def close(self) -> None:
        """Close the connections."""
        self._consumer.close()

    def read(self, ranges: Sequence[SinkRange]) -> Iterator[RawRecord]:
        """Yield the records of ranges."""
        left = self._place(ranges)
        try:
            for place in list(left):
                yield from self._waiting(place, left)
            deadline = time.monotonic() + READ_TIMEOUT_SECONDS
            while left:
                messages = take(self._consumer, _CHUNK, _POLL_SECONDS)
                if messages:
                    deadline = time.monotonic() + READ_TIMEOUT_SECONDS
                elif time.monotonic() > deadline:
                    raise RetriableError(f"no answer from {', '.join(t for t, _ in left)}")
                yield from self._taken(messages, left)
        except BaseException:
            self._forget()
            raise
        for state in self._partitions.values():
            if state.position < state.end:
                state.position = state.end  # what is missing was no record

    def _place(self, ranges: Sequence[SinkRange]) -> dict[Place, _Partition]:
        """Assign and seek where it is not there already; returns what is to be read."""
        asked: dict[Place, _Partition] = {}
        new: list[TopicPartition] = []
        for one in ranges:
            place = one.topic, one.partition
            state = self._partitions.get(place)
            if state is None or state.position != one.start:
                if state is not None:
                    self._consumer.incremental_unassign([TopicPartition(*place)])
                state = self._partitions[place] = _Partition(one.start)
                new.append(TopicPartition(*place, one.start))
            state.end = one.end
            if not state.is_done:
                asked[place] = state
            elif state.position < one.end:
                state.position = one.end
        if new:
            self._consumer.incremental_assign(new)
        return asked

    def _waiting(self, place: Place, left: dict[Place, _Partition]) -> Iterator[RawRecord]:
        state = left[place]
        while state.waiting and (state.waiting[0].offset() or 0) < state.end:
            message = state.waiting.popleft()
            state.position = (message.offset() or 0) + 1
            yield record_of(message)
        if state.waiting or state.is_done:
            state.position = state.end
            del left[place]
        elif state.is_paused:
            state.is_paused = False
            self._consumer.resume([TopicPartition(*place)])

    def _taken(
        self, messages: Sequence[Message], left: dict[Place, _Partition]
    ) -> Iterator[RawRecord]:
        for message in messages:
            error = message.error()
            place = message.topic() or "", message.partition() or 0
            offset = message.offset() or 0
            if error is not None:
                if error.code() == KafkaError._PARTITION_EOF:
                    state = self._partitions[place]
                    state.end_seen = max(state.end_seen, offset)
                    if offset >= state.end and left.pop(place, None) is not None:
                        state.position = state.end
                elif error.code() not in (KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN):
                    is_moved = error.code() == KafkaError._AUTO_OFFSET_RESET
                    if is_moved:
                        raise RetriableError(f"cannot read {place[0]}: {error.str()}")
                    raise as_connect_error(f"cannot read {place[0]}", KafkaException(error))
                continue
            state = self._partitions[place]
            if offset < state.wanted:
                continue
            state.wanted = offset + 1
            if offset < state.end and place in left:
                state.position = offset + 1
                yield record_of(message)
                if offset == state.end - 1:
                    del left[place]
            else:
                state.waiting.append(message)
                if left.pop(place, None) is not None:
                    state.position = state.end
                if len(state.waiting) >= WAITING_MAX and not state.is_paused:
                    state.is_paused = True
                    self._consumer.pause([TopicPartition(*place)])

    def _forget(self) -> None:
        self._partitions.clear()
        self._consumer.unassign()
