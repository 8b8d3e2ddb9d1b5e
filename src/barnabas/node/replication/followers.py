"""Progress of one follower as its leader knows it, from the follower's fetches.

A follower is caught up at time t if it then asked for the leader's log end, or asked later for
what was the log end at t. A fetch session names only the partitions that changed; for the others
it repeats what was asked before, so the time of the session's last fetch counts for them too.
That is looked up when it matters: when the leader appends past a follower's end.

Source: Kafka's Replica and ReplicaState.
"""

from barnabas.protocol.records.batch import NO_OFFSET


class FetchSource:
    """The fetches of one follower that stand for all the partitions it named in them."""

    __slots__ = ("is_displaced", "last_fetch_ms")

    def __init__(self, last_fetch_ms: int = 0) -> None:
        self.last_fetch_ms = last_fetch_ms
        self.is_displaced = False
        """Fetches from elsewhere have been taken note of since: what these said must be repeated.

        They may have come late, from a connection that the follower has given up.
        """


class Follower:
    """One other replica of a partition that this node leads. Times are monotonic, in ms."""

    __slots__ = (
        "broker_epoch",
        "broker_id",
        "holds_watermark",
        "is_in_isr",
        "last_caught_up_ms",
        "last_fetch_leader_end",
        "last_fetch_ms",
        "log_end_offset",
        "log_start_offset",
        "source",
    )

    def __init__(self, broker_id: int) -> None:
        self.broker_id = broker_id
        self.log_end_offset = NO_OFFSET
        self.log_start_offset = NO_OFFSET
        self.last_fetch_leader_end = 0
        self.last_fetch_ms = 0
        self.last_caught_up_ms = 0
        self.broker_epoch: int | None = None
        """Of its last fetch; None before the first, -1 from one that gave none."""
        self.source: FetchSource | None = None
        self.is_in_isr = False
        self.holds_watermark = False
        """True if it is in the maximal ISR: committed, or proposed and perhaps committed."""

    def reset(
        self, now_ms: int, leader_end_offset: int, *, is_new_leader: bool, is_in_isr: bool
    ) -> None:
        """Begin a new leader epoch; a follower in the ISR counts as just caught up."""
        self.last_caught_up_ms = now_ms if is_in_isr else 0
        if is_new_leader:
            self.log_end_offset = NO_OFFSET
            self.log_start_offset = NO_OFFSET
            self.last_fetch_leader_end = 0
            self.last_fetch_ms = 0
            self.broker_epoch = None
            self.source = None
        else:
            self.last_fetch_leader_end = leader_end_offset
            self.last_fetch_ms = now_ms if is_in_isr else 0

    def record(
        self,
        fetch_offset: int,
        log_start_offset: int,
        now_ms: int,
        leader_end_offset: int,
        broker_epoch: int,
        source: FetchSource | None,
    ) -> None:
        """Take note of a fetch: everything before `fetch_offset` is in the follower's log."""
        if fetch_offset >= leader_end_offset:
            self.last_caught_up_ms = max(self.last_caught_up_ms, now_ms)
        elif fetch_offset >= self.last_fetch_leader_end:
            self.last_caught_up_ms = max(self.last_caught_up_ms, self.last_fetch_ms)
        self.log_end_offset = fetch_offset
        self.log_start_offset = log_start_offset
        self.last_fetch_leader_end = max(leader_end_offset, self.last_fetch_leader_end)
        self.last_fetch_ms = now_ms
        self.broker_epoch = broker_epoch
        if source is not self.source:
            if self.source is not None:
                self.source.is_displaced = True
            self.source = source

    def fell_behind(self) -> None:
        """The leader appended to a log that this follower had all of."""
        source = self.source
        if source is not None and source.last_fetch_ms > self.last_fetch_ms:
            self.last_fetch_ms = source.last_fetch_ms
            self.last_caught_up_ms = max(self.last_caught_up_ms, source.last_fetch_ms)

    def fetched_ms(self) -> int:
        """Return when it last fetched, whether or not the partition was named then."""
        source = self.source
        if source is None:
            return self.last_fetch_ms
        return max(self.last_fetch_ms, source.last_fetch_ms)

    def is_caught_up(self, leader_end_offset: int, now_ms: int, lag_max_ms: int) -> bool:
        """Return whether it has everything, or had at most `lag_max_ms` ago."""
        return (
            leader_end_offset == self.log_end_offset
            or now_ms - self.last_caught_up_ms <= lag_max_ms
        )
