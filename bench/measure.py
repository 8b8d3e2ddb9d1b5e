"""What the operating system knows about a process and a file. Linux only."""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


def cpu_seconds(pid: int) -> float:
    """Processor time that the process and its ended children have used, user and system."""
    stat = Path(f"/proc/{pid}/stat").read_text()
    fields = stat.rpartition(")")[2].split()
    return sum(int(ticks) for ticks in fields[11:15]) / TICKS_PER_SECOND


def memory_megabytes(pid: int) -> float:
    """PSS: resident memory, in which pages shared with others count in part. 10^6 bytes."""
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) * 1024 / 1e6
    raise RuntimeError(f"process {pid} has no PSS")


def session_processes(leader: int) -> Iterator[int]:
    """All processes of the session that a process leads."""
    for name in os.listdir("/proc"):
        if name.isdigit():
            with suppress(ProcessLookupError):
                if os.getsid(int(name)) == leader:
                    yield int(name)


def drop_page_cache(directory: Path) -> None:
    """Write the directory's files back and give up their pages, so that reading is from disk."""
    for path in directory.rglob("*"):
        if path.is_file():
            descriptor = os.open(path, os.O_RDONLY)
            try:
                os.fsync(descriptor)
                os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
            finally:
                os.close(descriptor)


def wait_until(condition: Callable[[], bool], timeout_seconds: float, what: str) -> None:
    """Poll every 2 ms. Raises TimeoutError naming `what`."""
    deadline = time.monotonic() + timeout_seconds
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"{what}: not within {timeout_seconds:g} s")
        time.sleep(0.002)


def percentile(ordered: list[float], share: float) -> float:
    """The value below which `share` of an ascending list lies (nearest rank)."""
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]
