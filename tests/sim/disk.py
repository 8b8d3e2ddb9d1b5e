"""A simulated machine's disk: `FakeDisk` with latency, and faults that come while it is in use.

A killed process loses nothing that it wrote; `cut_power` loses what chance takes of what was not
forced to the medium. An fsync takes time, and what it forces is what was written before it
began or before it ended, as chance has it. A slow disk also holds up the process that writes.
"""

import asyncio
import errno
import os
from collections.abc import Awaitable, Callable, Sequence
from contextvars import Context
from random import Random

from barnabas.base.disk import DiskFile
from sim.clock import SimClock
from sim.fake_disk import Directory, FakeDisk, Inode
from sim.loop import Process, SimLoop

FSYNC_MS = (0.2, 2.0)


class SimDisk(FakeDisk):
    """See the module. `process` is who uses it now."""

    def __init__(self, loop: SimLoop, clock: SimClock, random: Random) -> None:
        self._clock = clock
        super().__init__()
        self._loop = loop
        self._random = random
        self.process: Process | None = None
        self.fsync_ms = FSYNC_MS
        self.write_stall_ms = 0.0
        """How long a write holds up the process, at most; 0 for a healthy disk."""
        self.bit_flips = 0

    @property
    def now_ms(self) -> int:  # type: ignore[override]
        return self._clock.now_ms()

    @now_ms.setter
    def now_ms(self, value: int) -> None:
        """The base class sets it once; time is the clock's here."""

    # Faults

    def heal(self) -> None:
        """Be healthy, fast and large again."""
        self.fault = None
        self.capacity_bytes = None
        self.make_fast()

    def make_fast(self) -> None:
        """Return to normal speed."""
        self.fsync_ms = FSYNC_MS
        self.write_stall_ms = 0.0

    def make_slow(self, fsync_ms: float, write_stall_ms: float) -> None:
        """From now on an fsync takes up to `fsync_ms`, a write up to `write_stall_ms`."""
        self.fsync_ms = (fsync_ms / 4, fsync_ms)
        self.write_stall_ms = write_stall_ms

    def fill_up(self, free_bytes: int) -> None:
        """Leave only `free_bytes` of room."""
        self.capacity_bytes = self.used_bytes() + free_bytes

    def used_bytes(self) -> int:
        return sum(len(inode.data) for _, inode in self.files("/"))

    def files(self, path: str) -> list[tuple[str, Inode]]:
        """Every file below `path`, in order of path."""
        found: list[tuple[str, Inode]] = []
        if not self.exists(path):
            return found
        node = self._find(path)
        assert isinstance(node, Directory)
        for name in sorted(node.entries):
            child, child_path = node.entries[name], f"{path.rstrip('/')}/{name}"
            if isinstance(child, Directory):
                found += self.files(child_path)
            else:
                found.append((child_path, child))
        return found

    def flip_bit(self, accepts: Callable[[str], bool]) -> str | None:
        """Flip one bit of what is durable in a file that `accepts`; returns where, if any is."""
        files = [
            (path, inode) for path, inode in self.files("/") if accepts(path) and inode.durable
        ]
        if not files:
            return None
        path, inode = self._random.choice(files)
        size = min(len(inode.durable), len(inode.data))
        if not size:
            return None
        position = self._random.randrange(size)
        bit = 1 << self._random.randrange(8)
        durable = bytearray(inode.durable)
        durable[position] ^= bit
        inode.durable = bytes(durable)
        inode.data[position] ^= bit
        self.bit_flips += 1
        return f"{path} at {position}"

    def cut_file(self, accepts: Callable[[str], bool]) -> str | None:
        """Truncate a file that `accepts` somewhere; returns what was done, if anything."""
        files = [(path, inode) for path, inode in self.files("/") if accepts(path) and inode.data]
        if not files:
            return None
        path, inode = self._random.choice(files)
        size = self._random.randrange(len(inode.data))
        told = f"{path} from {len(inode.data)} to {size} bytes"
        del inode.data[size:]
        inode.durable = bytes(inode.data)
        return told

    def check(self, operation: str, path: str, size_bytes: int = 0) -> None:
        super().check(operation, path, size_bytes)
        if self.write_stall_ms and operation in ("append", "pwrite", "write_atomic"):
            self._stall(self._random.random() * self.write_stall_ms)

    def _stall(self, duration_ms: float) -> None:
        """Hold up the process: what it does next, it does later."""
        process = self.process
        if process is not None and not process.stop_count and process.is_alive:
            self._loop.stop_process(process)
            self._loop.call_later(
                duration_ms / 1000, lambda: self._loop.continue_process(process), context=Context()
            )

    # Fsync beside the loop

    def fsync_soon(
        self, files: Sequence[DiskFile], directories: Sequence[str] = ()
    ) -> Awaitable[None]:
        return asyncio.ensure_future(self._fsync_slowly(list(files), list(directories)))

    async def _fsync_slowly(self, files: list[DiskFile], directories: list[str]) -> None:
        low, high = self.fsync_ms
        delay_s = (low + self._random.random() * (high - low)) / 1000
        forces_first = self._random.random() < 0.5
        if forces_first:
            self._force(files, directories)
        await asyncio.sleep(delay_s)
        if not forces_first:
            self._force(files, directories)

    def _force(self, files: list[DiskFile], directories: list[str]) -> None:
        for file in files:
            file.fsync()
        for directory in directories:
            self.sync_dir(directory)


def io_error(path: str) -> OSError:
    """Return the error of a broken medium."""
    return OSError(errno.EIO, os.strerror(errno.EIO), path)
