"""A log whose beginning is remote, and a bucket that answers when a test says so."""

from collections.abc import Callable

from barnabas.base.disk import FileRange
from barnabas.node.log.index.txn_index import AbortedTransaction
from barnabas.node.log.partition_log import PartitionLog
from barnabas.node.log.results import DeferredRead, LookedUp, RemoteRead
from barnabas.node.loop.promise import Promise
from barnabas.protocol.errors import ErrorCode
from support.logs import LogBench


class Bucket:
    """A storage tier (`RemoteReads`) that has a whole log, and is asked of its beginning."""

    def __init__(self, whole: PartitionLog) -> None:
        self.whole = whole
        self.aborted: list[AbortedTransaction] = []
        self.error = ErrorCode.NONE
        """The result of reads and look-ups that arrive from now on."""
        self.abandoned = 0
        self._waiting: list[Callable[[], None]] = []

    def read(
        self, offset: int, max_bytes: int, max_offset: int, min_one_batch: bool
    ) -> DeferredRead:
        """Part of RemoteReads."""

        def arrive() -> None:
            found = self.whole.read_local(
                offset, max_bytes, max_offset=max_offset, min_one_batch=min_one_batch
            )
            parts = [
                part.read() if isinstance(part, FileRange) else bytes(part) for part in found.parts
            ]
            if self.error:
                read.settle(RemoteRead(self.error, [], 0, offset))
            else:
                size, next_offset = found.size_bytes, found.next_offset
                read.settle(RemoteRead(ErrorCode.NONE, [*parts], size, next_offset, self.aborted))

        def abandon() -> None:
            self.abandoned += 1
            self._waiting.remove(arrive)

        read = DeferredRead(abandon)
        self._waiting.append(arrive)
        return read

    def offset_for_timestamp(self, timestamp: int, end_offset: int) -> Promise[LookedUp]:
        """Part of RemoteReads."""
        promise: Promise[LookedUp] = Promise()

        def arrive() -> None:
            found = self.whole.offset_for_timestamp(timestamp, end_offset)
            assert not isinstance(found, Promise)
            promise.settle(self.error or found)

        self._waiting.append(arrive)
        return promise

    @property
    def asked(self) -> int:
        """The number of questions that wait for an answer."""
        return len(self._waiting)

    def arrive(self) -> None:
        """Answer what was asked."""
        waiting, self._waiting = self._waiting, []
        for each in waiting:
            each()


def fill_partly_remote(bench: LogBench, remote: list[str], local: list[str]) -> Bucket:
    """Fill an empty log, a segment for each value, and give up the segments of `remote`."""
    whole = LogBench(clock=bench.clock)
    for number, value in enumerate(remote + local):
        bench.clock.time_ms += 10
        for each in (bench, whole) if number < len(remote) else (bench,):
            each.log.roll(bench.clock.time_ms)
            each.fill(value)
    for each in (bench, whole):
        each.log.tail.clear(each.log.log_end_offset)
    del bench.log.segments[: len(remote)]
    bucket = Bucket(whole.log)
    bench.log.remote = bucket
    return bucket
