"""Names of partitions that Spark spreads evenly over its tasks.

Spark sends a group to the task `pmod(hash(group), tasks)`: groups 0 and 1 may well meet in
one of two tasks. So a partition is called by the first number whose hash falls where it should.
"""

from __future__ import annotations

from collections.abc import Sequence

_MASK = 0xFFFFFFFF


def labels(partitions: int, tasks: int) -> Sequence[int]:
    """A number for each partition, so that partition p runs in task p modulo `tasks`."""
    found: list[int] = []
    for partition in range(partitions):
        label = partition * 1_000_000
        while task_of(label, tasks) != partition % tasks:
            label += 1
        found.append(label)
    return found


def task_of(label: int, tasks: int) -> int:
    """Where Spark runs the group of an INT. Source: its Murmur3Hash with seed 42."""
    hashed = _murmur3(label)
    signed = hashed - (1 << 32) if hashed >> 31 else hashed
    return signed % tasks


def _murmur3(value: int) -> int:
    k = (value & _MASK) * 0xCC9E2D51 & _MASK
    k = _rotate(k, 15) * 0x1B873593 & _MASK
    h = _rotate(42 ^ k, 13) * 5 + 0xE6546B64 & _MASK
    h ^= 4
    h = (h ^ (h >> 16)) * 0x85EBCA6B & _MASK
    h = (h ^ (h >> 13)) * 0xC2B2AE35 & _MASK
    return h ^ (h >> 16)


def _rotate(value: int, by: int) -> int:
    return (value << by | value >> (32 - by)) & _MASK
