"""The Produce request and response by hand, the hottest messages there are.

The request is parsed by offset: what a batch needs is where it begins and ends in the frame.
The response is packed straight into bytes when every partition answers with plain figures, as
nearly all do. Both are tested equal to the compiled codec, over every version.
"""

import struct
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from barnabas.base.ids import Uuid
from barnabas.node.broker.schemas.named_schemas import NamedSchemas
from barnabas.node.log.stepped_check import CheckedBatch
from barnabas.node.log.validator import Rejection
from barnabas.protocol.codec.runtime import (
    REQUEST_ELEMENTS_MAX,
    REQUEST_NAMES_MAX,
    beyond_limit,
    too_many_names,
)
from barnabas.protocol.errors import DecodeError, ErrorCode
from barnabas.protocol.varint import read_unsigned_varint, write_unsigned_varint

ACKS_ALL = -1
FLEXIBLE_FROM = 9
TOPIC_ID_FROM = 13

_INT16 = struct.Struct(">h")
_INT32 = struct.Struct(">i")
_ACKS_TIMEOUT_COUNT = struct.Struct(">hii")
_ACKS_TIMEOUT = struct.Struct(">hi")
_TWO_INT32 = struct.Struct(">ii")
_PARTITION_V3 = struct.Struct(">ihqq")
_PARTITION_V5 = struct.Struct(">ihqqq")
_PARTITION_V8 = struct.Struct(">ihqqqih")
_PARTITION_V9 = struct.Struct(">ihqqqBBB")


class ProducePartition(NamedTuple):
    """One partition's records: a range of the frame; `start` is -1 for null records."""

    partition: int
    start: int
    end: int


class ProduceTopic(NamedTuple):
    """A topic by name (before v13) or id."""

    topic: str | Uuid
    partitions: list[ProducePartition]


Refused = Mapping[str | Uuid, ErrorCode]
"""Topics to which the sender may not write, as the request names them."""
NONE_REFUSED: Final[Refused] = MappingProxyType({})


Checks = Mapping[tuple[str | Uuid, int], CheckedBatch | Rejection]
"""Of the partitions with compressed or long batches whose records the log would look at."""
NO_CHECKS: Final[Checks] = MappingProxyType({})
Named = Mapping[tuple[str | Uuid, int], NamedSchemas]
"""Of those that were checked in steps, if their topic validates schemas."""
NONE_NAMED: Final[Named] = MappingProxyType({})


class ParsedProduce(NamedTuple):
    """A Produce request."""

    transactional_id: str | None
    acks: int
    timeout_ms: int
    topics: list[ProduceTopic]
    refused: Refused = NONE_REFUSED
    checks: Checks = NO_CHECKS
    named: Named = NONE_NAMED


class PartitionAnswer(NamedTuple):
    """One partition's answer without messages."""

    partition: int
    error: ErrorCode
    base_offset: int
    log_append_time_ms: int
    log_start_offset: int


def parse_produce(frame: bytearray, position: int, version: int) -> ParsedProduce:
    """Parse the body that begins at `position`. Raises DecodeError."""
    try:
        if version >= FLEXIBLE_FROM:
            return _parse_flexible(frame, position, version >= TOPIC_ID_FROM)
        return _parse_plain(frame, position)
    except (IndexError, UnicodeDecodeError, struct.error) as error:
        raise DecodeError(f"a malformed produce request: {error}") from error


def without_repetitions(request: ParsedProduce) -> ParsedProduce:
    """The request with each partition once.

    Of one that is named again the last records count, and the others are dropped unread, as by
    Kafka's KafkaApis, which keeps them in a map.
    """
    count = sum(len(topic.partitions) for topic in request.topics)
    if count <= 1:
        return request
    by_topic: dict[str | Uuid, dict[int, ProducePartition]] = {}
    for topic, partitions in request.topics:
        by_topic.setdefault(topic, {}).update((entry.partition, entry) for entry in partitions)
    if len(by_topic) == len(request.topics) and sum(map(len, by_topic.values())) == count:
        return request
    topics = [ProduceTopic(topic, [*entries.values()]) for topic, entries in by_topic.items()]
    return request._replace(topics=topics)


def _parse_plain(frame: bytearray, position: int) -> ParsedProduce:
    transactional_id, position = _nullable_string(frame, position)
    acks, timeout_ms, topic_count = _ACKS_TIMEOUT_COUNT.unpack_from(frame, position)
    position += 10
    left = _check_topics(topic_count, frame, position)
    topics = []
    for _ in range(topic_count):
        name, position = _nullable_string(frame, position)
        if name is None:
            raise DecodeError("a topic name is null")
        (partition_count,) = _INT32.unpack_from(frame, position)
        position += 4
        left = _check_count(partition_count, frame, position, left)
        partitions = []
        for _ in range(partition_count):
            index, size = _TWO_INT32.unpack_from(frame, position)
            position += 8
            end = _range_end(position, size, frame)
            partitions.append(ProducePartition(index, position if size >= 0 else -1, end))
            position = end
        topics.append(ProduceTopic(name, partitions))
    return ParsedProduce(transactional_id, acks, timeout_ms, topics)


def _parse_flexible(frame: bytearray, position: int, with_ids: bool) -> ParsedProduce:
    transactional_id, position = _compact_string(frame, position)
    acks, timeout_ms = _ACKS_TIMEOUT.unpack_from(frame, position)
    topic_count, position = _compact_length(frame, position + 6)
    left = _check_topics(topic_count, frame, position)
    topics = []
    for _ in range(topic_count):
        topic: str | Uuid | None
        if with_ids:
            topic = Uuid(bytes(frame[position : position + 16]))
            position += 16
            if position > len(frame):
                raise DecodeError("a topic id is cut short")
        else:
            topic, position = _compact_string(frame, position)
            if topic is None:
                raise DecodeError("a topic name is null")
        partition_count, position = _compact_length(frame, position)
        left = _check_count(partition_count, frame, position, left)
        partitions = []
        for _ in range(partition_count):
            (index,) = _INT32.unpack_from(frame, position)
            size, position = _compact_length(frame, position + 4)
            end = _range_end(position, size, frame)
            partitions.append(ProducePartition(index, position if size >= 0 else -1, end))
            position = _skip_tags(frame, end)
        position = _skip_tags(frame, position)
        topics.append(ProduceTopic(topic, partitions))
    _skip_tags(frame, position)
    return ParsedProduce(transactional_id, acks, timeout_ms, topics)


def _check_topics(count: int, frame: bytearray, position: int) -> int:
    """Return how many elements the request can still contain after its topics."""
    if count > REQUEST_NAMES_MAX:
        raise too_many_names("a produce request")
    return _check_count(count, frame, position, REQUEST_ELEMENTS_MAX)


def _check_count(count: int, frame: bytearray, position: int, left: int) -> int:
    """Return how many elements the request can still contain after an array of `count`."""
    if not 0 <= count <= len(frame) - position:
        raise DecodeError(f"an array of {count} does not fit the request")
    if count > left:
        raise beyond_limit("a produce request")
    return left - count


def _range_end(position: int, size: int, frame: bytearray) -> int:
    if size < 0:
        if size != -1:
            raise DecodeError(f"records of {size} bytes")
        return position
    end = position + size
    if end > len(frame):
        raise DecodeError(f"records of {size} bytes do not fit the request")
    return end


def _nullable_string(frame: bytearray, position: int) -> tuple[str | None, int]:
    (size,) = _INT16.unpack_from(frame, position)
    position += 2
    if size < 0:
        if size != -1:
            raise DecodeError(f"a string of {size} bytes")
        return None, position
    end = _range_end(position, size, frame)
    return frame[position:end].decode(), end


def _compact_length(frame: bytearray, position: int) -> tuple[int, int]:
    """A compact length; -1 for null."""
    first = frame[position]
    if first < 0x80:
        return first - 1, position + 1
    value, position = read_unsigned_varint(frame, position)
    return value - 1, position


def _compact_string(frame: bytearray, position: int) -> tuple[str | None, int]:
    size, position = _compact_length(frame, position)
    if size < 0:
        return None, position
    end = _range_end(position, size, frame)
    return frame[position:end].decode(), end


def _skip_tags(frame: bytearray, position: int) -> int:
    count = frame[position]
    position += 1
    if not count:
        return position
    count, position = read_unsigned_varint(frame, position - 1)
    _check_count(count, frame, position, REQUEST_ELEMENTS_MAX)
    for _ in range(count):
        _, position = read_unsigned_varint(frame, position)
        size, position = read_unsigned_varint(frame, position)
        position = _range_end(position, size, frame)
    return position


def encode_answers(version: int, topics: list[tuple[str | Uuid, list[PartitionAnswer]]]) -> bytes:
    """Encode a response in which no partition has messages or record errors."""
    if version >= FLEXIBLE_FROM:
        return _encode_flexible(version, topics)
    out = bytearray(_INT32.pack(len(topics)))
    for topic, answers in topics:
        assert isinstance(topic, str)
        name = topic.encode()
        out += _INT16.pack(len(name))
        out += name
        out += _INT32.pack(len(answers))
        for answer in answers:
            if version >= 8:
                out += _PARTITION_V8.pack(*answer, 0, -1)
            elif version >= 5:
                out += _PARTITION_V5.pack(*answer)
            else:
                out += _PARTITION_V3.pack(*answer[:4])
    out += b"\0\0\0\0"  # throttle_time_ms
    return bytes(out)


def _encode_flexible(version: int, topics: list[tuple[str | Uuid, list[PartitionAnswer]]]) -> bytes:
    out = bytearray()
    write_unsigned_varint(out, len(topics) + 1)
    for topic, answers in topics:
        if version >= TOPIC_ID_FROM:
            assert isinstance(topic, bytes)
            out += topic
        else:
            assert isinstance(topic, str)
            name = topic.encode()
            write_unsigned_varint(out, len(name) + 1)
            out += name
        write_unsigned_varint(out, len(answers) + 1)
        for answer in answers:
            # no record errors (compact length 1), null message, no tagged fields
            out += _PARTITION_V9.pack(*answer, 1, 0, 0)
        out.append(0)
    out += b"\0\0\0\0\0"  # throttle_time_ms, no tagged fields
    return bytes(out)
