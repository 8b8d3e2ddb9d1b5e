"""Planted defects of share groups: who has which record, what is kept of that, and when it ends."""

from dataclasses import replace
from typing import Any

from barnabas.node.coordinator.share.persister_client import CoordinatorPersister
from barnabas.node.loop.promise import Promise
from barnabas.node.share.core.partition import SharePartition
from barnabas.node.share.core.spans import Span
from barnabas.node.share.core.states import RecordState
from barnabas.node.share.share_partition_host import HostedSharePartition
from barnabas.protocol.errors import ErrorCode
from sim.planting import Mutation, Patch

FREE = {RecordState.AVAILABLE, RecordState.ACQUIRED}


def _answered_before_kept(patch: Patch) -> None:
    write = HostedSharePartition._write

    def write_later(self: Any, change: Any) -> Promise[ErrorCode]:
        write(self, change)
        answer: Promise[ErrorCode] = Promise()
        answer.settle(ErrorCode.NONE)
        return answer

    patch.set(HostedSharePartition, "_write", write_later)


def _holders_are_ignored(patch: Patch) -> None:
    patch.set(
        Span,
        "is_available",
        property(lambda self: self.state in FREE and self.change is None),
    )


def _anybody_acknowledges(patch: Patch) -> None:
    refusal = Span.refusal

    def refuse_what_is_free(self: Any, member: str) -> Any:
        return refusal(self, self.member or member)

    patch.set(Span, "refusal", refuse_what_is_free)


def _locks_stay(patch: Patch) -> None:
    give_back = SharePartition._give_back

    def give_back_what_is_said(self: Any, *args: Any, is_final: bool) -> None:
        if not is_final:
            give_back(self, *args, is_final=False)

    patch.set(SharePartition, "_give_back", give_back_what_is_said)


def _counts_are_forgotten(patch: Patch) -> None:
    read = CoordinatorPersister.read

    async def read_without_counts(self: Any, *place: Any) -> Any:
        kept = await read(self, *place)
        batches = tuple(replace(batch, delivery_count=0) for batch in kept.batches)
        return replace(kept, batches=batches)

    patch.set(CoordinatorPersister, "read", read_without_counts)


def _what_was_under_way_is_forgotten(patch: Patch) -> None:
    patch.set(SharePartition, "is_gap_window_open", property(lambda self: False))


def _limit_is_ignored(patch: Patch) -> None:
    move = Span.move

    def move_without_limit(self: Any, state: Any, delivery_count_max: int) -> None:
        move(self, state, 1 << 30)

    patch.set(Span, "move", move_without_limit)


SHARE_MUTATIONS = [
    Mutation(
        "share acknowledgements are answered before they are stored",
        "a member's acknowledgements are stored before they are answered",
        _answered_before_kept,
        40,
        kinds=("chase", "kill"),
        workload="shares",
    ),
    Mutation(
        "holders are ignored",
        "a record that a member holds is delivered to no other",
        _holders_are_ignored,
        10,
        workload="shares",
    ),
    Mutation(
        "anybody acknowledges",
        "only the holder of a record may acknowledge it",
        _anybody_acknowledges,
        20,
        workload="shares",
    ),
    Mutation(
        "locks never expire",
        "a lock expires after its time",
        _locks_stay,
        10,
        workload="shares",
    ),
    Mutation(
        "delivery counts are forgotten",
        "a new leader continues the delivery counts",
        _counts_are_forgotten,
        20,
        workload="shares",
    ),
    Mutation(
        "the delivery limit is ignored",
        "a record that has reached the delivery limit is archived",
        _limit_is_ignored,
        10,
        workload="shares",
    ),
    Mutation(
        "records in flight are forgotten",
        "records in flight at a former leader are delivered again",
        _what_was_under_way_is_forgotten,
        20,
        workload="shares",
    ),
]
