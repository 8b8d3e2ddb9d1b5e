"""The random histories find what they are there for: a controller broken on purpose, each way.

Each defect must be noticed, within the stated examples, by a check that it is named with.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from cluster_history import ClusterHistory
from hypothesis import Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from barnabas.node.metadata import image, merging, replay
from barnabas.node.metadata.controller import (
    alter_partition,
    brokers,
    config_changes,
    elections,
    leadership,
    partition_change,
    reassignment,
)
from barnabas.node.metadata.controller.partition_change import _ChangeBuilder
from barnabas.node.metadata.image import PartitionImage
from barnabas.protocol.errors import ErrorCode

EXAMPLES_MAX = 4000
Patch = pytest.MonkeyPatch


def never_completes(patch: Patch) -> None:
    patch.setattr(_ChangeBuilder, "_complete_reassignment", lambda self: None)


def completes_before_in_sync(patch: Patch) -> None:
    def complete(self: Any) -> None:
        isr = tuple(replica for replica in self.isr if replica not in self.removing)
        if isr:
            self.replicas = tuple(r for r in self.replicas if r not in self.removing)
            self.isr, self.removing, self.adding = isr, (), ()

    patch.setattr(_ChangeBuilder, "_complete_reassignment", complete)


def keeps_those_that_a_newer_target_keeps(patch: Patch) -> None:
    """As Apache Kafka does, which leaves `removing` as it was where the new one is empty."""
    move = reassignment._Reassigner._move

    def merged(self: Any, located: Any, target: list[int]) -> Any:
        change = move(self, located, target)
        if isinstance(change, partition_change.PartitionChange):
            change.removing = change.removing or None
            change.adding = change.adding or None
        return change

    patch.setattr(reassignment._Reassigner, "_move", merged)


def cancels_to_the_target(patch: Patch) -> None:
    def stays(partition: PartitionImage) -> tuple[int, ...]:
        return tuple(r for r in partition.replicas if r not in partition.removing)

    patch.setattr(reassignment, "_original_replicas", stays)


def fencing_leaves_the_isr(patch: Patch) -> None:
    patch.setattr(brokers, "leader_and_isr_records", lambda state, partitions, **brokers: [])


def accepts_any_isr(patch: Patch) -> None:
    patch.setattr(alter_partition, "_check", lambda *_: ErrorCode.NONE)


def forgets_the_last_in_sync(patch: Patch) -> None:
    def write(self: Any) -> None:
        if self.record.isr is None and self.isr != self.partition.isr:
            self.record.isr = list(self.isr)

    patch.setattr(_ChangeBuilder, "_write_isr", write)


def trusts_who_crashed(patch: Patch) -> None:
    records = brokers._end_of_incarnation_records
    patch.setattr(
        brokers,
        "_end_of_incarnation_records",
        lambda state, broker_id, *, is_clean: records(state, broker_id, is_clean=True),
    )


def prefers_those_out_of_sync(patch: Patch) -> None:
    find = _ChangeBuilder._find_leader

    def first(self: Any) -> int:
        if self.change.election is partition_change.Election.PREFERRED:
            return int(self.replicas[0])
        return find(self)

    patch.setattr(_ChangeBuilder, "_find_leader", first)


def keeps_the_leader_epoch_of_those_who_leave(patch: Patch) -> None:
    patch.setattr(_ChangeBuilder, "_keep_epoch_rules", lambda self: None)


def keeps_the_partition_epoch(patch: Patch) -> None:
    merge = merging.merge_partition_change

    def merged(partition: PartitionImage, record: Any) -> PartitionImage:
        return replace(merge(partition, record), partition_epoch=partition.partition_epoch)

    for module in (replay, alter_partition, reassignment):
        patch.setattr(module, "merge_partition_change", merged)


def index_forgets_nothing(patch: Patch) -> None:
    patch.setattr(image.TopicsIndex, "_forget", lambda *_: None)


def waits_though_allowed_to_lose(patch: Patch) -> None:
    patch.setattr(config_changes, "unclean_election_records", lambda *_: [])


def balances_nothing(patch: Patch) -> None:
    patch.setattr(elections, "_round", lambda *_: None)


def unfences_without_looking_for_who_waits(patch: Patch) -> None:
    patch.setattr(brokers, "partitions_without_leader", lambda state: iter(()))


def keeps_the_eligible_above_the_minimum(patch: Patch) -> None:
    def find(self: Any) -> None:
        self.elr = tuple(dict.fromkeys((*self.elr, *self.partition.isr)))

    patch.setattr(_ChangeBuilder, "_find_eligible_replicas", find)


def lets_the_leaver_lead(patch: Patch) -> None:
    """Fencing takes the broker out of the ISR, but not out of those who may lead uncleanly."""
    patch.setattr(
        leadership.ChangeRules,
        "_may_lead",
        lambda self, partition, replica: replica in self._brokers,
    )


DEFECTS: dict[Callable[[Patch], None], str] = {
    never_completes: "reassignments_end_with_exactly_their_target",
    completes_before_in_sync: "reassignments_end_with_exactly_their_target",
    keeps_those_that_a_newer_target_keeps: (
        "partitions_make_sense reassignments_end_with_exactly_their_target"
    ),
    cancels_to_the_target: "reassignments_end_with_exactly_their_target",
    fencing_leaves_the_isr: "partitions_make_sense register",
    accepts_any_isr: "partitions_make_sense",
    forgets_the_last_in_sync: "partitions_make_sense",
    trusts_who_crashed: "register",
    prefers_those_out_of_sync: "partitions_make_sense",
    keeps_the_leader_epoch_of_those_who_leave: "epochs_rise_with_every_change",
    keeps_the_partition_epoch: "epochs_rise_with_every_change",
    index_forgets_nothing: "the_index_is_up_to_date",
    waits_though_allowed_to_lose: "nobody_waits_who_would_rather_lose",
    balances_nothing: "balance",
    unfences_without_looking_for_who_waits: "live_eligible_replicas_lead",
    keeps_the_eligible_above_the_minimum: "partitions_make_sense register",
    lets_the_leaver_lead: "partitions_make_sense",
}


SLOW = {
    accepts_any_isr,
    balances_nothing,
    cancels_to_the_target,
    keeps_those_that_a_newer_target_keeps,
    waits_though_allowed_to_lose,
}
"""Found by late examples only: for `make test-slow`."""


@pytest.mark.parametrize(
    "defect",
    [
        pytest.param(
            defect,
            id=defect.__name__,
            marks=[pytest.mark.slow] if defect in SLOW else [],
        )
        for defect in DEFECTS
    ],
)
def test_a_defect_is_found(monkeypatch: Patch, defect: Callable[[Patch], None]) -> None:
    defect(monkeypatch)
    with pytest.raises(Exception) as caught:  # noqa: PT011  # which one, the names below say
        run_state_machine_as_test(
            ClusterHistory,
            settings=settings(
                max_examples=EXAMPLES_MAX,
                stateful_step_count=50,
                deadline=None,
                database=None,
                derandomize=True,
                phases=[Phase.generate],
            ),
        )
    names = [entry.name for entry in caught.traceback]
    assert any(check in names for check in DEFECTS[defect].split()), names
