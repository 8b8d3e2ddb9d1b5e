"""Late reads: those of a fetch that its logs answer later, because the records are remote."""

from barnabas.node.broker.fetch.sessions import FetchTarget, WaitingFetch
from barnabas.node.log.results import DeferredRead, ReadResult, RemoteRead
from barnabas.protocol.errors import ErrorCode

WAIT_MIN_MS = 500
"""A fetch waits so long for remote records, though it asks for less: else it might never have any.

Kafka's default of `remote.fetch.max.wait.ms`.
"""


class LateReads:
    """The late reads of one fetch. Every look of the fetch asks here first."""

    __slots__ = ("_reads", "waiter")

    def __init__(self) -> None:
        self._reads: dict[FetchTarget, DeferredRead] = {}
        self.waiter: WaitingFetch | None = None
        """Looks again when a read is settled."""

    @property
    def are_pending(self) -> bool:
        """True if to wait: some records have not come."""
        return not all(read.is_settled for read in self._reads.values())

    def get(self, target: FetchTarget) -> DeferredRead | None:
        """The read of `target`, if it has been begun."""
        return self._reads.get(target)

    def result(
        self, target: FetchTarget, read: DeferredRead, max_bytes: int, min_one_batch: bool
    ) -> ReadResult:
        """The result of `read`; without records while it is pending, or if they are too many."""
        if target not in self._reads:
            self._reads[target] = read
            if not read.is_settled:
                read.then(self._arrived)
        if read.is_settled and (min_one_batch or read.value.size_bytes <= max_bytes):
            return read.value
        return ReadResult(ErrorCode.NONE, [], 0, target.fetch_offset)

    def _arrived(self, _: RemoteRead) -> None:
        if self.waiter is not None:
            self.waiter.look_again()

    def abandon(self) -> None:
        """The fetch is answered, or nobody waits for it."""
        self.waiter = None
        for read in self._reads.values():
            read.abandon()
        self._reads.clear()
