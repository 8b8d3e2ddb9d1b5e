"""The Fetch response by hand: a header per partition, then the log's own bytes.

Batches are never copied: the response is a list of parts, some of them ranges of files. Tested
equal to the compiled codec, over every version.
"""

from collections.abc import Sequence
from struct import Struct
from typing import NamedTuple

from barnabas.base.ids import Uuid
from barnabas.base.network import Part
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.varint import write_unsigned_varint

FLEXIBLE_FROM = 12
TOPIC_ID_FROM = 13
LOG_START_FROM = 5
SESSION_FROM = 7
PREFERRED_REPLICA_FROM = 11
ENDPOINTS_FROM = 16

_INT16 = Struct(">h")
_INT32 = Struct(">i")
_TOP = Struct(">ihi")
_PARTITION_V4 = Struct(">ihqq")
_PARTITION_V5 = Struct(">ihqqq")
_ABORTED = Struct(">qq")
_NO_ABORTED_NO_PREFERRED = b"\0" + _INT32.pack(-1)
_DIVERGING = Struct(">BBiqB")
"""Tag 0: size, epoch, end offset, no tags."""
_CURRENT_LEADER = Struct(">BBiiB")
"""Tag 1: size, leader, leader epoch, no tags."""
NO_REPLICA = -1


class FetchAnswer(NamedTuple):
    """One partition's part of the response."""

    topic: str | Uuid
    partition: int
    error: ErrorCode
    high_watermark: int
    last_stable_offset: int
    log_start_offset: int
    aborted: list[tuple[int, int]] | None
    """(producer id, first offset) of aborted transactions, for `read_committed` only."""
    parts: list[Part]
    size_bytes: int
    preferred_replica: int = NO_REPLICA
    diverging: tuple[int, int] | None = None
    """(epoch, end offset) where a follower's log parts from this one."""
    current_leader: tuple[int, int] | None = None
    """(leader, leader epoch), told with an error since v16 (KIP-951)."""


class NodeAddress(NamedTuple):
    """A broker, as seen through one listener."""

    node_id: int
    host: str
    port: int
    rack: str | None


def encode_fetch(
    version: int,
    error: ErrorCode,
    session_id: int,
    answers: list[FetchAnswer],
    endpoints: Sequence[NodeAddress] = (),
) -> list[Part]:
    """The response body as parts; answers of one topic must be neighbours or are repeated."""
    topics: list[tuple[str | Uuid, list[FetchAnswer]]] = []
    for answer in answers:
        if not topics or topics[-1][0] != answer.topic:
            topics.append((answer.topic, []))
        topics[-1][1].append(answer)
    if version >= FLEXIBLE_FROM:
        return _encode_flexible(version, error, session_id, topics, endpoints)
    return _encode_plain(version, error, session_id, topics)


def _encode_flexible(
    version: int,
    error: ErrorCode,
    session_id: int,
    topics: list[tuple[str | Uuid, list[FetchAnswer]]],
    endpoints: Sequence[NodeAddress],
) -> list[Part]:
    parts: list[Part] = []
    out = bytearray(_TOP.pack(0, error, session_id))
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
            out += _PARTITION_V5.pack(*answer[1:6])
            if answer.aborted is None and answer.preferred_replica == NO_REPLICA:
                out += _NO_ABORTED_NO_PREFERRED
            else:
                write_unsigned_varint(out, 0 if answer.aborted is None else len(answer.aborted) + 1)
                for entry in answer.aborted or ():
                    out += _ABORTED.pack(*entry)
                    out.append(0)
                out += _INT32.pack(answer.preferred_replica)
            write_unsigned_varint(out, answer.size_bytes + 1)
            if answer.size_bytes:
                parts.append(bytes(out))
                parts += answer.parts
                out = bytearray()
            if answer.diverging is None and answer.current_leader is None:
                out.append(0)
            else:
                _write_tags(out, answer)
        out.append(0)
    if endpoints and version >= ENDPOINTS_FROM:
        _write_endpoints(out, endpoints)
    else:
        out.append(0)
    parts.append(bytes(out))
    return parts


def _write_tags(out: bytearray, answer: FetchAnswer) -> None:
    out.append((answer.diverging is not None) + (answer.current_leader is not None))
    if answer.diverging is not None:
        out += _DIVERGING.pack(0, _DIVERGING.size - 2, *answer.diverging, 0)
    if answer.current_leader is not None:
        out += _CURRENT_LEADER.pack(1, _CURRENT_LEADER.size - 2, *answer.current_leader, 0)


def _write_endpoints(out: bytearray, endpoints: Sequence[NodeAddress]) -> None:
    field = bytearray()
    write_unsigned_varint(field, len(endpoints) + 1)
    for endpoint in endpoints:
        field += _INT32.pack(endpoint.node_id)
        write_string(field, endpoint.host)
        field += _INT32.pack(endpoint.port)
        write_string(field, endpoint.rack)
        field.append(0)
    out += b"\x01\x00"
    write_unsigned_varint(out, len(field))
    out += field


def write_string(out: bytearray, text: str | None) -> None:
    """Append a compact nullable string."""
    if text is None:
        out.append(0)
        return
    data = text.encode()
    write_unsigned_varint(out, len(data) + 1)
    out += data


def _encode_plain(
    version: int,
    error: ErrorCode,
    session_id: int,
    topics: list[tuple[str | Uuid, list[FetchAnswer]]],
) -> list[Part]:
    parts: list[Part] = []
    out = bytearray(_TOP.pack(0, error, session_id) if version >= SESSION_FROM else bytes(4))
    out += _INT32.pack(len(topics))
    for topic, answers in topics:
        assert isinstance(topic, str)
        name = topic.encode()
        out += _INT16.pack(len(name))
        out += name
        out += _INT32.pack(len(answers))
        for answer in answers:
            if version >= LOG_START_FROM:
                out += _PARTITION_V5.pack(*answer[1:6])
            else:
                out += _PARTITION_V4.pack(*answer[1:5])
            if answer.aborted is None:
                out += _INT32.pack(-1)
            else:
                out += _INT32.pack(len(answer.aborted))
                for entry in answer.aborted:
                    out += _ABORTED.pack(*entry)
            if version >= PREFERRED_REPLICA_FROM:
                out += _INT32.pack(answer.preferred_replica)
            out += _INT32.pack(answer.size_bytes)
            if answer.size_bytes:
                parts.append(bytes(out))
                parts += answer.parts
                out = bytearray()
    parts.append(bytes(out))
    return parts
