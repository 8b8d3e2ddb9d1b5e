"""Fetch sessions (KIP-227): a client names its partitions once, then only what changes.

A session watches its partitions: those that have something to tell, or have just been asked for,
are *ready*, and a fetch looks at no other. So thousands of idle partitions cost nothing. A fetch
without a session uses a temporary one.

The cache holds a bounded number of sessions. A new one replaces the one that was used least
recently, if that has rested long enough, or if it is a consumer's and the new one a follower's;
otherwise the client is served without a session.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from barnabas.base.ids import Uuid
from barnabas.node.broker.grants import Grants
from barnabas.node.replication.followers import FetchSource
from barnabas.node.replication.partition import Partition
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.well_known import INITIAL_EPOCH, epoch_after

EVICTION_REST_MS = 120_000

PartitionKey = tuple[str | Uuid, int]


NOT_SENT = -1


class FetchTarget:
    """One partition that a client fetches, with what it was last told."""

    __slots__ = (
        "current_leader_epoch",
        "fetch_offset",
        "high_watermark_sent",
        "index",
        "last_fetched_epoch",
        "log_start_offset",
        "log_start_offset_sent",
        "partition",
        "size_max_bytes",
        "topic",
    )

    def __init__(
        self,
        topic: str | Uuid,
        index: int,
        fetch_offset: int,
        size_max_bytes: int,
        current_leader_epoch: int = -1,
        last_fetched_epoch: int = -1,
        log_start_offset: int = -1,
    ) -> None:
        self.topic = topic
        self.index = index
        self.fetch_offset = fetch_offset
        self.size_max_bytes = size_max_bytes
        self.current_leader_epoch = current_leader_epoch
        self.last_fetched_epoch = last_fetched_epoch
        self.log_start_offset = log_start_offset
        """The start offset of a follower's log."""
        self.high_watermark_sent = NOT_SENT
        self.log_start_offset_sent = NOT_SENT
        self.partition: Partition | None = None
        """The partition that is watched."""

    def update(self, other: "FetchTarget") -> None:
        """Take over what the client asks now, keeping what it was told.

        A follower drops the answer to a request of an older leader epoch, or of another offset
        than its log ends with since. It is sent again; otherwise the follower would learn the high
        watermark only with the next one.
        """
        if (
            other.current_leader_epoch != self.current_leader_epoch
            or other.fetch_offset < self.fetch_offset
        ):
            self.high_watermark_sent = self.log_start_offset_sent = NOT_SENT
        self.fetch_offset = other.fetch_offset
        self.size_max_bytes = other.size_max_bytes
        self.current_leader_epoch = other.current_leader_epoch
        self.last_fetched_epoch = other.last_fetched_epoch
        self.log_start_offset = other.log_start_offset


class WaitingFetch(Protocol):
    """A fetch that looks again when its session has something ready."""

    def look_again(self) -> None:
        """Answer if there is enough now."""


class FetchSession:
    """The partitions of one client, and which of them are to be looked at."""

    __slots__ = (
        "_by_partition",
        "by_id",
        "epoch",
        "grants",
        "is_follower",
        "ready",
        "session_id",
        "source",
        "targets",
        "used_ms",
        "waiting",
    )

    def __init__(
        self, session_id: int, by_id: bool, now_ms: int, *, is_follower: bool = False
    ) -> None:
        self.session_id = session_id
        self.by_id = by_id
        self.epoch = INITIAL_EPOCH + 1
        self.is_follower = is_follower
        self.targets: dict[PartitionKey, FetchTarget] = {}
        self.ready: dict[FetchTarget, None] = {}
        """In the order in which they are to be served."""
        self.used_ms = now_ms
        self.source = FetchSource()
        self.grants: Grants | None = None
        """The partitions that its latest request was allowed to read."""
        self.waiting: WaitingFetch | None = None
        self._by_partition: dict[Partition, FetchTarget] = {}

    def update(self, targets: Iterable[FetchTarget], forgotten: Iterable[PartitionKey]) -> None:
        """Apply a request: what it names is ready to be looked at.

        So is everything, if somebody else has spoken in the follower's name since.
        """
        if self.source.is_displaced:
            self.source.is_displaced = False
            self.ready.update(dict.fromkeys(self.targets.values()))
        for target in targets:
            key = (target.topic, target.index)
            known = self.targets.get(key)
            if known is None:
                self.targets[key] = known = target
            else:
                known.update(target)
            self.ready[known] = None
        for key in forgotten:
            gone = self.targets.pop(key, None)
            if gone is not None:
                self.ready.pop(gone, None)
                self._unwatch(gone)

    def check_again(self, grants: Grants | None) -> None:
        """Have everything looked at if the client may read other topics than before.

        A topic that is taken from it has an answer even if nothing is appended to it.
        """
        if grants is not self.grants:
            self.grants = grants
            self.ready.update(dict.fromkeys(self.targets.values()))

    def watch(self, target: FetchTarget, partition: Partition | None) -> None:
        """Wake `target` whenever there is news about `partition` (None: of nothing)."""
        if target.partition is partition:
            return
        self._unwatch(target)
        if partition is not None:
            target.partition = partition
            self._by_partition[partition] = target
            waiters = partition.follower_waiters if self.is_follower else partition.read_waiters
            waiters[self] = None

    def _unwatch(self, target: FetchTarget) -> None:
        partition, target.partition = target.partition, None
        if partition is not None:
            self._by_partition.pop(partition, None)
            partition.read_waiters.pop(self, None)
            partition.follower_waiters.pop(self, None)

    def partitions_advanced(self, partitions: Sequence[Partition]) -> None:
        """Part of ReadWaiter."""
        any_known = False
        for partition in partitions:
            target = self._by_partition.get(partition)
            if target is not None:
                any_known = True
                self.ready[target] = None
        if any_known and self.waiting is not None:
            self.waiting.look_again()

    def served(self, targets: Iterable[FetchTarget]) -> None:
        """Put partitions that sent data last, so that all get their turn."""
        ready = self.ready
        if len(ready) > 1:
            for target in targets:
                if target in ready:
                    del ready[target]
                    ready[target] = None

    def close(self) -> None:
        """Watch nothing any more."""
        for target in self.targets.values():
            self._unwatch(target)
        self.ready.clear()


class FetchSessionCache:
    """At most `slots` sessions (`max.incremental.fetch.session.cache.slots`)."""

    def __init__(self, slots: int, random_int32: Callable[[], int]) -> None:
        self._slots = slots
        self._random_int32 = random_int32
        self._sessions: OrderedDict[int, FetchSession] = OrderedDict()

    def __len__(self) -> int:
        return len(self._sessions)

    def create(self, by_id: bool, now_ms: int, *, is_follower: bool = False) -> FetchSession | None:
        """A new session, or None when there is no room."""
        if not self._make_room(now_ms, is_follower):
            return None
        session_id = self._random_int32()
        while session_id <= 0 or session_id in self._sessions:
            session_id = self._random_int32()
        session = FetchSession(session_id, by_id, now_ms, is_follower=is_follower)
        self._sessions[session_id] = session
        return session

    def _make_room(self, now_ms: int, is_follower: bool) -> bool:
        if self._slots <= 0:
            return False
        if len(self._sessions) < self._slots:
            return True
        oldest_id, oldest = next(iter(self._sessions.items()))
        if now_ms - oldest.used_ms >= EVICTION_REST_MS:
            self.remove(oldest_id)
            return True
        if is_follower:
            for session_id, session in self._sessions.items():
                if not session.is_follower:
                    self.remove(session_id)
                    return True
        return False

    def resume(
        self, session_id: int, epoch: int, by_id: bool, now_ms: int
    ) -> FetchSession | ErrorCode:
        """The session that an incremental request continues."""
        session = self._sessions.get(session_id)
        if session is None:
            return ErrorCode.FETCH_SESSION_ID_NOT_FOUND
        if session.epoch != epoch:
            return ErrorCode.INVALID_FETCH_SESSION_EPOCH
        if session.by_id != by_id:
            return ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR
        session.epoch = epoch_after(session.epoch)
        session.used_ms = now_ms
        self._sessions.move_to_end(session_id)
        return session

    def remove(self, session_id: int) -> None:
        """Forget a session if it exists."""
        session = self._sessions.pop(session_id, None)
        if session is not None:
            session.close()
