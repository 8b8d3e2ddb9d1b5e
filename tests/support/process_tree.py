"""The processes that a process has started."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path


def children(pid: int) -> list[int]:
    """Those that it started itself and that still run."""
    found: list[int] = []
    with suppress(OSError):  # it has just ended
        for file in Path(f"/proc/{pid}/task").glob("*/children"):
            with suppress(OSError):  # one of its threads has
                found += map(int, file.read_text().split())
    return found


def descendants(pid: int) -> Iterator[int]:
    """It and all that come from it, each before its children are looked up."""
    yield pid
    for child in children(pid):
        yield from descendants(child)
