"""A log against a list: random operations, kills and power cuts.

The model is the batches that were taken, by offset. After a power cut the log must hold a prefix
of them that reaches at least to what was flushed; after a kill, all of them.
"""

import asyncio
from random import Random

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from barnabas.node.log.config import LogConfig
from barnabas.protocol.records.batch import Codec
from support.effort import examples
from support.logs import LogBench, make_batch, read_records

HOUR_MS = 3_600_000


class LogMachine(RuleBasedStateMachine):
    """See the module. `self.batches` is [(first offset, [(timestamp, value)…])]."""

    def __init__(self) -> None:
        super().__init__()
        self.bench = LogBench(
            config=LogConfig(
                segment_bytes=700,
                index_interval_bytes=150,
                retention_bytes=1500,
                retention_ms=10 * HOUR_MS,
                file_delete_delay_ms=1000,
                segment_ms=5 * HOUR_MS,
                message_timestamp_after_max_ms=1 << 60,
            ),
            tail_bytes_max=600,
        )
        self.batches: list[tuple[int, list[tuple[int, str]]]] = []
        self.start = 0
        self.end = 0
        self.flushed = 0
        self.checkpoint = (0, 0)
        self.count = 0

    # What happens

    @rule(
        ages=st.lists(st.integers(0, 20 * HOUR_MS), min_size=1, max_size=5),
        codec=st.sampled_from([Codec.NONE, Codec.NONE, Codec.LZ4]),
        size=st.integers(0, 90),
    )
    def append(self, ages: list[int], codec: Codec, size: int) -> None:
        now_ms = self.bench.clock.time_ms
        self.count += 1
        stamps = [now_ms - age for age in ages]
        values = [f"{self.count}.{index}" + "x" * size for index in range(len(ages))]
        result = self.bench.append(make_batch(*values, timestamps=stamps, codec=codec))
        assert not result.error, result.message
        assert (result.first_offset, result.last_offset) == (self.end, self.end + len(ages) - 1)
        self.batches.append((self.end, list(zip(stamps, values, strict=True))))
        self.end += len(ages)
        self.bench.log.high_watermark = self.end

    @rule()
    def roll(self) -> None:
        self.bench.log.roll()

    @rule()
    def flush(self) -> None:
        asyncio.run(self.bench.log.flush())
        assert self.bench.log.flushed_offset == self.end
        self.flushed = self.end

    @rule()
    def write_checkpoint(self) -> None:
        log = self.bench.log
        self.checkpoint = (log.recovery_point, log.log_start_offset)

    @rule(hours=st.integers(1, 8))
    def wait(self, hours: int) -> None:
        self.bench.clock.advance(hours * HOUR_MS)
        self.bench.disk.now_ms = self.bench.clock.time_ms
        self.bench.directory.delete_step(self.bench.clock.time_ms)

    @rule()
    def apply_retention(self) -> None:
        log = self.bench.log
        log.apply_retention(self.bench.clock.time_ms)
        assert log.log_start_offset >= self.start
        assert log.size_bytes <= 1500 + 700
        self.start = log.log_start_offset

    @rule(data=st.data())
    def delete_records(self, data: st.DataObject) -> None:
        offset = data.draw(st.integers(0, self.end))
        self.bench.log.delete_records_before(offset)
        self.start = max(self.start, offset)

    @rule(data=st.data())
    def truncate(self, data: st.DataObject) -> None:
        # Leaders' logs part at batches: so do we cut.
        offset = data.draw(st.sampled_from([*(first for first, _ in self.batches), self.end]))
        if offset < self.start:
            return
        self.bench.log.truncate_to(offset)
        self.bench.log.flush_now()
        self.checkpoint = (min(self.checkpoint[0], offset), min(self.checkpoint[1], offset))
        self.batches = [batch for batch in self.batches if batch[0] < offset]
        self.end = self.flushed = offset

    @precondition(lambda self: self.end > 0)
    @rule(ahead=st.integers(0, 50))
    def start_anew(self, ahead: int) -> None:
        offset = self.end + ahead
        self.bench.log.truncate_fully_and_start_at(offset)
        self.bench.log.flush_now()
        self.checkpoint = (offset, offset)
        self.batches = []
        self.start = self.end = self.flushed = offset

    @rule(is_clean=st.booleans())
    def restart(self, is_clean: bool) -> None:
        """Stop in an orderly way, or be killed: nothing that was written is lost."""
        log = self.bench.log
        if is_clean:
            self.bench.close()
            self.flushed = self.end
            self.checkpoint = (log.recovery_point, log.log_start_offset)
        report = self.bench.reopen(
            is_clean=is_clean,
            recovery_point=self.checkpoint[0],
            log_start_offset=self.checkpoint[1],
        )
        assert not report.is_loss, report
        self._check_start()

    @rule(seed=st.integers(0, 2**32))
    def power_cut(self, seed: int) -> None:
        self.bench.disk.cut_power(Random(seed))
        if not self.bench.disk.is_dir(self.bench.log.directory):
            assert self.flushed == 0
            fresh = LogBench(config=self.bench.config, disk=self.bench.disk)
            fresh.clock = self.bench.clock
            self.bench = fresh
            self.batches, self.start, self.end, self.checkpoint = [], 0, 0, (0, 0)
            return
        self.bench.reopen(recovery_point=self.checkpoint[0], log_start_offset=self.checkpoint[1])
        log = self.bench.log
        assert log.log_end_offset >= self.flushed
        if log.log_end_offset > self.end:
            assert log.log_end_offset == log.log_start_offset == self.checkpoint[1]
        self.end = log.log_end_offset
        self.batches = [batch for batch in self.batches if batch[0] + len(batch[1]) <= self.end]
        self._check_start()
        # Records that recovery found are not flushed, and a second power cut may take them.

    def _check_start(self) -> None:
        """Deleted records may come back if the start was not checkpointed, and none else go."""
        log = self.bench.log
        assert self.checkpoint[1] <= log.log_start_offset <= max(self.start, self.checkpoint[1])
        self.start = log.log_start_offset
        log.high_watermark = self.end

    # What must hold

    @invariant()
    def holds_what_was_appended(self) -> None:
        log = self.bench.log
        assert (log.log_start_offset, log.log_end_offset) == (self.start, self.end)
        expected = [
            (first + index, stamp, value)
            for first, records in self.batches
            for index, (stamp, value) in enumerate(records)
            if first + index >= self.start
        ]
        for max_bytes in (1, 400, 1 << 20):
            found = [
                (record.offset, record.timestamp, (record.value or b"").decode())
                for record in read_records(log, max_bytes=max_bytes)
            ]
            assert found == expected

    @invariant()
    def finds_records_by_time(self) -> None:
        log = self.bench.log
        records = [
            (stamp, first + index)
            for first, batch in self.batches
            for index, (stamp, _) in enumerate(batch)
            if first + index >= self.start
        ]
        now_ms = self.bench.clock.time_ms
        for wanted in (0, now_ms - 15 * HOUR_MS, now_ms - 5 * HOUR_MS, now_ms):
            expected = next((offset for stamp, offset in records if stamp >= wanted), None)
            found = log.offset_for_timestamp(wanted, self.end)
            assert (None if found is None else found.offset) == expected
        if records:
            greatest = max(stamp for stamp, _ in records)
            first = next(offset for stamp, offset in records if stamp == greatest)
            found = log.max_timestamp_offset(self.end)
            if found is not None and found.timestamp == greatest:
                assert found.offset == first

    @invariant()
    def reads_from_any_offset(self) -> None:
        log = self.bench.log
        for first, records in self.batches[-3:]:
            if first + len(records) <= self.start:
                continue
            middle = max(self.start, first + len(records) // 2)
            result = log.read(middle, 1, max_offset=self.end)
            assert result.next_offset == first + len(records)


TestLogModel = LogMachine.TestCase
TestLogModel.settings = settings(
    max_examples=examples(30),
    stateful_step_count=40,
    deadline=None,
    report_multiple_bugs=False,
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
