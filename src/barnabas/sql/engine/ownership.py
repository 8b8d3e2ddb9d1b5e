"""Which server of a service runs which query.

Servers of one service are members of a consumer group, whose topic has a partition for each slot;
no record is ever in it. A query has a slot; who is assigned the slot's partition runs the query.
So the group's protocol decides, and a slot has no second owner before the first one has given it
back or was taken for dead.

A query's slot follows from how many queries the command log had before it, which all servers agree
on. The numbers are spread so that servers which have neighbouring slots share any few queries.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from dataclasses import dataclass

SLOTS = 32
"""So many servers of a service can have queries. It is fixed, as partitions of a topic are."""
_BITS = SLOTS.bit_length() - 1
ALL_SLOTS = frozenset(range(SLOTS))


def slot_of(number: int) -> int:
    """The slot of the query with that number: its low bits in reverse order."""
    slot = 0
    for bit in range(_BITS):
        slot |= (number >> bit & 1) << (_BITS - 1 - bit)
    return slot


def slot_of_name(name: str) -> int:
    """The slot of what is not in the command log: all servers agree on its name."""
    return zlib.crc32(name.encode()) % SLOTS


@dataclass(frozen=True)
class Change:
    """A change of a server's slots: it stops queries of lost ones, and starts those of new ones."""

    lost: frozenset[int] = frozenset()
    won: frozenset[int] = frozenset()


class Slots:
    """The slots that a server has."""

    def __init__(self, owned: Iterable[int] = ()) -> None:
        self.owned = frozenset(owned)

    def change_to(self, owned: Iterable[int]) -> Change:
        """Have these from now on."""
        new = frozenset(owned)
        change = Change(self.owned - new, new - self.owned)
        self.owned = new
        return change


class Lease:
    """The time for which a server may trust that its slots are still its own.

    A process that stood still for longer than the group waits for a member may have lost them
    without having heard of it. `renew` is called all the time; a gap between two calls ends the
    lease until the server has rejoined. Times are of a clock that goes on while the process
    stands still.
    """

    def __init__(self, timeout_s: float, now_s: float) -> None:
        self._timeout_s = timeout_s
        self._renewed_s = now_s
        self._is_lost = False

    def renew(self, now_s: float) -> bool:
        """Return whether it is held, still."""
        if self.is_held(now_s):
            self._renewed_s = now_s
            return True
        self._is_lost = True
        return False

    def is_held(self, now_s: float) -> bool:
        """Return whether results may be written."""
        return not self._is_lost and now_s - self._renewed_s < self._timeout_s

    def begin(self, now_s: float) -> None:
        """Hold it again: the server has given up all its slots and rejoins."""
        self._is_lost = False
        self._renewed_s = now_s
