"""One step of the group machine: what its handlers read, and what they gather.

A step lives as long as one event is handled. Handlers change the group's unwritten state, set
timers by key, and put records and answers here; the shard turns it into a `Decision`.
"""

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, NamedTuple

from barnabas.node.coordinator.decision import Answer, CoordinatorRecord, Decision, Moment, Waiter
from barnabas.node.coordinator.group.config import GroupConfig
from barnabas.node.coordinator.group.view import GroupMetadata
from barnabas.node.coordinator.timers import TimerQueue
from barnabas.node.security.principal import Principal
from barnabas.protocol.errors import ErrorCode


class TimerKind(IntEnum):
    """The purpose of a timer."""

    CLASSIC_SESSION = 0
    """A member of a classic group was silent for its session time-out."""
    JOIN = 1
    """The time in which members may join is up."""
    SYNC = 2
    """The time in which members must ask for their assignment is up."""
    MODERN_SESSION = 4
    """A member of a consumer, share or streams group was silent for its session time-out."""
    REVOCATION = 5
    """The time in which such a member must give partitions or tasks up is up."""
    REJOIN = 6
    """The time in which a classic member of a consumer group must join again is up."""
    RESYNC = 7
    """The time in which such a member must ask for its assignment is up."""
    INITIAL_DELAY = 8
    """The time in which a streams group waits for more members is up."""


MEMBER_TIMERS = (
    TimerKind.MODERN_SESSION,
    TimerKind.REVOCATION,
    TimerKind.REJOIN,
    TimerKind.RESYNC,
)
"""The timers of a member of a consumer, share or streams group."""


class TimerKey(NamedTuple):
    """One timer of one group or member."""

    kind: TimerKind
    group_id: str = ""
    member_id: str = ""


GroupTimers = TimerQueue[TimerKey]
KeepVisible = Callable[[Iterable[str]], Collection[str]]
"""Of the topics it is given, those that somebody may know of."""


@dataclass(slots=True)
class Client:
    """The sender of a request. `host` is Kafka's text, as in `/127.0.0.1`."""

    client_id: str
    host: str
    api_version: int
    keep_visible: KeepVisible | None = None
    """None: it may know of all topics."""


@dataclass(slots=True)
class Step:
    """The inputs and the outcome of handling one event."""

    now: Moment
    config: GroupConfig
    timers: GroupTimers
    metadata: GroupMetadata = field(default_factory=GroupMetadata)
    keep_visible: KeepVisible | None = None
    """Filters topics by what the client of the step may see; None: all."""
    records: list[CoordinatorRecord] = field(default_factory=list)
    answers: list[Answer] = field(default_factory=list)
    continuation: Any = None
    replays: bool = True
    """For consumer groups: false where a handler has put the outcome in place already."""

    def answer(self, waiter: Waiter | None, response: Any) -> None:
        """Answer a parked request, if there is one."""
        if waiter is not None:
            self.answers.append(Answer(waiter, response))

    def schedule(self, key: TimerKey, delay_ms: int) -> None:
        """Set or move a timer; it is never due within the same step."""
        self.timers.schedule(key, self.now.monotonic_ms + max(delay_ms, 1))

    def decide(self, response: Any = None, *, is_soft: bool = False) -> Decision:
        """Everything gathered; the group's own state is already as the records will say.

        `is_soft` says that the response tells only what is never written: who is alive, and
        that members must join. It goes out even while the log is stalled, so that a stall does
        not keep members from hearing of a rebalance until they are late for it.
        """
        return Decision(
            self.records,
            response,
            self.answers,
            self.continuation,
            replays=False,
            is_soft=is_soft,
        )

    def decide_and_replay(self, response: Any = None, *, is_soft: bool = False) -> Decision:
        """Everything gathered for a consumer group, which changes as its records are replayed."""
        return Decision(
            self.records,
            response,
            self.answers,
            self.continuation,
            replays=self.replays,
            is_soft=is_soft,
        )


@dataclass(frozen=True, slots=True)
class ClientInfo:
    """The sender of a request, and the version of its API."""

    client_id: str | None
    client_host: str
    principal: Principal
    api_version: int
    keep_visible: KeepVisible | None = None
    """Filters topics by what the client may see; None: it may see all."""

    @property
    def sender(self) -> Client:
        """The sender as groups store it."""
        return Client(
            self.client_id or "", f"/{self.client_host}", self.api_version, self.keep_visible
        )


class Refusal(NamedTuple):
    """An error code with a text, for responses that have a field for it."""

    error: ErrorCode
    message: str | None
