"""Joining what is kept of a share-partition's records with what has changed of them.

Where two batches say something about the same record, the one with the higher delivery count
counts, and of equal counts the one with the higher state: both only ever grow.
Source: Kafka's PersisterStateBatchCombiner. Not as there: equal neighbours are always joined; Kafka
leaves some apart, depending on the order in which it meets them.
"""

from bisect import bisect_left
from collections.abc import Iterable, Sequence

from barnabas.node.coordinator.share.state import UNINITIALIZED_OFFSET, StateBatch


def combine(
    current: Sequence[StateBatch], changes: Iterable[StateBatch], start_offset: int
) -> tuple[StateBatch, ...]:
    """Batches in order, none overlapping another, nothing before `start_offset` (-1: all).

    `current` must be in order and free of overlaps; `changes` may come in any order and overlap.
    """
    batches = list(current)
    for change in changes:
        _lay(batches, change)
    if start_offset != UNINITIALIZED_OFFSET:
        _cut(batches, start_offset)
    return tuple(batches)


def _lay(batches: list[StateBatch], change: StateBatch) -> None:
    """Lay one batch over those that it touches."""
    if change.last_offset < change.first_offset:
        return
    low = bisect_left(batches, change.first_offset - 1, key=_last_offset)
    high = low
    merged: list[StateBatch] = []
    position = change.first_offset
    """The first offset of `change` that is not laid yet."""
    while high < len(batches) and batches[high].first_offset <= change.last_offset + 1:
        old = batches[high]
        high += 1
        if position < old.first_offset:
            last_offset = min(old.first_offset - 1, change.last_offset)
            _append(merged, _part(change, position, last_offset))
            position = last_offset + 1
        first_shared = max(old.first_offset, change.first_offset)
        last_shared = min(old.last_offset, change.last_offset)
        if last_shared < first_shared:  # they only touch
            _append(merged, old)
            continue
        if old.first_offset < first_shared:
            _append(merged, _part(old, old.first_offset, first_shared - 1))
        _append(merged, _part(max(old, change, key=_rank), first_shared, last_shared))
        if old.last_offset > last_shared:
            _append(merged, _part(old, last_shared + 1, old.last_offset))
        position = last_shared + 1
    if position <= change.last_offset:
        _append(merged, _part(change, position, change.last_offset))
    batches[low:high] = merged


def _append(merged: list[StateBatch], batch: StateBatch) -> None:
    last = merged[-1] if merged else None
    if (
        last is not None
        and last.last_offset + 1 == batch.first_offset
        and _rank(last) == _rank(batch)
    ):
        merged[-1] = _part(last, last.first_offset, batch.last_offset)
    else:
        merged.append(batch)


def _cut(batches: list[StateBatch], start_offset: int) -> None:
    """Drop what lies before the start offset."""
    del batches[: bisect_left(batches, start_offset, key=_last_offset)]
    if batches and batches[0].first_offset < start_offset:
        batches[0] = _part(batches[0], start_offset, batches[0].last_offset)


def _last_offset(batch: StateBatch) -> int:
    return batch.last_offset


def _rank(batch: StateBatch) -> tuple[int, int]:
    return batch.delivery_count, batch.delivery_state


def _part(batch: StateBatch, first_offset: int, last_offset: int) -> StateBatch:
    if (batch.first_offset, batch.last_offset) == (first_offset, last_offset):
        return batch
    return StateBatch(first_offset, last_offset, batch.delivery_state, batch.delivery_count)
