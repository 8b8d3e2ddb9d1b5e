"""Runtime state of one partition, with the steps that wait for its commits."""

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from barnabas.base.disk import Buffer
from barnabas.node.coordinator.decision import Shard, Waiter
from barnabas.node.loop.promise import Promise
from barnabas.protocol.errors import ErrorCode

S = TypeVar("S", bound=Shard)


@dataclass(slots=True)
class Pending:
    """A step whose outcome waits for a commit."""

    end_offset: int
    deadline_ms: int
    response: Any = None
    on_error: Callable[[ErrorCode], Any] | None = None
    waiter: Waiter | None = None
    continuation: Any = None
    promise: Promise[Any] | None = None
    is_done: bool = False
    outcome: Any = None


@dataclass(slots=True)
class Parked:
    """A request that a shard will answer by a later decision."""

    partition: int
    promise: Promise[Any]
    on_error: Callable[[ErrorCode], Any]


@dataclass(slots=True)
class Entry(Generic[S]):
    """One partition: its shard, once loaded, and the steps that wait for commits, in order."""

    partition: int
    leader_epoch: int
    shard: S
    error: ErrorCode | None = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    """Why requests are refused; None when the shard is active."""
    source: Iterator[Buffer] | None = None
    end_offset: int = 0
    committed_offset: int = 0
    pending: deque[Pending] = field(default_factory=deque)

    @property
    def is_settled(self) -> bool:
        """True if all that the shard's state rests on is committed."""
        return self.committed_offset >= self.end_offset
