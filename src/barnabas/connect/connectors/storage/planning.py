"""When a partition's new records are worth reading: the driver's part of cutting files. Pure.

What ends files is in the records, and executors keep no open files from one micro-batch to the
next: records that did not fill a file are read again. So reading waits until `flush.size` records
can be there, until the schedule says so, or, where records' times end files, for a while that grows
with what reading costs.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from datetime import tzinfo
from typing import Final

from barnabas.connect.connectors.base import SinkRange
from barnabas.connect.connectors.storage.time_path import next_by_day

RECORDS_PER_BATCH: Final = 500_000
_PAUSE_MIN_MS: Final = 1000
_COST_FACTOR: Final = 4
"""Reading again takes at most a fifth of the time."""
_ARRIVALS_MAX: Final = 1000


@dataclass(slots=True)
class FileRange(SinkRange):
    """A range to cut into files; `is_last` ends them with the range.

    `arrivals` says when records were first seen: those below each offset not later than its ms.
    """

    is_last: bool = False
    arrivals: list[tuple[int, int]] = field(default_factory=list)

    def seen_ms(self, offset: int) -> int:
        """Return when the record at an offset was first seen."""
        place = bisect_right(self.arrivals, offset, key=lambda one: one[0])
        return self.arrivals[min(place, len(self.arrivals) - 1)][1]


@dataclass(slots=True, frozen=True)
class Pace:
    """The settings that say when to read."""

    flush_size: int
    has_timed_files: bool
    """True if a record's time may end files before `flush_size`."""
    schedule_ms: int = -1
    zone: tzinfo | None = None


@dataclass(slots=True)
class Progress:
    """The progress of a partition. Offsets below `done` are in files; `available` are there."""

    pace: Pace
    done: int
    available: int
    now_ms: int
    records_open: int = 0
    """Records behind `done` that did not fill a file when they were last read."""
    tried: int = -1
    next_try_ms: int = 0
    cost_ms: int = 0
    must_end: bool = False
    """Another task has written the file that begins at `done`; it ended before `limit`."""
    limit: int | None = None
    scheduled_ms: int = field(init=False)
    arrivals: list[tuple[int, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.scheduled_ms = self._next_schedule(self.now_ms)
        self.arrivals.append((self.available, self.now_ms))

    def see(self, available: int, now_ms: int) -> None:
        """Records up to an offset are there now."""
        if available > self.available:
            if len(self.arrivals) >= _ARRIVALS_MAX:
                # Two that follow each other become one, all along: times get coarser with age.
                self.arrivals = self.arrivals[1::2]
            self.arrivals.append((available, now_ms))
            self.available = available

    def plan(self, topic: str, partition: int, now_ms: int) -> FileRange | None:
        """Return what to read now."""
        if self.must_end:
            return self._plan_end(topic, partition)
        is_last = 0 <= self.scheduled_ms <= now_ms
        if is_last:
            self.scheduled_ms = self._next_schedule(now_ms)
        if self.available <= self.done:
            return None
        if not is_last and not self._is_worth_it(now_ms):
            return None
        end = min(self.available, max(self.done, self.tried) + self._most())
        if is_last and end < self.available:
            is_last = False
            self.scheduled_ms = now_ms
        return FileRange(topic, partition, self.done, end, is_last, list(self.arrivals))

    def failed(self, where: SinkRange) -> None:
        """A range was not written; what was due still is."""
        if isinstance(where, FileRange) and where.is_last:
            self.scheduled_ms = 0

    def finished(self, done: int, tried: int, records_open: int, cost_ms: int) -> None:
        """A range up to `tried` was read; what is below `done` is in files."""
        if done > self.done:
            self.must_end = False
        self.done = done
        self.tried = tried
        self.records_open = records_open
        self.cost_ms = cost_ms
        self.arrivals = [one for one in self.arrivals if one[0] > done] or self.arrivals[-1:]

    def ended_elsewhere(self, limit: int | None) -> None:
        """The file that begins at `done` is there, and ended by other records than was wanted.

        It ends before `limit` at the latest, and where that is None, at a record that ends files.
        """
        self.must_end, self.limit = True, limit
        self.tried = -1

    def _plan_end(self, topic: str, partition: int) -> FileRange | None:
        """Read what the file holds that another task has written, as soon as it is there."""
        behind = max(self.done, self.tried)
        wanted = behind + 1 if self.limit is None else self.limit
        if self.available < wanted:
            return None
        end = min(self.limit or self.available, behind + self._most())
        return FileRange(topic, partition, self.done, end, end == self.limit, list(self.arrivals))

    def _is_worth_it(self, now_ms: int) -> bool:
        behind = max(self.done, self.tried)
        if self.available - behind + self.records_open >= self.pace.flush_size:
            return True
        if not self.pace.has_timed_files or self.available <= behind or now_ms < self.next_try_ms:
            return False
        self.next_try_ms = now_ms + max(_PAUSE_MIN_MS, _COST_FACTOR * self.cost_ms)
        return True

    def _most(self) -> int:
        """Whole files where the offsets have no gaps."""
        size = self.pace.flush_size
        return max(size, RECORDS_PER_BATCH // size * size)

    def _next_schedule(self, now_ms: int) -> int:
        if self.pace.schedule_ms <= 0 or self.pace.zone is None:
            return -1
        return next_by_day(now_ms, self.pace.schedule_ms, self.pace.zone)
