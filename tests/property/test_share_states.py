"""Share states under random histories, held against a model that knows every record by itself."""

from collections.abc import Sequence
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
)

from barnabas.node.coordinator.share.batches import combine
from barnabas.node.coordinator.share.state import DONE, Failure, ShareState, StateBatch
from barnabas.protocol.errors import ErrorCode
from support.effort import examples
from support.group_world import Call
from support.share_world import ShareWorld, key

OFFSETS = 24
Records = dict[int, tuple[int, int]]
"""Delivery count and state by offset."""


@st.composite
def batches(draw: st.DrawFn) -> list[StateBatch]:
    found = []
    for _ in range(draw(st.integers(0, 4))):
        first = draw(st.integers(0, OFFSETS))
        last = first + draw(st.integers(0, 6))
        state, count = draw(st.sampled_from((0, 2, 4))), draw(st.integers(1, 3))
        found.append(StateBatch(first, last, state, count))
    return found


def lay(records: Records, changes: Sequence[StateBatch], start_offset: int) -> Records:
    """Return the state of each record after `changes`."""
    known = dict(records)
    for batch in changes:
        for offset in range(batch.first_offset, batch.last_offset + 1):
            rank = batch.delivery_count, batch.delivery_state
            known[offset] = max(known.get(offset, rank), rank)
    return {offset: rank for offset, rank in known.items() if offset >= start_offset}


def spelt_out(kept: Sequence[StateBatch]) -> Records:
    """Every record of batches that must be in order and apart."""
    records: Records = {}
    end = -1
    for batch in kept:
        assert end < batch.first_offset <= batch.last_offset, kept
        end = batch.last_offset
        rank = batch.delivery_count, batch.delivery_state
        assert records.get(batch.first_offset - 1) != rank, f"{kept} could be shorter"
        records.update(dict.fromkeys(range(batch.first_offset, end + 1), rank))
    return records


@given(st.lists(st.tuples(batches(), st.integers(-1, OFFSETS)), max_size=6))
@settings(max_examples=examples(23))
def test_batches_are_joined_as_records_would_be(rounds: list[tuple[list[StateBatch], int]]) -> None:
    kept: tuple[StateBatch, ...] = ()
    records: Records = {}
    start_offset = -1
    for changes, offset in rounds:
        start_offset = max(start_offset, offset)
        kept = combine(kept, changes, start_offset)
        records = lay(records, changes, start_offset)
        assert spelt_out(kept) == records


class ShareStates(RuleBasedStateMachine):
    """One coordinator that is moved, pruned and made to forget what was not committed."""

    def __init__(self) -> None:
        super().__init__()
        self.world = ShareWorld(updates_per_snapshot=2, cold_snapshot_interval_ms=1000)
        self.model: dict[int, tuple[int, int, int, Records]] = {}
        """By partition: state epoch, highest leader epoch, start offset, records."""

    @initialize()
    def begin(self) -> None:
        self.initialize_place(0, 1, -1)

    @rule(place=st.integers(0, 2), epoch=st.integers(0, 4), offset=st.integers(-1, OFFSETS))
    def initialize_place(self, place: int, epoch: int, offset: int) -> None:
        outcome: Any = Call(self.world.coordinator.initialize(key(place), epoch, offset)).response
        known = self.model.get(place)
        if known is not None and epoch < known[0]:
            assert isinstance(outcome, Failure)
            assert outcome.error is ErrorCode.FENCED_STATE_EPOCH
            return
        assert outcome is DONE
        if known is not None and epoch == known[0] and offset == -1:
            return  # it has begun in that epoch
        self.model[place] = (epoch, 0 if known is None else known[1], offset, {})

    @rule(place=st.integers(0, 2), leader_epoch=st.integers(-1, 4))
    def read(self, place: int, leader_epoch: int) -> None:
        outcome: Any = Call(self.world.coordinator.read(key(place), leader_epoch)).response
        known = self.model.get(place)
        if known is None:
            assert isinstance(outcome, Failure)
            assert outcome.error is ErrorCode.INVALID_REQUEST
        elif -1 < leader_epoch < known[1]:
            assert isinstance(outcome, Failure)
            assert outcome.error is ErrorCode.FENCED_LEADER_EPOCH
        else:
            assert isinstance(outcome, ShareState)
            assert (outcome.state_epoch, outcome.start_offset) == (known[0], known[2])
            assert spelt_out(outcome.batches) == known[3]
            self.model[place] = (known[0], max(known[1], leader_epoch), *known[2:])

    @rule(
        place=st.integers(0, 2),
        epochs=st.tuples(st.integers(-1, 4), st.integers(-1, 4)),
        offset=st.integers(-1, OFFSETS),
        changes=batches(),
    )
    def write(
        self, place: int, epochs: tuple[int, int], offset: int, changes: list[StateBatch]
    ) -> None:
        outcome: Any = Call(
            self.world.coordinator.write(key(place), epochs, offset, len(changes), changes)
        ).response
        known = self.model.get(place)
        if known is None:
            assert isinstance(outcome, Failure)
            assert outcome.error is ErrorCode.INVALID_REQUEST
        elif -1 < epochs[1] < known[1]:
            assert isinstance(outcome, Failure)
            assert outcome.error is ErrorCode.FENCED_LEADER_EPOCH
        elif -1 < epochs[0] < known[0]:
            assert isinstance(outcome, Failure)
            assert outcome.error is ErrorCode.FENCED_STATE_EPOCH
        else:
            assert outcome is DONE
            start = max(known[2], offset)
            self.model[place] = (known[0], known[1], start, lay(known[3], changes, start))

    @rule(place=st.integers(0, 2))
    def delete(self, place: int) -> None:
        assert Call(self.world.coordinator.delete(key(place))).response is DONE
        self.model.pop(place, None)

    @rule()
    def prune(self) -> None:
        self.world.coordinator.prune()

    @rule()
    def snapshot_cold(self) -> None:
        self.world.clock.advance(500)
        self.world.coordinator.snapshot_cold()

    @rule()
    def move(self) -> None:
        before = {place: entry.kept for place, entry in self.world.shard.entries.items()}
        self.world.move()
        assert {place: entry.kept for place, entry in self.world.shard.entries.items()} == before
        for place, (epoch, _, offset, records) in self.model.items():
            # A fence that only pruned records knew of is gone; the last leader's is not.
            leader_epoch = self.world.shard.entries[key(place)].leader_epoch
            self.model[place] = (epoch, leader_epoch, offset, records)

    @invariant()
    def keeps_what_the_model_keeps(self) -> None:
        assert {place.partition for place in self.world.shard.entries} == set(self.model)
        for place, entry in self.world.shard.entries.items():
            state_epoch, leader_epoch, start_offset, records = self.model[place.partition]
            kept = entry.kept
            assert (kept.state_epoch, kept.start_offset) == (state_epoch, start_offset)
            assert entry.leader_epoch == leader_epoch >= kept.leader_epoch
            assert spelt_out(kept.batches) == records


TestShareStates = ShareStates.TestCase
TestShareStates.settings = settings(max_examples=examples(8), stateful_step_count=30, deadline=None)
