"""Decisions of a coordinator's shard, as data.

A shard is the state that one partition of an internal topic holds: groups, later transactions or
share states. Its handlers touch no clock, log or task. They return a `Decision`, and the runtime
carries it out:

1. the records are appended to the partition, as one batch;
2. they are replayed into the shard, by the code that also replays them at load;
3. the response is released when they are committed.

A handler may park its request instead of answering it (response None); a later decision answers
it by its `Waiter`. Machines whose state is ahead of the log (classic groups: most of a rebalance
is never written) set a `continuation`: the records are not replayed then; the shard learns the
outcome through `stored`. Source: Kafka's CoordinatorRuntime and CoordinatorResult.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple, NewType

from barnabas.node.log.producers.verification import Verification
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.schema import Message

Waiter = NewType("Waiter", int)
"""A parked request. Answered once; an answer to one that is gone is dropped."""


class Moment(NamedTuple):
    """One reading of the clocks: wall time goes into records, monotonic time into deadlines."""

    wall_ms: int
    monotonic_ms: int


@dataclass(slots=True)
class CoordinatorRecord:
    """A record of an internal topic. A value of None is a tombstone."""

    key: Message
    value: Message | None
    value_version: int = 0


class Answer(NamedTuple):
    """A response for a request that was parked earlier; it leaves at once."""

    waiter: Waiter
    response: Any


class Transactional(NamedTuple):
    """Whose transaction records belong to, and the log's leave to begin it there."""

    producer_id: int
    producer_epoch: int
    verification: Verification | None = None


@dataclass(slots=True)
class Decision:
    """The outcome of one step of a shard."""

    records: list[CoordinatorRecord] = field(default_factory=list)
    response: Any = None
    answers: list[Answer] = field(default_factory=list)
    continuation: Any = None
    """Given back to `Shard.stored` once the records are committed or have failed."""
    replays: bool = True
    """True if the records are to be replayed; not where the state is ahead of them."""
    is_atomic: bool = True
    """True if the records must be one batch, regardless of its size."""
    transactional: Transactional | None = None
    """The transaction with which the records come to count; None: they count at once."""
    is_soft: bool = False
    """True if the response rests on nothing written, so that it need not wait for commits."""


class Shard(ABC):
    """The machine behind one partition of an internal topic.

    A shard overrides the methods for what it has: transactions, timers, parked requests, decisions
    with a continuation. Here they do nothing, but for `stored`: it is only called for a
    continuation.
    """

    @abstractmethod
    def replay(self, offset: int, producer_id: int, record: CoordinatorRecord) -> None:
        """Apply a record. `producer_id` is -1 outside transactions."""

    def replay_end_transaction(self, producer_id: int, is_commit: bool) -> None:
        """Apply the marker that ends a producer's transaction in this partition."""
        return

    def loaded(self, now: Moment) -> Decision:
        """All records are replayed: start the timers."""
        return Decision()

    def unloaded(self, error: ErrorCode) -> list[Answer]:
        """The partition has left this node: answer all that is parked with `error`."""
        return []

    def stored(
        self, continuation: Any, error: ErrorCode, is_appended: bool, now: Moment
    ) -> Decision:
        """The records of a decision were committed (NONE) or failed.

        A failure before the append (`is_appended` false) means that the log will never have
        them; after it, that they may still be committed.
        """
        raise AssertionError(f"{type(self).__name__} gives {continuation} and cannot go on with it")

    def next_deadline_ms(self) -> int | None:
        """Monotonic time before which no timer is due; None where there is no timer."""
        return None

    def expire(self, now: Moment) -> Iterator[Decision]:
        """Run the timers that are due, one by one: each decision is carried out before the next."""
        yield from ()
