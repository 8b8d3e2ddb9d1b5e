"""Moving a log to another directory, against a list: random operations, and an end at any write.

The model holds the records appended and not truncated, by offset. The process may be killed, or the
power may fail, at any point of the move. The log after the next start then has all flushed records,
followed only by records that were appended there; after a kill it has all of them. The move
continues from the files it finds, and ends.
"""

from random import Random

import pytest

from barnabas.base.ids import TopicPartition
from barnabas.node.log.config import LogConfig
from barnabas.node.log.copying import copy_some, is_caught_up
from barnabas.node.log.manager import LogManager
from barnabas.node.log.partition_log import PartitionLog
from sim.fake_disk import FakeDisk
from sim.manual_clock import ManualClock
from support.logs import NOW_MS, TOPIC_ID, make_batch, read_values

DIRS = ("/one", "/two")
PARTITION = TopicPartition("topic", 0)
CONFIG = LogConfig(segment_bytes=900, index_interval_bytes=150, file_delete_delay_ms=0)
WRITES = frozenset(
    (
        *("append", "pwrite", "truncate", "fsync", "write_atomic"),
        *("remove", "remove_tree", "rename", "sync_dir", "make_dirs"),
    )
)
STEPS = 60


class Ended(BaseException):
    """The process ends here."""


class Moving:
    """A node's logs in two directories, and the model."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.disk = FakeDisk()
        self.clock = ManualClock(NOW_MS)
        for path in DIRS:
            self.disk.make_dirs(path)
        self.disk.sync_dir("/")
        self.values: dict[int, str] = {}
        self.ever: set[tuple[int, str]] = set()
        """(offset, value) of all that was ever appended."""
        self.start = self.end = self.flushed = 0
        self.highest_start = 0
        self.epoch = 0
        self.is_truncating = False
        self.writes = 0
        self.ends_at = 0
        """The write at which the process ends; 0: it lives."""
        self.disk.fault = self._count
        self.boot()
        self.logs.create(PARTITION, TOPIC_ID, CONFIG)
        self.flush()

    def _count(self, operation: str, path: str) -> None:
        if operation in WRITES:
            self.writes += 1
            if self.writes == self.ends_at:
                raise Ended

    def boot(self) -> None:
        self.logs = LogManager(self.disk, DIRS, self.clock, CONFIG, random=Random(self.writes))
        self.logs.load()

    @property
    def log(self) -> PartitionLog:
        log = self.logs.get(PARTITION)
        assert log is not None
        return log

    @property
    def future(self) -> PartitionLog:
        future = self.logs.futures.get(PARTITION)
        assert future is not None
        return future

    # What happens

    def append(self) -> None:
        if self.random.random() < 0.1:
            self.epoch += 1
            self.log.start_leader_epoch(self.epoch)
        value = f"{self.end} in {self.epoch} " + "x" * self.random.randrange(120)
        self.ever.add((self.end, value))
        result = self.log.append_as_leader(
            make_batch(value), leader_epoch=self.epoch, now_ms=NOW_MS
        )
        assert (result.error, result.first_offset) == (0, self.end)
        self.values[self.end] = value
        self.end += 1
        self.log.high_watermark = self.end

    def flush(self) -> None:
        self.log.flush_now()
        self.flushed = self.end

    def truncate(self) -> None:
        """Another leader has not got it all; what was flushed may be among that."""
        offset = self.random.randrange(max(self.start, self.end - 6), self.end + 1)
        self.flushed = min(self.flushed, offset)
        self.is_truncating = True
        self.log.truncate_to(offset)
        self.is_truncating = False
        self.end = offset
        self.epoch += 1

    def raise_start(self) -> None:
        self.start = self.random.randrange(self.start, self.end + 1)
        self.highest_start = max(self.highest_start, self.start)
        self.log.delete_records_before(self.start)
        self.log.apply_retention(NOW_MS)

    def copy(self) -> None:
        copy_some(self.log, self.future, self.random.choice((1, 300, 5000)))

    def keep_house(self) -> None:
        self.logs.checkpoint_step()
        self.logs.delete_step(NOW_MS)
        self.future.flush_now()

    def begin(self) -> None:
        """Move to the other directory, unless that is under way."""
        if self.logs.futures.get(PARTITION) is None:
            (path,) = [path for path in DIRS if path != self.log.log_dir]
            self.logs.futures.create(self.log, self.logs.directory(path))

    def go(self, steps: int) -> None:
        self.begin()
        actions = [self.append] * 8 + [self.copy] * 8
        actions += [self.flush, self.truncate, self.raise_start, self.keep_house]
        for _ in range(steps):
            self.random.choice(actions)()

    def to_the_end(self) -> None:
        """Run all steps, unless the process is to end before."""
        self.go(STEPS)
        self.finish()
        self.append()
        self.flush()

    def finish(self) -> None:
        while not is_caught_up(self.log, self.future):
            self.copy()
        self.logs.futures.prepare(self.log, self.future)
        for _ in range(3):
            self.append()
        while not is_caught_up(self.log, self.future):
            self.copy()
        self.copy()
        old = self.log
        self.logs.futures.replace(PARTITION)
        assert old.is_closed
        assert self.log.log_dir != old.log_dir
        # The copy may know better than the log, after a start, how far the start was raised.
        assert self.start <= self.log.log_start_offset <= self.highest_start
        self.start = self.log.log_start_offset

    # What must be true

    def check(self) -> None:
        log = self.log
        assert (log.log_start_offset, log.log_end_offset) == (self.start, self.end)
        assert read_values(log) == [self.values[o] for o in range(self.start, self.end)]
        for offset in range(self.start, self.end):
            assert log.epoch_of(offset) == int(self.values[offset].split()[2])

    def recover(self, *, is_kill: bool) -> None:
        """The next start, and what a replica manager does then."""
        self.ends_at = 0
        self.boot()
        assert not self.logs.offline_dirs
        if self.logs.get(PARTITION) is None:
            self.logs.futures.adopt(PARTITION)
        log = self.log
        log.config = CONFIG
        future = self.logs.futures.get(PARTITION)
        if future is not None and future.log_dir == log.log_dir:
            self.logs.futures.delete(PARTITION)  # of a rename the power cut has left both names
        end = log.log_end_offset
        # The log start is known as of the last checkpoint.
        assert log.log_start_offset <= self.start
        assert end >= self.flushed
        if is_kill and not self.is_truncating:
            assert end >= self.end
        self.is_truncating = False
        found = read_values(log)
        assert len(found) == end - log.log_start_offset
        for offset, value in enumerate(found, log.log_start_offset):
            assert (offset, value) in self.ever
            if offset < self.flushed:
                assert value == self.values[offset]
            self.values[offset] = value
        self.start, self.end = log.log_start_offset, end
        log.high_watermark = end
        self.epoch += 1
        log.start_leader_epoch(self.epoch)
        self.check()


def test_a_move_without_an_end_before_its_end() -> None:
    for seed in range(30):
        world = Moving(seed)
        for _ in range(2):
            world.go(STEPS)
            world.finish()
            world.check()
            world.append()
            world.flush()
            world.check()
        world.logs.shutdown()
        world.boot()
        world.check()
        assert world.log.log_dir == DIRS[0]
        assert len(world.logs.futures) == 0


@pytest.mark.parametrize("is_kill", [True, False], ids=["kill", "power"])
@pytest.mark.parametrize("seed", range(3))
def test_a_process_may_end_at_any_write(seed: int, is_kill: bool) -> None:
    world = Moving(seed)
    world.go(STEPS)
    before = world.writes
    world.finish()
    world.append()
    world.flush()
    ends = [*range(2, before, 9), *range(before, world.writes + 1)]
    for end in ends:
        world = Moving(seed)
        world.ends_at = end
        if world.writes >= end:
            continue
        with pytest.raises(Ended):
            world.to_the_end()
        if not is_kill:
            world.disk.cut_power(Random(end))
        world.recover(is_kill=is_kill)
        world.go(5)
        world.finish()
        world.check()
        world.flush()
        world.logs.shutdown()
        world.boot()
        world.check()
