"""Share sessions: which partitions a member fetches from this node, and who it is.

A member names its partitions once, then only changes; each request carries the next epoch. The
session ends with the member's last request, with its connection, or with its next first request.
There may be `group.share.max.share.sessions` of them. Source: Kafka's ShareSessionCache, KIP-932.
"""

from collections.abc import Iterable
from typing import NamedTuple

from barnabas.base.ids import Uuid
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.well_known import FINAL_EPOCH, INITIAL_EPOCH, epoch_after

PartitionId = tuple[Uuid, int]

MEMBER_ID_LENGTH_MAX = 36
"""As many characters as a UUID in its long form has."""


class SessionKey(NamedTuple):
    """One member of one group."""

    group_id: str
    member_id: str


class SessionPartition:
    """A partition of a session."""

    __slots__ = ("is_to_be_told", "topic")

    def __init__(self, topic: str | None, *, is_to_be_told: bool) -> None:
        self.topic = topic
        """Its name when it was added; None if the id was unknown."""
        self.is_to_be_told = is_to_be_told
        """True if the next answer mentions it even without news."""


class ShareSession:
    """The state of one member."""

    __slots__ = ("connection", "epoch", "key", "partitions")

    def __init__(self, key: SessionKey, connection: object) -> None:
        self.key = key
        self.epoch = INITIAL_EPOCH + 1
        self.connection = connection
        self.partitions: dict[PartitionId, SessionPartition] = {}

    def update(
        self, named: Iterable[tuple[PartitionId, str | None]], forgotten: Iterable[PartitionId]
    ) -> None:
        """Add what a request names, then drop what it forgets."""
        for partition, topic in named:
            if partition not in self.partitions:
                self.partitions[partition] = SessionPartition(topic, is_to_be_told=True)
        for partition in forgotten:
            self.partitions.pop(partition, None)

    def is_worth_telling(self, partition: PartitionId, error: ErrorCode, size_bytes: int) -> bool:
        """Return whether an answer mentions the partition; remembers that it did."""
        cached = self.partitions.get(partition)
        if cached is None:
            return True
        tells = bool(size_bytes) or cached.is_to_be_told or error != ErrorCode.NONE
        cached.is_to_be_told = error != ErrorCode.NONE
        if size_bytes:
            self.partitions[partition] = self.partitions.pop(partition)
        return tells


class ShareSessions:
    """The sessions of a node."""

    __slots__ = ("_by_connection", "_members", "_sessions", "sessions_max")

    def __init__(self, sessions_max: int) -> None:
        self.sessions_max = sessions_max
        self._sessions: dict[SessionKey, ShareSession] = {}
        self._members: dict[str, int] = {}
        """Sessions of each group."""
        self._by_connection: dict[object, dict[SessionKey, None]] = {}

    def __len__(self) -> int:
        return len(self._sessions)

    def find(self, key: SessionKey) -> ShareSession | None:
        """The member's session."""
        return self._sessions.get(key)

    def has_members(self, group_id: str) -> bool:
        """Return whether any member of the group has a session."""
        return group_id in self._members

    def open(
        self,
        key: SessionKey,
        named: Iterable[tuple[PartitionId, str | None]],
        connection: object,
    ) -> ShareSession | ErrorCode:
        """Begin a session, in the place of the one that the member may have."""
        self.remove(key)
        if len(self._sessions) >= self.sessions_max:
            return ErrorCode.SHARE_SESSION_LIMIT_REACHED
        session = ShareSession(key, connection)
        for partition, topic in named:
            session.partitions[partition] = SessionPartition(topic, is_to_be_told=False)
        self._sessions[key] = session
        self._members[key.group_id] = self._members.get(key.group_id, 0) + 1
        self._by_connection.setdefault(connection, {})[key] = None
        return session

    def resume(self, key: SessionKey, epoch: int) -> ShareSession | ErrorCode:
        """The session that a request goes on with; its epoch moves on."""
        session = self._sessions.get(key)
        if session is None:
            return ErrorCode.SHARE_SESSION_NOT_FOUND
        if epoch == FINAL_EPOCH:
            return session
        if session.epoch != epoch:
            return ErrorCode.INVALID_SHARE_SESSION_EPOCH
        session.epoch = epoch_after(session.epoch)
        return session

    def remove(self, key: SessionKey) -> ShareSession | None:
        """End a session. Its connection is remembered: when that goes, the group may be empty."""
        session = self._sessions.pop(key, None)
        if session is not None:
            left = self._members[key.group_id] - 1
            if left:
                self._members[key.group_id] = left
            else:
                del self._members[key.group_id]
        return session

    def connection_lost(self, connection: object) -> list[tuple[SessionKey, ShareSession | None]]:
        """The members that came through a connection, with the sessions that end with it."""
        keys = self._by_connection.pop(connection, {})
        lost: list[tuple[SessionKey, ShareSession | None]] = []
        for key in keys:
            session = self._sessions.get(key)
            is_its = session is not None and session.connection is connection
            lost.append((key, session if is_its else None))
        return lost
