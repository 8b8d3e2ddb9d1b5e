"""A compacted log against a list: keyed appends, transactions, cleaning, kills and power cuts.

The model is every record that was taken, with its fate. What is read must be part of it, in order
and at the old offsets, and what was once gone must not come back. Of each key the latest record
that counts must be there, unless it is a tombstone whose time is over: then none older may be.
Records of open transactions are there, and aborted ones only where the index says that they are.
"""

import asyncio
from dataclasses import dataclass
from random import Random

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from barnabas.node.log.compaction.compactor import CompactionSettings
from barnabas.protocol.records.batch import Codec
from support.compaction import CompactionBench, compact_config
from support.effort import examples

RETENTION_MS = 1000
KEYS = [f"k{number}" for number in range(6)] + ["a key of more than thirty bytes, which is hashed"]


@dataclass
class Written:
    """A record of the model."""

    offset: int
    key: str
    value: str | None
    producer_id: int
    is_aborted: bool | None
    """None: its transaction is open."""
    written_ms: int


class CompactionMachine(RuleBasedStateMachine):
    """See the module."""

    def __init__(self) -> None:
        super().__init__()
        self.bench = CompactionBench(
            config=compact_config(
                segment_bytes=700, index_interval_bytes=150, delete_retention_ms=RETENTION_MS
            ),
            tail_bytes_max=600,
        )
        self.records: list[Written] = []
        self.sequences: dict[int, int] = {}
        self.count = 0
        self.checkpoint = 0
        self.cleaned: int | None = None
        self.attempted = 0
        """The high watermark of the last round: what it rests on cannot be cut off any more."""
        self.gone: set[int] = set()
        """Offsets that were not seen any more: they must not come back."""

    @property
    def end(self) -> int:
        return self.bench.log.log_end_offset

    # What happens

    @rule(seed=st.integers(0, 2**32), count=st.integers(1, 15))
    def write(self, seed: int, count: int) -> None:
        """Producers write, some in transactions, which end one way or the other."""
        random = Random(seed)
        for _ in range(count):
            producer_id = random.choice((-1, -1, 5, 8, 8, 9))
            if self.bench.log.producers.is_open(producer_id) and random.random() < 0.6:
                self._end_transaction(producer_id, is_commit=random.random() < 0.5)
            else:
                self._append(random, producer_id)
            if random.random() < 0.2:
                self.bench.log.roll()

    def _append(self, random: Random, producer_id: int) -> None:
        self.count += 1
        pairs = [
            (random.choice(KEYS), None if random.random() < 0.25 else f"{self.count}.{index}")
            for index in range(random.choice((1, 1, 2, 5)))
        ]
        sequence = self.sequences.get(producer_id, 0)
        first = self.bench.put(
            *pairs,
            codec=random.choice((Codec.NONE, Codec.NONE, Codec.LZ4)),
            producer=(producer_id, 0, sequence) if producer_id >= 0 else (-1, -1, -1),
            transactional=producer_id > 7,
        )
        self.sequences[producer_id] = sequence + len(pairs)
        now_ms = self.bench.clock.time_ms
        fate = None if producer_id > 7 else False
        for index, (key, value) in enumerate(pairs):
            self.records.append(Written(first + index, key, value, producer_id, fate, now_ms))

    def _end_transaction(self, producer_id: int, *, is_commit: bool) -> None:
        self.bench.end_txn(producer_id, is_commit=is_commit)
        for record in self.records:
            if record.producer_id == producer_id and record.is_aborted is None:
                record.is_aborted = not is_commit

    @rule()
    def flush(self) -> None:
        self.bench.log.flush_now()

    @rule()
    def write_checkpoint(self) -> None:
        self.checkpoint = self.bench.log.recovery_point

    @rule(duration_ms=st.sampled_from([100, RETENTION_MS // 2, RETENTION_MS, 3 * RETENTION_MS]))
    def wait(self, duration_ms: int) -> None:
        self.bench.clock.advance(duration_ms)
        self.bench.disk.now_ms = self.bench.clock.time_ms
        self.bench.directory.delete_step(self.bench.clock.time_ms)

    @rule(
        keys_max=st.sampled_from([1, 3, 1000]),
        buffer_bytes=st.sampled_from([0, 65536]),
        rounds=st.integers(1, 3),
    )
    def compact(self, keys_max: int, buffer_bytes: int, rounds: int) -> None:
        bench = self.bench
        bench.limit_keys(keys_max)
        bench.follow(
            CompactionSettings(
                map_bytes_max=bench.settings.map_bytes_max,
                map_load_factor=1.0,
                io_buffer_bytes=buffer_bytes,
            )
        )
        bench.seal()
        for _ in range(rounds):
            chosen = bench.compactor.choose()
            if chosen is None or chosen.end_offset <= chosen.start_offset:
                break
            self.attempted = self.end
            asyncio.run(bench.compactor.clean(chosen))
            assert not bench.compactor.uncleanable
            assert not bench.compactor.failures
        self.cleaned = bench.log.cleaned_offset

    @rule(data=st.data())
    def truncate(self, data: st.DataObject) -> None:
        """Cut the end off, as when an unclean leader was elected."""
        offsets = [
            header.base_offset
            for header, _ in self.bench.batches()
            if header.base_offset >= self.attempted
        ]
        offset = data.draw(st.sampled_from([*offsets, self.end]))
        log = self.bench.log
        log.truncate_to(offset)
        log.flush_now()
        self.checkpoint = min(self.checkpoint, offset)
        self._cut(offset)
        self.cleaned = log.cleaned_offset

    @rule(is_clean=st.booleans())
    def restart(self, is_clean: bool) -> None:
        log = self.bench.log
        if is_clean:
            self.bench.close()
            self.checkpoint = log.recovery_point
        log.cleaned_offset = self.cleaned
        report = self.bench.reopen(is_clean=is_clean, recovery_point=self.checkpoint)
        assert not report.is_loss, report
        self._cut(self.end)

    @rule(seed=st.integers(0, 2**32), steps=st.integers(1, 400))
    def power_cut_while_cleaning(self, seed: int, steps: int) -> None:
        """Lose power at some operation of the disk, in a round or after it."""
        bench = self.bench
        bench.seal()
        self.checkpoint = bench.log.recovery_point
        flushed = self.end
        left = steps

        def fault(operation: str, path: str) -> None:
            nonlocal left
            left -= 1
            if left < 0:
                raise PowerCut

        bench.disk.fault = fault
        try:
            chosen = bench.compactor.choose()
            if chosen is not None and chosen.end_offset > chosen.start_offset:
                self.attempted = self.end
                asyncio.run(bench.compactor.clean(chosen))
                self.cleaned = bench.log.cleaned_offset
        except PowerCut:
            pass
        bench.disk.fault = None
        bench.disk.cut_power(Random(seed))
        bench.log.cleaned_offset = self.cleaned
        bench.reopen(recovery_point=self.checkpoint)
        assert self.end == flushed
        names = bench.names()
        assert not [name for name in names if name.endswith((".cleaned", ".swap", ".deleted"))]
        self._cut(self.end)

    def _cut(self, offset: int) -> None:
        """Go on with what the log holds."""
        self.records = [record for record in self.records if record.offset < offset]
        self.gone = {gone for gone in self.gone if gone < offset}
        log = self.bench.log
        log.high_watermark = log.log_end_offset
        for producer_id in (5, 8, 9):
            entry = log.producers.producers.get(producer_id)
            self.sequences[producer_id] = 0 if entry is None else entry.last_sequence + 1
        self._reopen_transactions()

    def _reopen_transactions(self) -> None:
        """Transactions whose marker was cut off are open again."""
        log = self.bench.log
        for producer_id in (8, 9):
            entry = log.producers.producers.get(producer_id)
            first = -1 if entry is None else entry.txn_first_offset
            if first >= 0:
                for record in self.records:
                    if record.producer_id == producer_id and record.offset >= first:
                        record.is_aborted = None

    # What must hold

    @invariant()
    def reads_what_must_be_there(self) -> None:
        bench = self.bench
        known = {record.offset: record for record in self.records}
        found = bench.pairs()
        offsets = [offset for offset, _, _ in found]
        assert offsets == sorted(offsets)
        for offset, key, value in found:
            assert (known[offset].key, known[offset].value) == (key, value)
            assert offset not in self.gone
        self.gone |= known.keys() - set(offsets)
        self._check_latest(set(offsets))

    def _check_latest(self, there: set[int]) -> None:
        latest = {record.key: record for record in self.records if record.is_aborted is False}
        now_ms = self.bench.clock.time_ms
        for record in self.records:
            if record.is_aborted is None:
                assert record.offset in there, record  # it may still be committed
        for key, record in latest.items():
            if record.value is not None or now_ms - record.written_ms < RETENTION_MS:
                assert record.offset in there, record
            elif record.offset not in there:
                older = [
                    other.offset
                    for other in self.records
                    if other.key == key and other.is_aborted is False
                ]
                assert not there.intersection(older), (record, older)

    @invariant()
    def hides_aborted_records(self) -> None:
        log = self.bench.log
        aborted = log.aborted_transactions(0, self.end)
        there = {offset for offset, _, _ in self.bench.pairs()}
        for record in self.records:
            if record.is_aborted and record.offset in there:
                assert any(
                    entry.producer_id == record.producer_id
                    and entry.first_offset <= record.offset <= entry.last_offset
                    for entry in aborted
                ), record

    @invariant()
    def reads_from_any_offset(self) -> None:
        offsets = [offset for offset, _, _ in self.bench.pairs()]
        for start in range(0, self.end, max(1, self.end // 5)):
            found = [offset for offset, _, _ in self.bench.pairs(start)]
            assert found == [offset for offset in offsets if offset >= start]


class PowerCut(BaseException):
    """The machine is off."""


TestCompactionModel = CompactionMachine.TestCase
TestCompactionModel.settings = settings(
    max_examples=examples(24),
    stateful_step_count=30,
    deadline=None,
    report_multiple_bugs=False,
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
