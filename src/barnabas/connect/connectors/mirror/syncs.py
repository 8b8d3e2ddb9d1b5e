"""Which offsets of source and target belong together: when to say so, and how to translate by it.

A task counts what it writes in runs of records whose offsets follow each other on both sides. A
sync is due at the start of each run, and each time the target is `offset.lag.max` records further.
The translator keeps 64 syncs of a partition, dense at its end and ever sparser before, so
that offsets long past are still translated, if less exactly. Source: OffsetSyncWriter,
OffsetSyncStore (Kafka 4.3, KIP-382, KAFKA-12468).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from barnabas.connect.connectors.base import TopicPartition
from barnabas.connect.connectors.mirror.records import OffsetSync

SYNCS_PER_PARTITION: Final = 64


@dataclass(slots=True)
class Run:
    """Records of one partition whose offsets follow each other, here and there."""

    upstream: int
    downstream: int
    count: int = 1


@dataclass(slots=True)
class Runs:
    """The last written sync of each of a source's partitions."""

    places: dict[TopicPartition, list[Run]] = field(default_factory=dict)

    def add(self, place: TopicPartition, upstream: int, downstream: int) -> None:
        """A record is written."""
        runs = self.places.get(place)
        if runs is None:
            self.places[place] = [Run(upstream, downstream)]
            return
        last = runs[-1]
        if upstream == last.upstream + last.count and downstream == last.downstream + last.count:
            last.count += 1
        else:
            runs.append(Run(upstream, downstream))


@dataclass(slots=True)
class _Written:
    upstream: int = -1
    downstream: int = -1
    synced: int = -1


class SyncPlan:
    """Says which syncs are due; those of the last records are held back until `promote`."""

    def __init__(self, lag_max: int) -> None:
        self._lag_max = lag_max
        self._states: dict[TopicPartition, _Written] = {}
        self._held: dict[TopicPartition, OffsetSync] = {}

    def add(self, runs: Runs) -> Iterator[OffsetSync]:
        """Records are written: yield the syncs that are due."""
        for place, found in runs.places.items():
            state = self._states.setdefault(place, _Written())
            for run in found:
                yield from self._run(place, state, run)

    def _run(self, place: TopicPartition, state: _Written, run: Run) -> Iterator[OffsetSync]:
        index = 0
        is_due = (
            state.synced == -1
            or run.upstream - state.upstream != 1
            or run.downstream < state.downstream
        )
        if not is_due:
            index = max(0, state.synced + 1 + self._lag_max - run.downstream)
        self._held.pop(place, None)
        last = -1
        while index < run.count:
            last = index
            state.synced = run.downstream + index
            yield OffsetSync(place, run.upstream + index, run.downstream + index)
            index += max(1, self._lag_max + 1)
        state.upstream = run.upstream + run.count - 1
        state.downstream = run.downstream + run.count - 1
        if last != run.count - 1:
            self._held[place] = OffsetSync(place, state.upstream, state.downstream)

    def promote(self) -> Sequence[OffsetSync]:
        """Return what was held back, so that quiet partitions are translated to their ends."""
        held = list(self._held.values())
        self._held.clear()
        return held


class OffsetTranslation:
    """Translates offsets of the source by the syncs that were read.

    Until `is_whole`, only the last sync of a partition counts if `only_last` says so: it is not
    known then how often records were written again.
    """

    def __init__(self, *, only_last: bool = True) -> None:
        self.only_last = only_last
        self.is_whole = False
        self._syncs: dict[TopicPartition, list[OffsetSync]] = {}

    def add(self, sync: OffsetSync) -> None:
        """A sync was read."""
        syncs = self._syncs.get(sync.place)
        is_lone = self.only_last and not self.is_whole
        if syncs is None or is_lone or sync.upstream < syncs[0].upstream:
            self._syncs[sync.place] = [sync] * SYNCS_PER_PARTITION
        else:
            self._syncs[sync.place] = _updated(syncs, sync)

    def translate(self, place: TopicPartition, upstream: int) -> int | None:
        """Return the target's offset: -1 for one too long ago, None if nothing is known."""
        syncs = self._syncs.get(place)
        if syncs is None or not self.is_whole:
            return None
        nearest = next((sync for sync in syncs if sync.upstream <= upstream), None)
        if nearest is None:
            return -1
        return nearest.downstream + (0 if nearest.upstream == upstream else 1)


def _updated(original: Sequence[OffsetSync], new: OffsetSync) -> list[OffsetSync]:
    """Return the syncs with a new first one.

    Between places i < j the source's offsets are at most 2^j - 2^i apart, and neighbours at least
    2^(i-2), or they are the same: an old sync moves on as far as both allow.
    """
    syncs = list(original)
    replacement, at = new, 0
    syncs[0] = new
    for current in range(1, SYNCS_PER_PARTITION):
        previous = current - 1
        while True:
            old = original[at]
            is_apart = _is_apart(syncs[previous], old, previous)
            after = current + 1
            is_apart_after = after >= SYNCS_PER_PARTITION or _is_apart(old, syncs[after], current)
            following = at + 1
            is_double = following < SYNCS_PER_PARTITION and old is original[following]
            is_taken = (
                _is_near(syncs[previous], old, previous, current) and is_apart and is_apart_after
            )
            if is_taken:
                replacement = old
            is_skipped = is_double or not is_apart
            if is_taken or is_skipped:
                at += 1
            if not (at < current and is_skipped):
                break
        if _is_near(syncs[previous], syncs[current], previous, current):
            break
        syncs[current] = replacement
    return syncs


def _is_near(first: OffsetSync, second: OffsetSync, i: int, j: int) -> bool:
    return first is second or first.upstream <= second.upstream + (1 << j) - (1 << i)


def _is_apart(first: OffsetSync, second: OffsetSync, i: int) -> bool:
    return first is second or first.upstream >= second.upstream + (1 << max(i - 2, 0))
