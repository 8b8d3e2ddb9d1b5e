"""The Fetch response by hand: a header per partition, then the log's own bytes.

Batches are never copied: the response is a list of parts, some of them ranges of files. Tested
equal to the compiled codec, over every version.
"""

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

_INT16 = Struct(">h")
_INT32 = Struct(">i")
_TOP = Struct(">ihi")
_PARTITION_V4 = Struct(">ihqq")
_PARTITION_V5 = Struct(">ihqqq")
_ABORTED = Struct(">qq")
_NO_ABORTED_NO_PREFERRED = b"\0" + _INT32.pack(-1)


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


def encode_fetch(
    version: int, error: ErrorCode, session_id: int, answers: list[FetchAnswer]
) -> list[Part]:
    """The response body as parts; answers of one topic must be neighbours or are repeated."""
    topics: list[tuple[str | Uuid, list[FetchAnswer]]] = []
    for answer in answers:
        if not topics or topics[-1][0] != answer.topic:
            topics.append((answer.topic, []))
        topics[-1][1].append(answer)
    if version >= FLEXIBLE_FROM:
        return _encode_flexible(version, error, session_id, topics)
    return _encode_plain(version, error, session_id, topics)


def _encode_flexible(
    version: int,
    error: ErrorCode,
    session_id: int,
    topics: list[tuple[str | Uuid, list[FetchAnswer]]],
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
            if answer.aborted is None:
                out += _NO_ABORTED_NO_PREFERRED
            else:
                write_unsigned_varint(out, len(answer.aborted) + 1)
                for entry in answer.aborted:
                    out += _ABORTED.pack(*entry)
                    out.append(0)
                out += _INT32.pack(-1)
            write_unsigned_varint(out, answer.size_bytes + 1)
            if answer.size_bytes:
                parts.append(bytes(out))
                parts += answer.parts
                out = bytearray()
            out.append(0)
        out.append(0)
    out.append(0)
    parts.append(bytes(out))
    return parts


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
                out += _INT32.pack(-1)
            out += _INT32.pack(answer.size_bytes)
            if answer.size_bytes:
                parts.append(bytes(out))
                parts += answer.parts
                out = bytearray()
    parts.append(bytes(out))
    return parts
