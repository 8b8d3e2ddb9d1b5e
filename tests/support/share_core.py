"""A share partition's machine under test, with a log of batches and short ways to ask."""

from collections.abc import Sequence

from barnabas.node.coordinator.share.state import ShareState, StateBatch
from barnabas.node.share.core.acquiring import Acquisition
from barnabas.node.share.core.partition import SharePartition
from barnabas.node.share.core.spans import Change
from barnabas.node.share.core.states import AckBatch, AcquireMode, Refused, ShareLimits

LOCK_MS = 1_000


class ShareBench:
    """One machine; the log has the batches it is given, and time is a number."""

    def __init__(
        self,
        log: Sequence[tuple[int, int]] = (),
        *,
        kept: Sequence[tuple[int, int, int, int]] = (),
        start_offset: int = 0,
        limits: ShareLimits | None = None,
    ) -> None:
        self.log = list(log)
        self.limits = limits or ShareLimits(lock_duration_ms=LOCK_MS)
        self.now_ms = 0
        state = ShareState(0, start_offset, tuple(StateBatch(*entry) for entry in kept))
        self.machine = SharePartition(start_offset, state)

    def acquire(
        self,
        member: str,
        max_records: int = 500,
        *,
        mode: AcquireMode = AcquireMode.BATCH_OPTIMIZED,
        batch_size: int = 500,
        read_max: int = 1_000,
    ) -> list[tuple[int, int, int]]:
        """Fetch as a member: (first, last, delivery count) of what it gets."""
        machine = self.machine
        if not machine.can_acquire(self.limits):
            return []
        offset = machine.next_fetch_offset()
        found = [entry for entry in self.log if entry[1] >= offset][:read_max]
        acquisition = Acquisition(
            machine,
            member,
            mode,
            batch_size,
            [first for first, _ in found],
            [last for _, last in found],
            self.limits,
            self.now_ms,
        )
        acquisition.run(max_records, offset)
        assert acquisition.count == sum(
            entry.last_offset - entry.first_offset + 1 for entry in acquisition.acquired
        )
        return [
            (entry.first_offset, entry.last_offset, entry.delivery_count)
            for entry in acquisition.acquired
        ]

    def begin(self, member: str, *batches: tuple[int, int, int | list[int]]) -> Change | Refused:
        """Acknowledge, and leave it unwritten."""
        return self.machine.acknowledge(
            member,
            [
                AckBatch(first, last, [types] if isinstance(types, int) else types)
                for first, last, types in batches
            ],
            self.limits,
            self.now_ms,
        )

    def end(self, change: Change | Refused, *, succeeded: bool = True) -> list[tuple[int, ...]]:
        """The change is written: what was."""
        assert isinstance(change, Change), change
        self.machine.written(change, succeeded, self.limits, self.now_ms)
        return [
            (entry.first_offset, entry.last_offset, entry.delivery_state, entry.delivery_count)
            for entry in change.batches
        ]

    def acknowledge(
        self, member: str, *batches: tuple[int, int, int | list[int]]
    ) -> list[tuple[int, ...]] | str:
        """Acknowledge and write: what was written, or the error's name."""
        change = self.begin(member, *batches)
        return change.error.name if isinstance(change, Refused) else self.end(change)

    def expire(self, after_ms: int) -> list[tuple[int, ...]]:
        """Let time pass: what was written."""
        self.now_ms += after_ms
        change = self.machine.expire(self.now_ms, self.limits)
        return [] if change is None else self.end(change)

    def spans(self) -> list[tuple[int, int, str, int, str]]:
        """(first, last, state, deliveries, holder) of all that is in flight."""
        return [
            (span.first, span.last, span.state.name, span.delivery_count, span.member)
            for batch in self.machine.batches
            for span in batch.spans
        ]
