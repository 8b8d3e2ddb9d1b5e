"""Ranges of Kafka's offsets, read in any process; its consumers go on where they were."""

from __future__ import annotations

import os
import time
from collections import OrderedDict, deque
from collections.abc import Iterator, Mapping, MutableMapping
from functools import partial
from typing import Any, Final

from confluent_kafka import (
    TIMESTAMP_CREATE_TIME,
    TIMESTAMP_LOG_APPEND_TIME,
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    TopicPartition,
)

from barnabas.connect.connectors.base import SinkRange
from barnabas.connect.record import RawColumn, RawRecord
from barnabas.connect.tasks.kafka_errors import is_passing
from barnabas.schemas.data.errors import ConnectError, RetriableError

# Takes what a consumer has.


def take(consumer: Consumer, count: int, seconds: float) -> list[Message]:
    """Return up to so many messages as soon as there is one; none after `seconds`.

    `consume` alone would wait for all that are asked for, or the whole time.
    """
    first = consumer.poll(seconds)
    return [] if first is None else [first, *consumer.consume(count - 1, 0)]


CONSUMERS_MAX: Final = 32
"""Consumers that stay open; each holds threads and up to 16 MiB of records. One more is closed at
once: to close the one that waits longest would reopen them all in each micro-batch."""
EXECUTOR_CONSUMERS_MAX: Final = 8
IDLE_SECONDS_MAX: Final = 300.0
"""After so long without a read a consumer is closed: its partition may be another task's by now."""
READ_TIMEOUT_SECONDS: Final = 60.0
_POLL_SECONDS: Final = 0.5
_CHUNK: Final = 1000
_OWN: Final[Mapping[str, Any]] = {
    "enable.partition.eof": True,
    "auto.offset.reset": "error",
    "enable.auto.commit": False,
    "log_level": 2,  # between micro-batches nobody polls it; the member of the group says the rest
}
_KINDS: Final = {
    TIMESTAMP_CREATE_TIME: "CreateTime",
    TIMESTAMP_LOG_APPEND_TIME: "LogAppendTime",
}


class RangeReader:
    """Reads one partition; the records behind a range wait for the next one."""

    def __init__(self, settings: Mapping[str, Any], topic: str, partition: int) -> None:
        more = {**settings, **_OWN}
        for name in ("group.instance.id", "group.protocol", "partition.assignment.strategy"):
            more.pop(name, None)  # it is not a member of the group
        more.setdefault("queued.max.messages.kbytes", 16_384)
        more.setdefault("fetch.wait.max.ms", 50)  # an empty answer marks the end of a range
        self._consumer = Consumer(more)
        self._place = topic, partition
        self._position = -1
        self._waiting: deque[Message] = deque()
        self.used_s = time.monotonic()

    def pieces(self, start: int, end: int) -> Iterator[list[Message]]:
        """Yield the records, each once, in pieces. Raises RetriableError, ConnectError."""
        if self._position != start:
            self._waiting.clear()
            self._consumer.assign([TopicPartition(*self._place, start)])
        self._position = -1  # until it is known where this ended
        wanted = start
        deadline = time.monotonic() + READ_TIMEOUT_SECONDS
        while self._position != end:
            if not self._waiting:
                self._waiting.extend(take(self._consumer, _CHUNK, _POLL_SECONDS))
                if not self._waiting and time.monotonic() > deadline:
                    raise RetriableError(f"{self._name} does not answer at offset {start}")
            found, wanted = self._taken(wanted, end)
            if found:
                yield found
                deadline = time.monotonic() + READ_TIMEOUT_SECONDS

    def _taken(self, wanted: int, end: int) -> tuple[list[Message], int]:
        """Take what waits up to the end, or up to an error that is raised next time.

        Returns it, and the offset behind it.
        """
        waiting = self._waiting
        messages: list[Message] = []
        while waiting:
            message = waiting[0]
            offset = message.offset()
            error = message.error()
            if error is not None:
                if error.code() == KafkaError._PARTITION_EOF:
                    waiting.popleft()
                    if offset is not None and offset >= end:
                        self._position = end
                        break
                    continue
                if messages:  # they come first
                    break
                waiting.popleft()
                self._raise(error)
                continue
            assert offset is not None
            if offset >= end:
                self._position = end
                break
            waiting.popleft()
            if offset < wanted:  # it comes again where the client fetched again
                continue
            wanted = offset + 1
            messages.append(message)
            if wanted == end:
                self._position = end
                break
        return messages, wanted

    def close(self) -> None:
        """Close the connection."""
        self._consumer.close()

    @property
    def _name(self) -> str:
        return f"{self._place[0]}-{self._place[1]}"

    def _raise(self, error: KafkaError) -> None:
        """Connections that break are made again by librdkafka, until the time is over."""
        if error.code() in (KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN):
            return
        text = f"cannot read {self._name}: {error.str()}"
        is_moved = error.code() in (KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE)
        if is_passing(error) or is_moved:
            raise RetriableError(text)
        raise ConnectError(text)


def record_of(message: Message) -> RawRecord:
    """Return a message as a record."""
    kind, timestamp_ms = message.timestamp()
    is_known = kind in _KINDS
    return RawRecord(
        topic=message.topic() or "",
        partition=message.partition(),
        key=message.key(),
        value=message.value(),
        timestamp_ms=timestamp_ms if is_known else None,
        headers=message.headers() or (),  # type: ignore[arg-type]  # pairs, as they are read
        offset=message.offset() or 0,
        timestamp_type=_KINDS.get(kind, "NoTimestampType"),
    )


_READERS: OrderedDict[tuple[int, str, str, int], RangeReader] = OrderedDict()
"""Of this process, by task, topic and partition; the one used last is last."""


def read_range(task: str, settings: Mapping[str, Any], where: SinkRange) -> Iterator[RawRecord]:
    """Yield the records of a range. Raises RetriableError, ConnectError."""
    for messages in _read(task, settings, where):
        for message in messages:
            yield record_of(message)


def read_columns(task: str, settings: Mapping[str, Any], where: SinkRange) -> Iterator[RawColumn]:
    """Yield the records of a range, many at once. Raises RetriableError, ConnectError."""
    for messages in _read(task, settings, where):
        yield RawColumn(
            keys=[one.key() for one in messages],
            values=[one.value() for one in messages],
            has_headers=any(one.headers() for one in messages),
            records=partial(map, record_of, messages),
        )


def _read(task: str, settings: Mapping[str, Any], where: SinkRange) -> Iterator[list[Message]]:
    key = (os.getpid(), task, where.topic, where.partition)
    reader = _READERS.pop(key, None)
    if reader is None:
        reader = RangeReader(settings, where.topic, where.partition)
    try:
        yield from reader.pieces(where.start, where.end)
    except KafkaException as error:
        raise RetriableError(f"cannot read {where.topic}: {error.args[0].str()}") from error
    finally:
        close_idle(_READERS)
        if len(_READERS) < CONSUMERS_MAX:
            reader.used_s = time.monotonic()
            _READERS[key] = reader
        else:
            reader.close()


def close_idle(readers: MutableMapping[Any, Any]) -> None:
    """Close readers of this process that were idle for long. Keys begin with a reader's process."""
    now_s = time.monotonic()
    for key, one in list(readers.items()):
        is_own = key[0] == os.getpid()  # a process inherits what it cannot use
        if is_own and now_s - one.used_s > IDLE_SECONDS_MAX and readers.pop(key, None) is one:
            one.close()


def trim_readers() -> None:
    """Close what was not used for long, in a process that runs one job at a time.

    On executors any process may read any partition, and nobody tells that a task has ended.
    """
    while len(_READERS) > EXECUTOR_CONSUMERS_MAX:
        _READERS.popitem(last=False)[1].close()


def close_readers(task: str) -> None:
    """Close what this process holds open for a task."""
    for key in list(_READERS):  # at once: threads of other tasks add and remove theirs
        reader = _READERS.pop(key, None) if key[1] == task else None
        if reader is not None:
            reader.close()
