"""Random members, time-outs, failed writes and restarts against what each record must have seen.

The model knows of each offset who holds it, until when, how often it was delivered, what waits
to be written and what is written; it does not know of batches. After any step: no record is
delivered to two holders at once, none more often than the limit, none again that is done; the
start offset goes forward only and leaves nothing behind that is not done; what was written
brings the same state back. In the end one reader that accepts everything finishes everything.
"""

from dataclasses import dataclass
from itertools import pairwise
from random import Random

import pytest

from barnabas.node.coordinator.share.state import ShareState, StateBatch
from barnabas.node.share.core.partition import SharePartition
from barnabas.node.share.core.spans import Change, Span
from barnabas.node.share.core.states import (
    AcquireMode,
    RecordState,
    Refused,
    ShareLimits,
)
from support.effort import examples
from support.share_core import LOCK_MS, ShareBench

MEMBERS = ("a", "b", "c")
GAP, ACCEPT, RELEASE, REJECT, RENEW = range(5)
DONE = (int(RecordState.ACKNOWLEDGED), int(RecordState.ARCHIVED))


@dataclass
class Truth:
    """The true state of one offset."""

    holder: str = ""
    until_ms: int = 0
    deliveries: int = 0
    is_done: bool = False
    is_changing: bool = False


class World:
    """Steps of one group with one partition."""

    def __init__(self, seed: int) -> None:
        rng = self.rng = Random(seed)
        log: list[tuple[int, int]] = []
        offset = 0
        for _ in range(rng.randint(1, 8)):
            size = rng.randint(1, 12)
            if not log or rng.random() < 0.85:
                log.append((offset, offset + size - 1))
            offset += size
        self.limits = ShareLimits(LOCK_MS, rng.randint(2, 6), rng.randint(5, 60))
        self.bench = ShareBench(log, limits=self.limits)
        self.truth = {o: Truth() for first, last in log for o in range(first, last + 1)}
        self.kept: dict[int, tuple[int, int]] = {}
        self.kept_start = 0
        self.changes: list[Change] = []
        self.start_seen = 0
        self.log_start = 0

    def run(self, steps: int) -> None:
        """Random steps, each followed by a look at all that must be so; then the end."""
        actions = (
            (self.fetch, 6),
            (self.acknowledge, 6),
            (self.write, 5),
            (self.leave, 1),
            (self.pass_time, 2),
            (self.lose_records, 0.3),
            (self.restart, 0.5),
        )
        names = [action for action, _ in actions]
        weights = [weight for _, weight in actions]
        for action in self.rng.choices(names, weights, k=steps):
            action()
            self.check()
        self.finish()

    def check(self) -> None:
        self.the_start_goes_forward_and_leaves_nothing_behind()
        self.what_is_done_is_counted()
        self.spans_cover_their_batches()

    # -- steps

    def fetch(self) -> None:
        rng = self.rng
        self._fetch(
            rng.choice(MEMBERS),
            rng.randint(1, 40),
            rng.randint(1, 40),
            rng.random() < 0.5,
            rng.randint(1, 4),
        )

    def _fetch(
        self, member: str, max_records: int, batch_size: int, exact: bool, read_max: int
    ) -> int:
        mode = AcquireMode.RECORD_LIMIT if exact else AcquireMode.BATCH_OPTIMIZED
        got = self.bench.acquire(
            member, max_records, mode=mode, batch_size=batch_size, read_max=read_max
        )
        count = 0
        for first, last, deliveries in got:
            for offset in range(first, last + 1):
                count += 1
                truth = self.truth.get(offset)
                if truth is None:
                    continue  # a hole within what was read: nothing is there to be delivered
                assert not truth.holder, (offset, truth)
                assert not truth.is_done, (offset, truth)
                assert not truth.is_changing, (offset, truth)
                assert offset >= self.log_start
                truth.deliveries += 1
                assert truth.deliveries == deliveries <= self.limits.delivery_count_max
                truth.holder = member
                truth.until_ms = self.bench.now_ms + LOCK_MS
        if exact:
            assert count <= max_records
        return count

    def acknowledge(self) -> None:
        rng = self.rng
        member = rng.choice(MEMBERS)
        spans = [span for span in self.bench.spans() if span[2] == "ACQUIRED"]
        if not spans:
            return
        first, last, _, _, holder = rng.choice(spans)
        if rng.random() < 0.8:
            member = holder
        first += rng.randint(0, last - first)
        last = rng.randint(first, last)
        kinds = (ACCEPT, ACCEPT, RELEASE, REJECT, GAP, RENEW)
        types = (
            [rng.choice(kinds)]
            if rng.random() < 0.5
            else [rng.choice(kinds) for _ in range(first, last + 1)]
        )
        outcome = self.bench.begin(member, (first, last, types))
        live = [o for o in range(first, last + 1) if o >= self.bench.machine.start_offset]
        if isinstance(outcome, Refused):
            assert member != holder
            return
        assert member == holder or not live
        for offset in live:
            truth = self.truth.get(offset)
            if truth is None:
                continue
            said = types[0] if len(types) == 1 else types[offset - first]
            if said == RENEW:
                truth.until_ms = self.bench.now_ms + LOCK_MS
            else:
                truth.holder, truth.is_changing = "", True
        if outcome.batches:
            self.changes.append(outcome)

    def write(self) -> None:
        if self.changes:
            change = self.changes.pop(self.rng.randrange(len(self.changes)))
            self._write(change, self.rng.random() < 0.75)

    def _write(self, change: Change, succeeds: bool) -> None:
        if succeeds:
            self._keep(change)
        touched = [o for span in change.spans for o in range(span.first, span.last + 1)]
        self.bench.machine.written(change, succeeds, self.limits, self.bench.now_ms)
        for batch in change.batches:
            for offset in range(batch.first_offset, batch.last_offset + 1):
                truth = self.truth.get(offset)
                if truth is not None and succeeds:
                    truth.is_changing = False
                    truth.is_done = truth.is_done or batch.delivery_state in DONE
        if succeeds:
            return
        for offset in touched:
            truth = self.truth.get(offset)
            if truth is not None:
                span = self._span_at(offset)
                truth.is_changing = False
                truth.holder = "" if span is None else span.member
                truth.is_done = span is None or span.state is RecordState.ARCHIVED
                if truth.holder:
                    assert truth.until_ms > self.bench.now_ms

    def _span_at(self, offset: int) -> Span | None:
        """The span of an offset; None where the start offset has passed it."""
        if offset < self.bench.machine.start_offset:
            return None
        return next(
            span
            for batch in self.bench.machine.batches
            for span in batch.spans
            if span.first <= offset <= span.last
        )

    def _keep(self, change: Change) -> None:
        """Apply a change as a share coordinator would store it."""
        for batch in change.batches:
            for offset in range(batch.first_offset, batch.last_offset + 1):
                self.kept[offset] = (batch.delivery_state, batch.delivery_count)
        self.kept_start = max(self.kept_start, self.bench.machine.start_offset)

    def leave(self) -> None:
        member = self.rng.choice(MEMBERS)
        change = self.bench.machine.release(member, self.limits)
        for offset, truth in self.truth.items():
            if truth.holder == member:
                truth.holder, truth.is_changing = "", True
                assert any(b.first_offset <= offset <= b.last_offset for b in change.batches)
        if change.batches:
            self.changes.append(change)

    def pass_time(self) -> None:
        bench = self.bench
        after_ms, is_kept = self.rng.randint(1, LOCK_MS), self.rng.random() < 0.7
        bench.now_ms += after_ms
        change = bench.machine.expire(bench.now_ms, self.limits)
        for truth in self.truth.values():
            if truth.holder and truth.until_ms <= bench.now_ms:
                truth.holder = ""
                truth.is_done = truth.deliveries >= self.limits.delivery_count_max
        if change is not None:
            for batch in change.batches:
                for offset in range(batch.first_offset, batch.last_offset + 1):
                    if offset in self.truth and batch.delivery_state in DONE:
                        self.truth[offset].is_done = True
            if is_kept:
                self._keep(change)
            bench.machine.written(change, is_kept, self.limits, bench.now_ms)

    def lose_records(self) -> None:
        end = min(self.log_start + 15, self.bench.log[-1][1] + 1)
        self.log_start = self.rng.randint(self.log_start, end)
        self.bench.machine.log_start_moved(self.log_start)
        for offset, truth in self.truth.items():
            if offset < self.log_start and not truth.holder:
                truth.is_done = True

    def restart(self) -> None:
        """The leader moves: what was written is all that is known."""
        if self.changes:
            return
        bench = self.bench
        start = max(self.kept_start, 0)
        batches = [
            StateBatch(offset, offset, *self.kept[offset])
            for offset in sorted(self.kept)
            if offset >= start
        ]
        bench.machine = SharePartition(0, ShareState(0, start, tuple(batches)))
        self.start_seen = 0
        for offset, truth in self.truth.items():
            state, count = self.kept.get(offset, (0, 0))
            truth.holder, truth.is_changing = "", False
            truth.deliveries = count
            truth.is_done = state in DONE or offset < start
        bench.machine.log_start_moved(self.log_start)
        for offset, truth in self.truth.items():
            truth.is_done = truth.is_done or offset < self.log_start

    # -- what must be so

    def the_start_goes_forward_and_leaves_nothing_behind(self) -> None:
        machine = self.bench.machine
        assert machine.start_offset >= self.start_seen
        self.start_seen = machine.start_offset
        for offset, truth in self.truth.items():
            if self.log_start <= offset < machine.start_offset:
                assert truth.is_done, offset

    def what_is_done_is_counted(self) -> None:
        machine = self.bench.machine
        counted = sum(
            max(0, span.last - max(span.first, machine.start_offset) + 1)
            for batch in machine.batches
            for span in batch.spans
            if span.is_terminal
        )
        assert machine.delivery_complete_count == counted

    def spans_cover_their_batches(self) -> None:
        batches = self.bench.machine.batches
        for batch in batches:
            assert [batch.first, *(span.last + 1 for span in batch.spans[:-1])] == [
                span.first for span in batch.spans
            ]
            assert batch.spans[-1].last == batch.last
            for span in batch.spans:
                assert bool(span.member) == (span.state is RecordState.ACQUIRED)
        for before, after in pairwise(batches):
            assert before.last < after.first

    def finish(self) -> None:
        """One reader that accepts everything finishes everything."""
        for change in self.changes:
            self._write(change, True)
        for member in MEMBERS:
            for truth in self.truth.values():
                truth.holder = "" if truth.holder == member else truth.holder
            self._write(self.bench.machine.release(member, self.limits), True)
        empty = 0
        for _ in range(2_000):
            # One fetch may find only a hole in the log, which it passes.
            empty = 0 if self._fetch("z", 500, 500, False, 8) else empty + 1
            if empty == 2:
                break
            for first, last, state, _, holder in self.bench.spans():
                if state == "ACQUIRED" and holder == "z":
                    accepted = self.bench.begin("z", (first, last, ACCEPT))
                    assert isinstance(accepted, Change)
                    for offset in range(first, last + 1):
                        if offset in self.truth:
                            self.truth[offset].holder = ""
                    self._write(accepted, True)
        assert all(truth.is_done for truth in self.truth.values())
        assert self.bench.machine.is_empty
        assert self.bench.machine.start_offset > self.bench.log[-1][1]


@pytest.mark.parametrize("block", range(examples(1)))
def test_random_steps(block: int) -> None:
    for seed in range(block * 30, block * 30 + 30):
        World(seed).run(120)
