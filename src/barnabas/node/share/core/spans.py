"""Runs of records that are in the same state, and the batches that they make up.

A batch is what was delivered, or read back, as one. It is one span until acknowledgements or
limits divide it, so the cost of a batch does not depend on how many records it has.
"""

from bisect import bisect_right
from collections.abc import Iterator
from operator import attrgetter

from barnabas.node.coordinator.share.state import StateBatch
from barnabas.node.share.core.states import (
    NEVER_MS,
    NOBODY,
    TERMINAL,
    TRANSITIONS,
    RecordState,
    Refused,
)
from barnabas.protocol.errors import ErrorCode

_first_of = attrgetter("first")


class Change:
    """New states that count once they are written down.

    Without `spans` there is nothing to undo: what timed out stays so even if the write fails.
    """

    __slots__ = ("batches", "spans")

    def __init__(self) -> None:
        self.spans: list[Span] = []
        self.batches: list[StateBatch] = []

    def add(self, span: "Span") -> None:
        """Write the state of `span` down; it goes with the batch before where it can."""
        first, last = span.first, span.last
        if self.batches:
            before = self.batches[-1]
            if (
                before.last_offset + 1 == first
                and before.delivery_state == span.state
                and before.delivery_count == span.delivery_count
            ):
                first = before.first_offset
                del self.batches[-1]
        self.batches.append(StateBatch(first, last, int(span.state), span.delivery_count))


class Span:
    """Records from `first` to `last`, both included, of which the same is true."""

    __slots__ = (
        "before",
        "change",
        "deadline_ms",
        "delivery_count",
        "first",
        "is_final",
        "last",
        "member",
        "state",
    )

    def __init__(
        self, first: int, last: int, state: RecordState, delivery_count: int, member: str = NOBODY
    ) -> None:
        self.first = first
        self.last = last
        self.state = state
        self.delivery_count = delivery_count
        self.member = member
        """Who holds the records; NOBODY unless they are acquired."""
        self.deadline_ms = NEVER_MS
        """When the lock runs out (monotonic)."""
        self.change: Change | None = None
        """The change that waits to be written."""
        self.before: tuple[RecordState, str] = (state, member)
        """State and holder to go back to if that fails."""
        self.is_final = False
        """Archived for good: a change that fails does not bring the records back."""

    @property
    def count(self) -> int:
        return self.last - self.first + 1

    @property
    def is_terminal(self) -> bool:
        return self.state in TERMINAL

    def refusal(self, member: str) -> Refused | None:
        """Why `member` may say nothing of these records, if so."""
        if self.state is not RecordState.ACQUIRED:
            return Refused(ErrorCode.INVALID_RECORD_STATE, "the records are not acquired")
        if self.member != member:
            return Refused(ErrorCode.INVALID_RECORD_STATE, "another member holds the records")
        return None

    @property
    def is_available(self) -> bool:
        """True if the records can be acquired."""
        return self.state is RecordState.AVAILABLE and self.change is None

    def copy(self, first: int, last: int) -> "Span":
        """The same about other records."""
        other = Span(first, last, self.state, self.delivery_count, self.member)
        other.deadline_ms = self.deadline_ms
        other.change = self.change
        other.before = self.before
        other.is_final = self.is_final
        if self.change is not None:
            self.change.spans.append(other)
        return other

    def move(self, state: RecordState, delivery_count_max: int) -> None:
        """Leave ACQUIRED. Records are not made available once too often."""
        if state is RecordState.AVAILABLE and self.delivery_count >= delivery_count_max:
            state = RecordState.ARCHIVED
        assert state in TRANSITIONS[self.state], f"{self.state.name} to {state.name}"
        self.state = state
        self.member = NOBODY

    def begin(self, change: Change, state: RecordState, delivery_count_max: int) -> None:
        """Leave ACQUIRED as soon as `change` is written."""
        before = (self.state, self.member)
        self.move(state, delivery_count_max)
        self.before = before
        self.change = change
        change.spans.append(self)
        change.add(self)

    def acquire(self, member: str, deadline_ms: int) -> None:
        """Give the records to `member`."""
        assert self.is_available
        self.state = RecordState.ACQUIRED
        self.delivery_count += 1
        self.member = member
        self.deadline_ms = deadline_ms

    def archive(self) -> None:
        """Archive the records in any state."""
        self.state = RecordState.ARCHIVED
        self.member = NOBODY
        self.deadline_ms = NEVER_MS
        self.is_final = True

    def commit(self) -> None:
        """The change is written."""
        self.change = None
        self.deadline_ms = NEVER_MS

    def undo(self, delivery_count_max: int, now_ms: int) -> None:
        """The change could not be written: the holder has the records again, if it is in time."""
        self.change = None
        if self.is_final:
            self.deadline_ms = NEVER_MS
            return
        if NEVER_MS != self.deadline_ms <= now_ms:
            is_spent = self.delivery_count >= delivery_count_max
            self.state = RecordState.ARCHIVED if is_spent else RecordState.AVAILABLE
            self.member = NOBODY
            self.deadline_ms = NEVER_MS
        else:
            self.state, self.member = self.before

    def __repr__(self) -> str:
        mark = "" if self.change is None else " changing"
        held = f" {self.member}" if self.member else ""
        return f"<{self.first}-{self.last} {self.state.name} {self.delivery_count}{held}{mark}>"


class InFlightBatch:
    """A batch in flight; its spans follow each other without gaps."""

    __slots__ = ("first", "last", "spans")

    def __init__(self, span: Span) -> None:
        self.first = span.first
        self.last = span.last
        self.spans = [span]

    @property
    def whole(self) -> Span | None:
        """The span of all records, while there is one."""
        spans = self.spans
        return spans[0] if len(spans) == 1 else None

    def index_at(self, offset: int) -> int:
        """The index of the span with `offset`; the first one for an offset before the batch."""
        return max(0, bisect_right(self.spans, offset, key=_first_of) - 1)

    def carve(self, index: int, first: int, last: int) -> Span:
        """Divide the span at `index` so that one has no records outside `first`..`last`."""
        spans = self.spans
        span = spans[index]
        if span.first < first:
            spans.insert(index, span.copy(span.first, first - 1))
            span.first = first
            index += 1
        if span.last > last:
            spans.insert(index + 1, span.copy(last + 1, span.last))
            span.last = last
        return span

    def within(self, first: int, last: int) -> Iterator[Span]:
        """The spans that have records in `first`..`last`, as they are now."""
        if last < first:
            return
        spans = self.spans
        index = self.index_at(first)
        while index < len(spans) and spans[index].first <= last:
            if spans[index].last >= first:
                yield spans[index]
            index += 1

    def cut(self, span: Span, first: int, last: int) -> Span:
        """`span` without its records outside `first`..`last`, which get spans of their own."""
        if first <= span.first and span.last <= last:
            return span
        return self.carve(self.index_at(span.first), first, last)

    def merge_terminal(self) -> None:
        """Forget the borders between neighbours that nothing can move any more."""
        spans = self.spans
        if len(spans) == 1:
            return
        kept = [spans[0]]
        for span in spans[1:]:
            before = kept[-1]
            if (
                before.is_terminal
                and before.state is span.state
                and before.change is None
                and span.change is None
                and before.delivery_count == span.delivery_count
            ):
                before.last = span.last
            else:
                kept.append(span)
        self.spans = kept
