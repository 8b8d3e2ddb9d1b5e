"""Recently appended batches, kept in memory for those who read at the end of a log.

Two bounds: bytes per log, and bytes of all logs together; where the second is reached, the log
that was appended to longest ago gives all of its. A batch is a slice of the frame that it came
in and pins that frame: kept as it is where it is nearly the whole frame, else copied.
"""

from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Sequence

from barnabas.base.disk import Buffer

LOG_BYTES_MAX_DEFAULT = 1 << 20
TOTAL_BYTES_MAX_DEFAULT = 16 << 20
PINNED_SLACK_BYTES = 256
"""A slice may pin this much more than itself."""
ENTRY_OVERHEAD_BYTES = 640
"""The memory of a batch beside its bytes: slack, two objects, two list items."""
COMPACT_AT = 256


class TailBudget:
    """The memory that the tails of all logs may use together."""

    __slots__ = ("log_bytes_max", "tails", "total_bytes_max", "used_bytes")

    def __init__(
        self,
        total_bytes_max: int = TOTAL_BYTES_MAX_DEFAULT,
        log_bytes_max: int = LOG_BYTES_MAX_DEFAULT,
    ) -> None:
        self.total_bytes_max = total_bytes_max
        self.log_bytes_max = log_bytes_max
        self.used_bytes = 0
        self.tails: OrderedDict[TailCache, None] = OrderedDict()
        """By last append, the longest ago first."""


class TailCache:
    """One log's last batches, without gaps from `start_offset` to the end of the log."""

    __slots__ = ("_budget", "_buffers", "_first", "_next_offsets", "size_bytes", "start_offset")

    def __init__(self, budget: TailBudget, end_offset: int) -> None:
        self._budget = budget
        self._buffers: list[Buffer | None] = []
        self._next_offsets: list[int] = []
        self._first = 0
        self.start_offset = end_offset
        self.size_bytes = 0

    def append(self, buffer: Buffer, next_offset: int) -> None:
        """Keep a batch that ends before `next_offset`; it must never change from now on."""
        self.extend((buffer,), (next_offset,))

    def extend(self, buffers: Sequence[Buffer], next_offsets: Sequence[int]) -> None:
        """Keep several batches, each of which ends before the one of `next_offsets`."""
        budget = self._budget
        cost = 0
        for buffer, next_offset in zip(buffers, next_offsets, strict=True):
            size = len(buffer)
            if size > budget.log_bytes_max:
                self.size_bytes += cost
                budget.used_bytes += cost
                self.clear(next_offset)
                cost = 0
                continue
            if type(buffer) is memoryview:
                if len(buffer.obj) - size > PINNED_SLACK_BYTES:  # type: ignore[arg-type]  # bytes
                    buffer = bytes(buffer)
            elif type(buffer) is bytearray:
                buffer = memoryview(buffer)
            self._buffers.append(buffer)
            self._next_offsets.append(next_offset)
            cost += size + ENTRY_OVERHEAD_BYTES
        if not cost:
            return
        self.size_bytes += cost
        budget.used_bytes += cost
        tails = budget.tails
        try:
            tails.move_to_end(self)
        except KeyError:
            tails[self] = None
        while self.size_bytes > budget.log_bytes_max:
            self._drop_first()
        while budget.used_bytes > budget.total_bytes_max:
            oldest = next(iter(tails))
            if oldest is self:
                self._drop_first()
            else:
                oldest.clear()

    def _drop_first(self) -> None:
        first = self._first
        buffer = self._buffers[first]
        assert buffer is not None
        self._buffers[first] = None
        cost = len(buffer) + ENTRY_OVERHEAD_BYTES
        self.size_bytes -= cost
        self._budget.used_bytes -= cost
        self.start_offset = self._next_offsets[first]
        self._first = first = first + 1
        if first >= COMPACT_AT and first * 2 >= len(self._buffers):
            del self._buffers[:first]
            del self._next_offsets[:first]
            self._first = 0

    def drop_before(self, offset: int) -> None:
        """Forget the batches that end at or before `offset`."""
        next_offsets = self._next_offsets
        while self._first < len(next_offsets) and next_offsets[self._first] <= offset:
            self._drop_first()

    def clear(self, end_offset: int | None = None) -> None:
        """Forget everything; the log ends at `end_offset` (None: where it ended)."""
        if end_offset is None:
            end_offset = self._next_offsets[-1] if self._next_offsets else self.start_offset
        self._budget.used_bytes -= self.size_bytes
        self._budget.tails.pop(self, None)
        self._buffers.clear()
        self._next_offsets.clear()
        self._first = 0
        self.size_bytes = 0
        self.start_offset = end_offset

    def skip_to(self, end_offset: int) -> None:
        """Keep nothing of what was appended up to `end_offset`."""
        if self._buffers:
            self.clear(end_offset)
        else:
            self.start_offset = end_offset

    def read(
        self, offset: int, max_bytes: int, max_offset: int, min_one_batch: bool
    ) -> tuple[list[Buffer], int, int]:
        """Batches from the one that holds `offset` on, `offset` not before `start_offset`.

        Returns (batches, their bytes, the offset after them).
        """
        next_offsets = self._next_offsets
        buffers = self._buffers
        start = index = bisect_right(next_offsets, offset, self._first)
        count = len(buffers)
        size = 0
        while index < count and next_offsets[index] <= max_offset:
            buffer = buffers[index]
            assert buffer is not None
            total = size + len(buffer)
            if total > max_bytes and (size or not min_one_batch):
                break
            size = total
            index += 1
        if index == start:
            return [], 0, offset
        return buffers[start:index], size, next_offsets[index - 1]  # type: ignore[return-value]  # None only before _first
