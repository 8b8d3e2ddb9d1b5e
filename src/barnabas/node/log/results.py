"""Results of reads and look-ups: at once, or later for what is no longer on this node's disks.

A log whose oldest segments have gone to a bucket has `remote`, which reads them. It answers at once
with a promise, which it settles from the event loop when the records have arrived or the read has
failed. The caller waits for the result, or calls `abandon()`.

Nothing here fetches anything: a storage tier implements `RemoteReads`. Source: KIP-405.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from barnabas.base.disk import Buffer, FileRange
from barnabas.node.log.index.txn_index import AbortedTransaction
from barnabas.node.loop.promise import Promise
from barnabas.protocol.errors import ErrorCode


class ReadResult:
    """The result of a read: batches whose bytes follow each other in `parts`.

    `next_offset` is the offset after the last of them, or the asked one if none exists.
    """

    __slots__ = ("error", "next_offset", "parts", "size_bytes")

    def __init__(
        self,
        error: ErrorCode,
        parts: list[Buffer | FileRange],
        size_bytes: int,
        next_offset: int,
    ) -> None:
        self.error = error
        self.parts = parts
        self.size_bytes = size_bytes
        self.next_offset = next_offset


class FoundOffset(NamedTuple):
    """A record: its timestamp (ms), its offset, and the epoch of the leader that took it."""

    timestamp: int
    offset: int
    leader_epoch: int


LookedUp = FoundOffset | ErrorCode | None
"""The result of a look-up: a record, None if none exists, or the error that prevents an answer.
"""


class RemoteRead(ReadResult):
    """The result of a remote read, with its aborted transactions, which this node does not know."""

    __slots__ = ("aborted",)

    def __init__(
        self,
        error: ErrorCode,
        parts: list[Buffer | FileRange],
        size_bytes: int,
        next_offset: int,
        aborted: Sequence[AbortedTransaction] = (),
    ) -> None:
        super().__init__(error, parts, size_bytes, next_offset)
        self.aborted = aborted


class DeferredRead(Promise[RemoteRead]):
    """A read whose records come later."""

    __slots__ = ("on_abandon",)

    def __init__(self, on_abandon: Callable[[], None] | None = None) -> None:
        super().__init__()
        self.on_abandon = on_abandon
        """Called at most once, if nobody waits any more."""

    def abandon(self) -> None:
        """Nobody waits any more: fetching may stop. Harmless when the records are there."""
        on_abandon, self.on_abandon = self.on_abandon, None
        if on_abandon is not None and not self.is_settled:
            on_abandon()


class RemoteReads(Protocol):
    """The part of a log that is not local: from its start offset to its first local segment.

    Every promise is settled in the end, with an error if need be, and never before the call that
    makes it returns: those who look up offsets have no time limit of their own.
    """

    def read(
        self, offset: int, max_bytes: int, max_offset: int, min_one_batch: bool
    ) -> DeferredRead:
        """As `PartitionLog.read`, later; errors are in the result."""

    def offset_for_timestamp(self, timestamp: int, end_offset: int) -> Promise[LookedUp]:
        """As `PartitionLog.offset_for_timestamp`, later, of the remote part alone."""
