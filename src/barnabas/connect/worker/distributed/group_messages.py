"""Messages of the worker group: what a member says when it joins, and what its leader assigns.

Three subprotocols, by the newest that all members know:

    sessioned    version 2: as compatible, and requests between workers are signed (KIP-507)
    compatible   version 1: members keep what they run until it is revoked (KIP-415)
    default      version 0: all stop everything before each assignment (eager)

Kafka's types: STRING has a length of 2 bytes, ARRAY and BYTES one of 4. Fields that an older
version leaves out at the end count as absent, so that version 0 can be read as version 1.

Source: org.apache.kafka.connect.runtime.distributed.ConnectProtocol and
IncrementalCooperativeConnectProtocol (Kafka 4.3).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from struct import Struct
from typing import Final, Literal

from barnabas.connect.tasks.base import TaskId
from barnabas.connect.worker.distributed.share import NOTHING, Share

PROTOCOL_TYPE: Final = "connect"
Compatibility = Literal["eager", "compatible", "sessioned"]
"""The setting `connect.protocol`."""
NAMES: Final[dict[Compatibility, str]] = {
    "sessioned": "sessioned",
    "compatible": "compatible",
    "eager": "default",
}
EAGER_VERSION: Final = 0
COMPATIBLE_VERSION: Final = 1
SESSIONED_VERSION: Final = 2
VERSIONS: Final = {"default": EAGER_VERSION, "compatible": 1, "sessioned": SESSIONED_VERSION}
"""By the name of the protocol that the group's coordinator has chosen."""
PROTOCOLS: Final = ("EAGER", "COMPATIBLE", "SESSIONED")
"""The name of each version in Kafka's metrics."""

NO_ERROR: Final = 0
CONFIG_MISMATCH: Final = 1
"""The leader has not read the configurations that a member has: join again."""

_INT16: Final = Struct(">h")
_INT32: Final = Struct(">i")
_INT64: Final = Struct(">q")
_CONNECTOR: Final = -1
"""The task number that stands for the connector itself."""


class GroupMessageError(ValueError):
    """Bytes that are not what a member or a leader writes."""


@dataclass(slots=True, frozen=True)
class Assignment:
    """A member's work; in cooperative rounds `work` is new and `revoked` is to stop.

    `delay_ms` is after what time the member joins again, for what a lost one may come back to.
    """

    error: int
    leader: str | None
    leader_url: str | None
    config_offset: int
    work: Share = NOTHING
    revoked: Share = NOTHING
    delay_ms: int = 0
    version: int = COMPATIBLE_VERSION

    @property
    def has_failed(self) -> bool:
        """True if the leader could not assign."""
        return self.error != NO_ERROR


@dataclass(slots=True, frozen=True)
class Member:
    """A member's metadata: address, how far it has read, what it runs."""

    url: str
    config_offset: int
    assignment: Assignment | None = None

    @property
    def work(self) -> Share:
        """The connectors and tasks that it runs."""
        return NOTHING if self.assignment is None else self.assignment.work


def join_protocols(compatibility: Compatibility, member: Member) -> list[tuple[str, bytes]]:
    """Return (name, metadata) for a JoinGroup request, the best first."""
    known: dict[Compatibility, bytes] = {
        "sessioned": encode_member(member, SESSIONED_VERSION),
        "compatible": encode_member(member, COMPATIBLE_VERSION),
        "eager": encode_member(member, EAGER_VERSION),
    }
    names = list(known)
    return [(NAMES[name], known[name]) for name in names[names.index(compatibility) :]]


def encode_member(member: Member, version: int) -> bytes:
    """Return the metadata of a member."""
    out = [_INT16.pack(version), _string(member.url), _INT64.pack(member.config_offset)]
    if version > EAGER_VERSION:
        if member.assignment is None:
            out.append(_INT32.pack(-1))
        else:
            data = encode_assignment(member.assignment, version)
            out += [_INT32.pack(len(data)), data]
    return b"".join(out)


def decode_member(data: bytes) -> Member:
    """Return what a member wrote, in any version. Raises GroupMessageError."""
    reader = _FieldReader(data)
    reader.version()
    url, offset = reader.string(), reader.int64()
    held = reader.nullable_bytes() if reader.has_more else None
    return Member(url, offset, None if held is None else decode_assignment(held))


def encode_assignment(assignment: Assignment, version: int) -> bytes:
    """Return a member's assignment."""
    out = [
        _INT16.pack(version),
        _INT16.pack(assignment.error),
        _string(assignment.leader or ""),
        _string(assignment.leader_url or ""),
        _INT64.pack(assignment.config_offset),
        _share(assignment.work),
    ]
    if version > EAGER_VERSION:
        out += [_share(assignment.revoked), _INT32.pack(assignment.delay_ms)]
    return b"".join(out)


def decode_assignment(data: bytes) -> Assignment:
    """Return what a leader wrote, in any version. Raises GroupMessageError."""
    reader = _FieldReader(data)
    version = reader.version()
    return Assignment(
        error=reader.int16(),
        leader=reader.string(),
        leader_url=reader.string(),
        config_offset=reader.int64(),
        work=reader.share() if reader.has_more else NOTHING,
        revoked=reader.share() if reader.has_more else NOTHING,
        delay_ms=reader.int32() if reader.has_more else 0,
        version=version,
    )


def _string(text: str) -> bytes:
    data = text.encode()
    return _INT16.pack(len(data)) + data


def _share(share: Share) -> bytes:
    """All of a connector in one entry, itself first."""
    entries: dict[str, list[int]] = {name: [_CONNECTOR] for name in share.connectors}
    for task in share.tasks:
        entries.setdefault(task.connector, []).append(task.task)
    return _INT32.pack(len(entries)) + b"".join(_entries(entries.items()))


def _entries(entries: Iterable[tuple[str, list[int]]]) -> Iterator[bytes]:
    for name, numbers in entries:
        yield _string(name) + _INT32.pack(len(numbers))
        yield b"".join(_INT32.pack(number) for number in numbers)


class _FieldReader:
    def __init__(self, data: bytes) -> None:
        self._data = bytes(data)
        self._at = 0

    @property
    def has_more(self) -> bool:
        return self._at < len(self._data)

    def version(self) -> int:
        version = self.int16()
        if version < EAGER_VERSION:
            raise GroupMessageError(f"Unsupported subscription version: {version}")
        return version

    def int16(self) -> int:
        return self._number(_INT16)

    def int32(self) -> int:
        return self._number(_INT32)

    def int64(self) -> int:
        return self._number(_INT64)

    def string(self) -> str:
        try:
            return self._take(self._length(_INT16)).decode()
        except UnicodeDecodeError as error:
            raise GroupMessageError(f"a string is not UTF-8: {error}") from error

    def nullable_bytes(self) -> bytes | None:
        size = self.int32()
        return None if size < 0 else self._take(size)

    def share(self) -> Share:
        count = self.int32()
        connectors: list[str] = []
        tasks: list[TaskId] = []
        for _ in range(max(count, 0)):  # -1 is a null array
            name = self.string()
            for _ in range(self._length(_INT32)):
                number = self.int32()
                if number == _CONNECTOR:
                    connectors.append(name)
                else:
                    tasks.append(TaskId(name, number))
        return Share(tuple(connectors), tuple(tasks))

    def _number(self, shape: Struct) -> int:
        (number,) = shape.unpack(self._take(shape.size))
        return int(number)

    def _length(self, shape: Struct) -> int:
        size = self._number(shape)
        if size < 0:
            raise GroupMessageError(f"a length is {size}")
        return size

    def _take(self, size: int) -> bytes:
        end = self._at + size
        if end > len(self._data):
            raise GroupMessageError(f"{end - len(self._data)} bytes are missing")
        taken = self._data[self._at : end]
        self._at = end
        return taken
