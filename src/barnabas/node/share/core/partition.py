"""The state machine of a share-partition: what one share group did with a partition's records.

Everything before `start_offset` is done. Records from there to `end_offset` are in flight, in
batches; those after were never fetched for this group. Events come in as calls with the time as
a number; what must be stored goes out as a `Change`; `written` reports its outcome:

- `acquire`   records that were read are given to a member (`acquiring.py`)
- `acknowledge`, `release`   a member is done with records, or returns all that it holds
- `expire`    locks have run out
- `log_start_moved`   the log no longer has the records before

After stored state was loaded, offsets that no stored batch covers may have been delivered but not
acknowledged: that is the gap window, in which holes are fetched again. Holes found later are
holes of the log (compaction), and are not fetched.

Source: Kafka's SharePartition.
"""

import heapq
from bisect import bisect_right
from collections.abc import Sequence

from barnabas.node.coordinator.share.state import ShareState, StateBatch
from barnabas.node.share.core.spans import Change, InFlightBatch, Span
from barnabas.node.share.core.states import (
    NEVER_MS,
    STATE_AFTER,
    AckBatch,
    AcknowledgeType,
    RecordState,
    Refused,
    ShareLimits,
)
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.records.batch import NO_OFFSET

TYPES = frozenset(int(kind) for kind in AcknowledgeType)


class InvalidStateError(Exception):
    """The stored state of a share partition is inconsistent."""


class SharePartition:
    """The machine. Offsets are inclusive at both ends, as in the protocol."""

    __slots__ = (
        "_deadlines",
        "_firsts",
        "_gap_end",
        "_gap_start",
        "_may_have_available",
        "batches",
        "delivery_complete_count",
        "end_offset",
        "start_offset",
        "state_epoch",
    )

    def __init__(self, start_offset: int, kept: ShareState) -> None:
        """Go on from what was kept, from `start_offset` where the group has not begun yet.

        Raises InvalidStateError.
        """
        self.state_epoch = kept.state_epoch
        self.start_offset = kept.start_offset if kept.start_offset >= 0 else start_offset
        self.end_offset = self.start_offset
        self.delivery_complete_count = 0
        """Records in flight that are acknowledged or archived."""
        self.batches: list[InFlightBatch] = []
        self._firsts: list[int] = []
        self._may_have_available = False
        self._gap_start = NO_OFFSET
        self._gap_end = NO_OFFSET
        self._deadlines: list[tuple[int, int, int]] = []
        """A heap of (deadline, first, last); entries of locks that are gone find nothing."""
        self._restore(kept.batches)

    def _restore(self, kept: Sequence[StateBatch]) -> None:
        gap_start = NO_OFFSET
        expected = self.start_offset
        for entry in kept:
            if entry.first_offset < self.start_offset or entry.last_offset < entry.first_offset:
                raise InvalidStateError(f"{entry} with the start offset {self.start_offset}")
            if gap_start == NO_OFFSET and entry.first_offset > expected:
                gap_start = expected
            expected = entry.last_offset + 1
            span = Span(
                entry.first_offset,
                entry.last_offset,
                RecordState(entry.delivery_state),
                entry.delivery_count,
            )
            self.insert(InFlightBatch(span))
            if span.is_terminal:
                self.delivery_complete_count += span.count
        if self.batches:
            self._may_have_available = True
            self.end_offset = self.batches[-1].last
            if gap_start != NO_OFFSET:
                self._gap_start, self._gap_end = gap_start, self.end_offset
            self.advance()

    # -- batches by offset

    def insert(self, batch: InFlightBatch) -> None:
        """Add a batch that overlaps none."""
        firsts = self._firsts
        if not firsts or batch.first > firsts[-1]:
            firsts.append(batch.first)
            self.batches.append(batch)
            return
        index = bisect_right(firsts, batch.first)
        firsts.insert(index, batch.first)
        self.batches.insert(index, batch)

    def floor_index(self, offset: int) -> int:
        """The last batch that begins at or before `offset`; -1 if none exists."""
        return bisect_right(self._firsts, offset) - 1

    def between(self, first: int, last: int) -> list[InFlightBatch]:
        """The batches that begin in `first`..`last`, and the one that holds `first`."""
        index = self.floor_index(first)
        if index < 0 or self.batches[index].last < first:
            index += 1
        return self.batches[index : self.floor_index(last) + 1]

    @property
    def is_empty(self) -> bool:
        return not self.batches

    @property
    def in_flight_count(self) -> int:
        """Offsets from the first that is not done to the last that was fetched."""
        return self.end_offset - self.start_offset + 1 if self.batches else 0

    def _in_flight(self, first: int, last: int) -> int:
        """The number of the offsets that are not before the start."""
        return max(0, last - max(self.start_offset, first) + 1)

    # -- where to read

    @property
    def is_gap_window_open(self) -> bool:
        return self._gap_end != NO_OFFSET and self._gap_end == self.end_offset

    @property
    def gap_start(self) -> int:
        """The first offset of the gap window that may have to be fetched again."""
        return self._gap_start

    def shrink_gap_window(self, offset: int) -> None:
        """Everything before `offset` was looked at."""
        if self._gap_end == NO_OFFSET:
            return
        if self.is_gap_window_open and offset <= self._gap_end:
            self._gap_start = offset
        else:
            self._gap_start = self._gap_end = NO_OFFSET

    def next_fetch_offset(self) -> int:
        """The offset of the next record to acquire, if the log has it."""
        batches = self.batches
        is_beyond = not batches or self.start_offset > batches[-1].last
        if is_beyond:
            self._may_have_available = False
            return self.end_offset
        if not self._may_have_available:
            return self.end_offset + 1
        is_open = self.is_gap_window_open
        gap = self._gap_start
        for batch in batches:
            if is_open:
                if batch.first > gap:
                    return gap
                gap = max(batch.last + 1, gap)
            for span in batch.spans:
                if span.is_available:
                    return span.first
        self._may_have_available = False
        if is_open:
            # No hole is left in what was kept. Kafka's start offset waits here for new records.
            self._gap_start = self._gap_end = NO_OFFSET
            if self.advance():
                return self.next_fetch_offset()
        return self.end_offset + 1

    def can_acquire(self, limits: ShareLimits) -> bool:
        """Return whether more may be in flight, or something in flight be delivered again."""
        return (
            self.in_flight_count < limits.records_in_flight_max
            or self.next_fetch_offset() != self.end_offset + 1
        )

    def found_available(self) -> None:
        """Something in flight can be delivered: the next read must look for it."""
        self._may_have_available = True

    # -- acknowledging

    def acknowledge(
        self, member: str, batches: Sequence[AckBatch], limits: ShareLimits, now_ms: int
    ) -> Change | Refused:
        """Take what a member says of its records; all of it or, if anything is wrong, nothing.

        Renewals count at once. The rest counts when the change is written, and until then nobody
        else gets the records.
        """
        change = Change()
        for batch in batches:
            refused = self._acknowledge_one(member, batch, limits, now_ms, change)
            if refused is not None:
                self._undo(change, limits, now_ms)
                return refused
        return change

    def _acknowledge_one(
        self, member: str, batch: AckBatch, limits: ShareLimits, now_ms: int, change: Change
    ) -> Refused | None:
        if not TYPES.issuperset(batch.types):
            return Refused(ErrorCode.INVALID_REQUEST, f"no such types: {batch.types}")
        if batch.last_offset < self.start_offset:
            return None
        first = batch.first_offset
        index = self.floor_index(first)
        if index < 0:
            if not first < self.start_offset <= batch.last_offset:
                return Refused(ErrorCode.INVALID_RECORD_STATE, "none of the records is in flight")
            index = max(0, self.floor_index(self.start_offset))
        batches = self.batches[index : self.floor_index(batch.last_offset) + 1]
        if not batches:
            return Refused(ErrorCode.INVALID_RECORD_STATE, "none of the records is in flight")
        if batches[-1].last < first or batch.last_offset > batches[-1].last:
            return Refused(ErrorCode.INVALID_REQUEST, "not all of the records are in flight")
        for in_flight in batches:
            if in_flight.last < self.start_offset:
                continue
            whole = in_flight.whole
            if whole is not None:
                refused = whole.refusal(member)
                if refused is not None:
                    return refused
            for kind, run_first, run_last in batch.runs(in_flight.first, in_flight.last):
                refused = self._acknowledge_run(
                    in_flight, member, kind, run_first, run_last, limits, now_ms, change
                )
                if refused is not None:
                    return refused
        return None

    def _acknowledge_run(
        self,
        in_flight: InFlightBatch,
        member: str,
        kind: int,
        first: int,
        last: int,
        limits: ShareLimits,
        now_ms: int,
        change: Change,
    ) -> Refused | None:
        """One type for records of one batch."""
        first = max(first, self.start_offset)
        for present in list(in_flight.within(first, last)):
            refused = present.refusal(member)
            if refused is not None:
                return refused
            if kind == AcknowledgeType.RENEW and not limits.is_renewal_enabled:
                return Refused(ErrorCode.INVALID_RECORD_STATE, "the group allows no renewal")
            span = in_flight.cut(present, first, last)
            if kind == AcknowledgeType.RENEW:
                span.deadline_ms = now_ms + limits.lock_duration_ms
                self.watch(span)
                continue
            span.begin(change, STATE_AFTER[AcknowledgeType(kind)], limits.delivery_count_max)
            if span.is_terminal:
                self.delivery_complete_count += span.count
        return None

    def release(self, member: str, limits: ShareLimits) -> Change:
        """Take back all that a member holds."""
        change = Change()
        for batch in self.batches:
            for span in list(batch.spans):
                if span.member == member:
                    self._give_back(batch, span, change, limits, is_final=False)
        return change

    def expire(self, now_ms: int, limits: ShareLimits) -> Change | None:
        """Take back what was locked too long; None if nothing was.

        It is free at once, whether or not that can be written.
        """
        deadlines = self._deadlines
        change = Change()
        while deadlines and deadlines[0][0] <= now_ms:
            _, first, last = heapq.heappop(deadlines)
            for batch in self.between(first, last):
                for span in list(batch.within(first, last)):
                    if span.state is RecordState.ACQUIRED and span.deadline_ms <= now_ms:
                        self._give_back(batch, span, change, limits, is_final=True)
        return change if change.batches else None

    def _give_back(
        self,
        batch: InFlightBatch,
        acquired: Span,
        change: Change,
        limits: ShareLimits,
        *,
        is_final: bool,
    ) -> None:
        """End an acquisition without the member; what the log has lost is archived."""
        start = self.start_offset
        pieces = [acquired]
        if acquired.first < start <= acquired.last:
            pieces = [batch.carve(batch.index_at(acquired.first), acquired.first, start - 1)]
            pieces.append(batch.spans[batch.index_at(start)])
        for span in pieces:
            state = RecordState.ARCHIVED if span.last < start else RecordState.AVAILABLE
            if is_final:
                span.move(state, limits.delivery_count_max)
                span.deadline_ms = NEVER_MS
                change.add(span)
                if not span.is_terminal:
                    self._may_have_available = True
            else:
                span.begin(change, state, limits.delivery_count_max)
            if span.is_terminal:
                self.delivery_complete_count += self._in_flight(span.first, span.last)

    # -- the end of a change

    def written(self, change: Change, succeeded: bool, limits: ShareLimits, now_ms: int) -> bool:
        """A change was written down, or could not be; whether the start offset has moved."""
        if not succeeded and change.spans:
            return self._undo(change, limits, now_ms)
        for span in change.spans:
            span.commit()
            if span.state is RecordState.AVAILABLE:
                self._may_have_available = True
        return self.advance()

    def _undo(self, change: Change, limits: ShareLimits, now_ms: int) -> bool:
        """Take a change back; whether the start offset has moved.

        It moves if locks expired in the meantime and their records are archived.
        """
        for span in change.spans:
            was_terminal = span.is_terminal
            span.undo(limits.delivery_count_max, now_ms)
            if span.state is RecordState.AVAILABLE:
                self._may_have_available = True
            if was_terminal and not span.is_terminal:
                self.delivery_complete_count -= self._in_flight(span.first, span.last)
        if change.spans and self.batches and self.batches[0].first < self.start_offset:
            # Records that the log has lost do not come back.
            first = self.batches[0].first
            self.archive(first, self.start_offset - 1, RecordState.AVAILABLE, is_counted=False)
        return self.advance()

    def advance(self) -> bool:
        """Drop what is done from the front; whether the start offset has moved."""
        batches = self.batches
        index = self.floor_index(self.start_offset)
        if not batches or (index < 0 and self.is_gap_window_open):
            return False
        # A hole at the start that was looked at is one of the log; Kafka's start stays there.
        holder = batches[max(0, index)]
        at_start = holder.spans[holder.index_at(self.start_offset)]
        if at_start.change is not None or not at_start.is_terminal:
            return False
        last_done, done_count = self._done()
        if last_done == NO_OFFSET:
            return False
        if last_done == batches[-1].last:
            # The log may have lost more than that: never back (Kafka's goes, and comes again).
            self.start_offset = self.end_offset = max(self.start_offset, last_done + 1)
            self._clear()
            return True
        index = self.floor_index(last_done)
        if batches[index].last == last_done:
            index += 1
            self.start_offset = max(self.start_offset, batches[index].first)
            if self.is_gap_window_open:
                self.start_offset = min(self._gap_start, self.start_offset)
        else:
            self.start_offset = max(self.start_offset, last_done + 1)
            batches[index].merge_terminal()
        self.delivery_complete_count -= done_count
        del batches[:index]
        del self._firsts[:index]
        return True

    def _done(self) -> tuple[int, int]:
        """Up to where all is terminal (NO_OFFSET: nowhere), and how many records in flight."""
        last_done, count = NO_OFFSET, 0
        is_open = self.is_gap_window_open
        for batch in self.batches:
            if is_open and batch.last >= self._gap_start:
                break
            for span in batch.spans:
                if span.change is not None or not span.is_terminal:
                    return last_done, count
                last_done = span.last
                count += self._in_flight(span.first, span.last)
        return last_done, count

    def _clear(self) -> None:
        self.batches.clear()
        self._firsts.clear()
        self._deadlines.clear()
        self.delivery_complete_count = 0

    # -- what the log has lost

    def log_start_moved(self, log_start_offset: int) -> bool:
        """Go on no earlier than there; whether anything has changed.

        Nothing is written: the next write carries the start offset.
        """
        if log_start_offset <= self.start_offset:
            return False
        if not self.batches:
            self.start_offset = self.end_offset = log_start_offset
            self.delivery_complete_count = 0
            return True
        done_count = 0
        for batch in self.batches[: self.floor_index(log_start_offset - 1) + 1]:
            for span in batch.within(self.start_offset, log_start_offset - 1):
                if span.is_terminal:
                    done_count += self._in_flight(span.first, min(span.last, log_start_offset - 1))
        self.archive(
            self.start_offset, log_start_offset - 1, RecordState.AVAILABLE, is_counted=False
        )
        self.start_offset = log_start_offset
        self.delivery_complete_count -= done_count
        self.end_offset = max(self.end_offset, log_start_offset)
        if self._gap_start < log_start_offset:
            self.shrink_gap_window(log_start_offset)
        return True

    def archive(self, first: int, last: int, state: RecordState, *, is_counted: bool) -> None:
        """Give up those of the records that are in `state`, without writing that down."""
        for batch in self.between(first, last):
            for present in list(batch.within(first, last)):
                if present.state is not state:
                    continue
                span = batch.cut(present, first, last)
                span.archive()
                self._may_have_available = True
                if is_counted:
                    self.delivery_complete_count += span.count

    # -- locks

    def watch(self, span: Span) -> None:
        """Have `expire` look at a lock when its time is over."""
        heapq.heappush(self._deadlines, (span.deadline_ms, span.first, span.last))

    def next_deadline_ms(self) -> int | None:
        """A time before which no lock runs out; None if nothing is locked."""
        return self._deadlines[0][0] if self._deadlines else None
