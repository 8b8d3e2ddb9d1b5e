"""Giving records that were read to a member.

Whole batches as the log has them, as many as come to the member's limit (in RECORD_LIMIT mode:
not one record more); what is in flight and free is given again as the batch that it was, as far
as its records are free. Records that were delivered often come in ever smaller portions, and for
the last time alone: so that one which makes its readers fail is found, and only it is given up.

Source: Kafka's SharePartition.acquire, KIP-932, KIP-1206, KIP-1263.
"""

from bisect import bisect_right
from collections.abc import Sequence

from barnabas.node.share.core.partition import SharePartition
from barnabas.node.share.core.spans import InFlightBatch, Span
from barnabas.node.share.core.states import Acquired, AcquireMode, RecordState, ShareLimits


class Acquisition:
    """One member's turn at one partition: what it asked for, and what it has got so far."""

    __slots__ = (
        "_bases",
        "_batch_size",
        "_deadline_ms",
        "_is_exact",
        "_lasts",
        "_limits",
        "_member",
        "_shares",
        "acquired",
        "count",
    )

    def __init__(
        self,
        shares: SharePartition,
        member: str,
        mode: AcquireMode,
        batch_size: int,
        bases: Sequence[int],
        lasts: Sequence[int],
        limits: ShareLimits,
        now_ms: int,
    ) -> None:
        """`bases` and `lasts` are the first and last offsets of the batches that were read."""
        self._shares = shares
        self._member = member
        self._is_exact = mode is AcquireMode.RECORD_LIMIT
        self._batch_size = batch_size
        self._bases = bases
        self._lasts = lasts
        self._limits = limits
        self._deadline_ms = now_ms + limits.lock_duration_ms
        self.acquired: list[Acquired] = []
        self.count = 0

    def run(self, max_records: int, fetch_offset: int) -> None:
        """Acquire up to about `max_records` of what was read from `fetch_offset` on."""
        shares, bases = self._shares, self._bases
        if max_records <= 0 or not bases or self._lasts[-1] < shares.start_offset:
            return
        base = bases[0]
        if fetch_offset < base:
            # The log has lost what was free in between (compaction).
            shares.archive(fetch_offset, base - 1, RecordState.AVAILABLE, is_counted=True)
            shares.advance()
        max_records, last = self._room(max_records, fetch_offset, self._lasts[-1])
        if max_records <= 0:
            return
        floor = shares.floor_index(base)
        if floor >= 0 and shares.batches[floor].last >= base:
            base = shares.batches[floor].first
        else:
            base = max(base, shares.start_offset)
        if base > last:
            return  # full, and the log goes on behind what is in flight
        was_open = shares.is_gap_window_open
        known = shares.between(min(bases[0], base), last)
        if not known:
            self._acquire_new(base, last, max_records)
            return
        if self._acquire_known(known, base, last, max_records) and known[-1].last < last:
            self._acquire_new(known[-1].last + 1, last, max_records - self.count)
        shares.shrink_gap_window((self.acquired[-1].last_offset if self.acquired else last) + 1)
        if was_open:
            shares.advance()  # holes that were looked at hold nothing back

    def _room(self, max_records: int, fetch_offset: int, last: int) -> tuple[int, int]:
        """(records, last offset) that may be acquired while so much is in flight."""
        shares = self._shares
        room = min(max_records, self._limits.records_in_flight_max - shares.in_flight_count)
        end_offset = shares.end_offset
        if room <= 0 and fetch_offset <= end_offset:
            # Full, but something in flight is free: nothing beyond what is in flight.
            return min(max_records, end_offset - fetch_offset + 1), min(last, end_offset)
        return room, last

    def _acquire_known(
        self, known: list[InFlightBatch], base: int, last: int, max_records: int
    ) -> bool:
        """Acquire what is in flight and free; whether there is room for more."""
        shares = self._shares
        gap_start = base
        first = self._bases[0]
        for batch in known:
            if self.count >= max_records:
                return False
            if shares.is_gap_window_open:
                gap_start = max(gap_start, shares.gap_start, shares.start_offset)
                if gap_start < batch.first:
                    self._acquire_new(gap_start, batch.first - 1, max_records - self.count)
                gap_start = batch.last + 1
                if self.count >= max_records:
                    return False
            left = max_records - self.count
            is_throttled = self._is_throttled(batch, first, last)
            if is_throttled and self.count:
                return False  # alone, with the next fetch
            whole = batch.whole
            if whole is not None:
                if not whole.is_available:
                    continue
                is_within = batch.first >= first and batch.last <= last
                if is_within and not is_throttled and not (self._is_exact and whole.count > left):
                    self._take(whole)
                    self._give([whole])
                    continue
            count_before = self.count
            self._acquire_part(batch, first, last, left)
            if is_throttled and self.count > count_before:
                return False
        return self.count < max_records

    def _is_throttled(self, batch: InFlightBatch, first: int, last: int) -> bool:
        limit = self._limits.throttle_from
        whole = batch.whole
        if whole is not None:
            return whole.is_available and whole.delivery_count >= limit
        return any(
            span.is_available and span.delivery_count >= limit for span in batch.within(first, last)
        )

    def _acquire_part(self, batch: InFlightBatch, first: int, last: int, left: int) -> None:
        """Acquire the free records of a batch one state at a time."""
        limits = self._limits
        delivery_count_max = limits.delivery_count_max
        isolates = delivery_count_max > 2
        taken: list[Span] = []
        count = 0
        portion = 0
        for free in list(batch.within(first, last)):
            if not free.is_available:
                continue
            deliveries = free.delivery_count
            is_last_delivery = isolates and deliveries == delivery_count_max - 1
            if is_last_delivery and count:
                break
            if deliveries >= limits.throttle_from and not portion:
                size = batch.last - batch.first + 1
                portion = max(1, size >> (deliveries - limits.throttle_from + 1))
            span_first = max(free.first, first)
            allowed = min(free.last, last) - span_first + 1
            if is_last_delivery:
                allowed = 1
            if self._is_exact:
                allowed = min(allowed, left - count)
            if count < portion:
                allowed = min(allowed, portion - count)
            span = batch.cut(free, span_first, span_first + allowed - 1)
            self._take(span)
            taken.append(span)
            count += allowed
            if is_last_delivery or count == portion or (self._is_exact and count == left):
                break
        self._give(taken)

    def _acquire_new(self, first: int, last: int, max_records: int) -> None:
        """Acquire what was never in flight, up to the end of the batch with the last record."""
        shares = self._shares
        first = max(first, shares.end_offset if shares.is_empty else shares.start_offset)
        if first > last:
            return
        wanted = last
        if max_records < wanted - first + 1:
            wanted = self._last_of_batch_with(first + max_records - 1)
            if shares.is_gap_window_open and wanted > last:
                wanted = last
        is_first = shares.is_empty or first < shares.batches[0].first
        taken = 0
        for span_first, span_last in self._divide(first, wanted):
            batch = InFlightBatch(Span(span_first, span_last, RecordState.AVAILABLE, 0))
            shares.insert(batch)
            span = batch.spans[0]
            if self._is_exact and span.count > max_records:
                span = batch.carve(0, span_first, span_first + max_records - 1)
                shares.found_available()
            self._take(span)
            self.acquired.append(Acquired(span.first, span.last, span.delivery_count))
            taken = span.last
        if is_first:
            shares.start_offset = first
        shares.end_offset = max(shares.end_offset, wanted)
        if self._is_exact:
            wanted = taken
        shares.shrink_gap_window(wanted + 1)
        self.count += wanted - first + 1

    def _divide(self, first: int, last: int) -> list[tuple[int, int]]:
        """Portions of about the size that the client wants to acknowledge at once."""
        portions: list[tuple[int, int]] = []
        if not self._is_exact and last - first + 1 > self._batch_size:
            for base in self._bases:
                if base > last:
                    break
                if base - first >= self._batch_size:
                    portions.append((first, base - 1))
                    first = base
        portions.append((first, last))
        return portions

    def _last_of_batch_with(self, offset: int) -> int:
        index = bisect_right(self._bases, offset) - 1
        return max(offset, self._lasts[index]) if index >= 0 else offset

    def _take(self, span: Span) -> None:
        span.acquire(self._member, self._deadline_ms)
        self._shares.watch(span)

    def _give(self, taken: list[Span]) -> None:
        """Answer the member; equal neighbours become one range."""
        before: Acquired | None = None
        for span in taken:
            self.count += span.count
            if (
                before is not None
                and span.first == before.last_offset + 1
                and span.delivery_count == before.delivery_count
            ):
                before = before._replace(last_offset=span.last)
                self.acquired[-1] = before
            else:
                before = Acquired(span.first, span.last, span.delivery_count)
                self.acquired.append(before)


def without_aborted(
    shares: SharePartition, acquired: list[Acquired], aborted: Sequence[tuple[int, int]]
) -> list[Acquired]:
    """Give up acquired records of aborted transactions, by the (first, last) of their batches."""
    for first, last in aborted:
        shares.archive(first, last, RecordState.ACQUIRED, is_counted=True)
    kept: list[Acquired] = []
    for entry in acquired:
        first = entry.first_offset
        for gone_first, gone_last in aborted:
            if gone_last < first or gone_first > entry.last_offset:
                continue
            if gone_first > first:
                kept.append(Acquired(first, gone_first - 1, entry.delivery_count))
            first = gone_last + 1
        if first <= entry.last_offset:
            kept.append(Acquired(first, entry.last_offset, entry.delivery_count))
    return kept
