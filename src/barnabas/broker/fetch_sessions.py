"""Fetch sessions (KIP-227): a consumer names its partitions once, then only what changes.

The cache holds a bounded number of sessions. A new one replaces the one that was used least
recently, if that has rested long enough; otherwise the client is served without a session.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterable

from barnabas.base.ids import Uuid
from barnabas.protocol.errors import ErrorCode

FINAL_EPOCH = -1
INITIAL_EPOCH = 0
EVICTION_REST_MS = 120_000
INT32_MAX = 2**31 - 1

PartitionKey = tuple[str | Uuid, int]


class FetchTarget:
    """One partition that a client fetches, with what it was last told."""

    __slots__ = (
        "current_leader_epoch",
        "fetch_offset",
        "high_watermark_sent",
        "index",
        "last_fetched_epoch",
        "log_start_offset_sent",
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
    ) -> None:
        self.topic = topic
        self.index = index
        self.fetch_offset = fetch_offset
        self.size_max_bytes = size_max_bytes
        self.current_leader_epoch = current_leader_epoch
        self.last_fetched_epoch = last_fetched_epoch
        self.high_watermark_sent = -1
        self.log_start_offset_sent = -1

    def update(self, other: "FetchTarget") -> None:
        """Take over what the client asks now, keeping what it was told."""
        self.fetch_offset = other.fetch_offset
        self.size_max_bytes = other.size_max_bytes
        self.current_leader_epoch = other.current_leader_epoch
        self.last_fetched_epoch = other.last_fetched_epoch


class FetchSession:
    """The partitions of one client, in the order in which they are to be served."""

    __slots__ = ("by_id", "epoch", "session_id", "targets", "used_ms")

    def __init__(self, session_id: int, by_id: bool, now_ms: int) -> None:
        self.session_id = session_id
        self.by_id = by_id
        self.epoch = INITIAL_EPOCH + 1
        self.targets: dict[PartitionKey, FetchTarget] = {}
        self.used_ms = now_ms

    def update(self, targets: Iterable[FetchTarget], forgotten: Iterable[PartitionKey]) -> None:
        """Apply an incremental request."""
        for target in targets:
            key = (target.topic, target.index)
            known = self.targets.get(key)
            if known is None:
                self.targets[key] = target
            else:
                known.update(target)
        for key in forgotten:
            self.targets.pop(key, None)

    def served(self, keys: Iterable[PartitionKey]) -> None:
        """Put partitions that sent data last, so that all get their turn."""
        targets = self.targets
        if len(targets) > 1:
            for key in keys:
                target = targets.pop(key, None)
                if target is not None:
                    targets[key] = target

    def next_epoch(self) -> None:
        """The epoch after this one wraps to 1: 0 and -1 have meanings."""
        self.epoch = 1 if self.epoch == INT32_MAX else self.epoch + 1


class FetchSessionCache:
    """At most `slots` sessions (`max.incremental.fetch.session.cache.slots`)."""

    def __init__(self, slots: int, random_int32: Callable[[], int]) -> None:
        self._slots = slots
        self._random_int32 = random_int32
        self._sessions: OrderedDict[int, FetchSession] = OrderedDict()

    def __len__(self) -> int:
        return len(self._sessions)

    def create(self, targets: list[FetchTarget], by_id: bool, now_ms: int) -> FetchSession | None:
        """A new session with `targets`, or None when there is no room."""
        if not self._make_room(now_ms):
            return None
        session_id = self._random_int32()
        while session_id <= 0 or session_id in self._sessions:
            session_id = self._random_int32()
        session = FetchSession(session_id, by_id, now_ms)
        session.update(targets, ())
        self._sessions[session_id] = session
        return session

    def _make_room(self, now_ms: int) -> bool:
        if self._slots <= 0:
            return False
        if len(self._sessions) < self._slots:
            return True
        oldest_id, oldest = next(iter(self._sessions.items()))
        if now_ms - oldest.used_ms < EVICTION_REST_MS:
            return False
        del self._sessions[oldest_id]
        return True

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
        session.next_epoch()
        session.used_ms = now_ms
        self._sessions.move_to_end(session_id)
        return session

    def remove(self, session_id: int) -> None:
        """Forget a session; harmless when there is none."""
        self._sessions.pop(session_id, None)
