"""The ShareFetch response by hand: a header per partition, then the log's own bytes.

Batches are never copied: the response is a list of parts, some of them ranges of files. Tested
equal to the compiled codec, over every version (they do not differ).
"""

from collections.abc import Iterable, Sequence
from struct import Struct

from barnabas.base.ids import Uuid
from barnabas.base.network import Part
from barnabas.node.broker.fetch.codec import NodeAddress, write_string
from barnabas.node.metadata.image import NO_LEADER
from barnabas.node.share.core.states import Acquired
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.records.batch import NO_LEADER_EPOCH
from barnabas.protocol.varint import write_unsigned_varint

_TOP = Struct(">ihBi")
"""Throttle time, error, no message, acquisition lock time-out."""
_INDEX = Struct(">ihBh")
"""Partition, error, no message, error of the acknowledgement."""
_INDEX_AND_ERROR = Struct(">ih")
_ACK_ERROR = Struct(">h")
"""These two stand around a message."""
_LEADER = Struct(">iiB")
_ACQUIRED = Struct(">qqhB")
_INT32 = Struct(">i")


class ShareAnswer:
    """One partition's part of the response."""

    __slots__ = (
        "ack_error",
        "ack_message",
        "acquired",
        "error",
        "index",
        "leader",
        "message",
        "parts",
        "size_bytes",
    )

    def __init__(self, index: int, error: ErrorCode = ErrorCode.NONE) -> None:
        self.index = index
        self.error = error
        self.message: str | None = None
        """The share coordinator's error message, if the error is its."""
        self.ack_error = ErrorCode.NONE
        self.ack_message: str | None = None
        self.leader: tuple[int, int] = (NO_LEADER, NO_LEADER_EPOCH)
        """(leader, leader epoch), told with NOT_LEADER_OR_FOLLOWER and FENCED_LEADER_EPOCH.

        Kafka says (0, 0) otherwise, its defaults: with an error, franz-go then fetches from node 0
        and, where no such node exists, never again from the leader.
        """
        self.parts: Sequence[Part] = ()
        self.size_bytes = 0
        self.acquired: Sequence[Acquired] = ()


def encode_share_fetch(
    error: ErrorCode,
    lock_timeout_ms: int,
    topics: Iterable[tuple[Uuid, Sequence[ShareAnswer]]] = (),
    endpoints: Sequence[NodeAddress] = (),
) -> list[Part]:
    """The response body as parts."""
    parts: list[Part] = []
    out = bytearray(_TOP.pack(0, error, 0, lock_timeout_ms))
    topics = list(topics)
    write_unsigned_varint(out, len(topics) + 1)
    for topic_id, answers in topics:
        out += topic_id
        write_unsigned_varint(out, len(answers) + 1)
        for answer in answers:
            if answer.message is None:
                out += _INDEX.pack(answer.index, answer.error, 0, answer.ack_error)
            else:
                out += _INDEX_AND_ERROR.pack(answer.index, answer.error)
                write_string(out, answer.message)
                out += _ACK_ERROR.pack(answer.ack_error)
            write_string(out, answer.ack_message)
            out += _LEADER.pack(*answer.leader, 0)
            write_unsigned_varint(out, answer.size_bytes + 1)
            if answer.size_bytes:
                parts.append(bytes(out))
                parts += answer.parts
                out = bytearray()
            write_unsigned_varint(out, len(answer.acquired) + 1)
            for entry in answer.acquired:
                out += _ACQUIRED.pack(*entry, 0)
            out.append(0)
        out.append(0)
    write_unsigned_varint(out, len(endpoints) + 1)
    for endpoint in endpoints:
        out += _INT32.pack(endpoint.node_id)
        write_string(out, endpoint.host)
        out += _INT32.pack(endpoint.port)
        write_string(out, endpoint.rack)
        out.append(0)
    out.append(0)
    parts.append(bytes(out))
    return parts
