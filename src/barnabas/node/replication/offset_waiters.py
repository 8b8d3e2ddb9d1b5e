"""Waiters for an offset of a partition to be stored, committed or deleted."""

from bisect import insort
from collections import deque
from collections.abc import Callable, Iterable

from barnabas.protocol.errors import ErrorCode

CommitCallback = Callable[[ErrorCode], None]
Waiter = tuple[int, CommitCallback]
"""The offset waited for, and who."""


def split(waiters: list[Waiter], reached: int) -> tuple[list[Waiter], list[Waiter]]:
    """Those whose offset is reached, and those who go on waiting."""
    if not waiters:
        return waiters, waiters
    due = [waiter for waiter in waiters if waiter[0] <= reached]
    return due, [waiter for waiter in waiters if waiter[0] > reached]


def without(waiters: Iterable[Waiter], callback: CommitCallback) -> list[Waiter]:
    """All but those with this callback."""
    return [waiter for waiter in waiters if waiter[1] != callback]


def tell(waiters: Iterable[Waiter], error: ErrorCode) -> None:
    """Call each with `error`."""
    for _, callback in waiters:
        callback(error)


def insert_in_order(waiters: deque[Waiter], waiter: Waiter) -> None:
    """Put a waiter among those for greater and smaller offsets; nearly always after all."""
    if not waiters or waiters[-1][0] <= waiter[0]:
        waiters.append(waiter)
        return
    ordered = list(waiters)
    insort(ordered, waiter, key=_offset)
    waiters.clear()
    waiters.extend(ordered)


def _offset(waiter: Waiter) -> int:
    return waiter[0]
