"""Partitions that were placed on this node and have no log yet: made a few in each turn.

A log is a directory and several files. Two thousand of them made at once would hold up the event
loop, and with it every client, for seconds; so a turn of the loop makes a few, until a number or
a time is reached, and the rest waits for the next turns. Those that this node leads come first,
since followers and clients wait for them. A partition that waits is not found here: requests for it
get a retriable error, as from a broker that has not heard of it yet.
"""

import asyncio
from collections.abc import Callable

from barnabas.base.clock import Clock
from barnabas.base.ids import Uuid

LOGS_PER_TURN_MAX = 16
TURN_MAX_MS = 10

PartitionKey = tuple[Uuid, int]
"""Topic id and index."""


class Openings:
    """The waiting partitions, and the rest of this turn."""

    __slots__ = (
        "_clock",
        "_deadline_ms",
        "_finished",
        "_followed",
        "_is_closed",
        "_is_scheduled",
        "_led",
        "_left",
        "_open",
        "_turn_ended",
    )

    def __init__(
        self,
        clock: Clock,
        open_partition: Callable[[PartitionKey, bool], None],
        turn_ended: Callable[[list[PartitionKey]], None],
    ) -> None:
        """`open_partition(key, is_new)` opens one; `turn_ended` gets the keys of a turn."""
        self._clock = clock
        self._open = open_partition
        self._turn_ended = turn_ended
        self._led: dict[PartitionKey, bool] = {}
        """By partition, whether it is new; the same in `_followed`."""
        self._followed: dict[PartitionKey, bool] = {}
        self._left = 0
        self._deadline_ms = 0
        self._is_scheduled = False
        self._is_closed = False
        self._finished: list[asyncio.Future[None]] = []

    def __len__(self) -> int:
        return len(self._led) + len(self._followed)

    def __contains__(self, key: PartitionKey) -> bool:
        return key in self._led or key in self._followed

    def take_turn(self) -> bool:
        """Return whether one more log may be made now; it counts as made."""
        if self._is_closed:
            return False
        if not self._is_scheduled:
            self._begin()
            self._schedule()
        if self._left <= 0 or self._clock.monotonic_ms() >= self._deadline_ms:
            return False
        self._left -= 1
        return True

    def wait(self, key: PartitionKey, *, is_new: bool, is_led: bool) -> None:
        """Open a partition in one of the next turns; who waits already may change sides."""
        known = self.forget(key)
        if self._is_closed:
            return
        (self._led if is_led else self._followed)[key] = is_new if known is None else known
        self._schedule()

    def forget(self, key: PartitionKey) -> bool | None:
        """The partition is not to be opened any more; whether it was new, None if unknown."""
        is_new = self._led.pop(key, None)
        return self._followed.pop(key, None) if is_new is None else is_new

    async def finished(self) -> None:
        """Return once nothing waits."""
        while len(self):
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._finished.append(waiter)
            await waiter

    def close(self) -> None:
        """Open nothing more."""
        self._is_closed = True
        self._led.clear()
        self._followed.clear()
        self._wake()

    def _begin(self) -> None:
        self._left = LOGS_PER_TURN_MAX
        self._deadline_ms = self._clock.monotonic_ms() + TURN_MAX_MS

    def _schedule(self) -> None:
        if not self._is_scheduled:
            self._is_scheduled = True
            asyncio.get_running_loop().call_soon(self._turn)

    def _turn(self) -> None:
        self._is_scheduled = False
        opened: list[PartitionKey] = []
        if len(self):
            self._begin()
            self._schedule()
            while len(self) and self._left > 0 and self._clock.monotonic_ms() < self._deadline_ms:
                waiting = self._led or self._followed
                key = next(iter(waiting))
                is_new = waiting.pop(key)
                self._open(key, is_new)
                opened.append(key)
        if not len(self):
            self._wake()
        if opened:
            self._turn_ended(opened)

    def _wake(self) -> None:
        waiters, self._finished = self._finished, []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)
