"""Replayed records create, change and delete groups of each kind."""

from typing import Any

import pytest

from barnabas.node.coordinator.decision import CoordinatorRecord
from barnabas.node.coordinator.group.classic.group import ClassicGroup
from barnabas.node.coordinator.group.modern.group import ModernGroup
from barnabas.node.coordinator.group.records import RECORD_TYPES
from barnabas.node.coordinator.group.registry import GroupRegistry
from barnabas.node.coordinator.group.shard import MODERN_KINDS, REPLAYS, replay
from barnabas.node.coordinator.group.step import GroupTimers, TimerKey, TimerKind
from barnabas.protocol.messages.group_records import LegacyOffsetCommitKey, OffsetCommitKey

Kind = type[ModernGroup[Any, Any]]

VALUES = dict(RECORD_TYPES.values())
of_each_kind = pytest.mark.parametrize("kind", MODERN_KINDS, ids=lambda kind: kind.group_type)


def member_record(kind: Kind) -> CoordinatorRecord:
    key = kind.records.member_key
    return CoordinatorRecord(key(group_id="g", member_id="m"), VALUES[key]())


def test_each_record_but_those_of_offsets_belongs_to_one_kind() -> None:
    of_groups = VALUES.keys() - {OffsetCommitKey, LegacyOffsetCommitKey}
    assert REPLAYS.keys() == of_groups
    assert sum(len(kind.replays) for kind in MODERN_KINDS) == len(of_groups) - 1


@of_each_kind
def test_tombstones_alone_make_no_group(kind: Kind) -> None:
    groups = GroupRegistry(GroupTimers())
    for record in kind("g").tombstones():
        replay(groups, record)
    assert groups.get("g") is None


@of_each_kind
def test_a_first_record_makes_the_group_and_tombstones_end_it(kind: Kind) -> None:
    timers = GroupTimers()
    groups = GroupRegistry(timers)
    replay(groups, member_record(kind))
    group = groups.get_of(kind, "g")
    assert group is not None
    timers.schedule(TimerKey(TimerKind.MODERN_SESSION, "g", "m"), 1)
    tombstones = group.tombstones()
    of_member = [record for record in tombstones if hasattr(record.key, "member_id")]
    for record in of_member:
        replay(groups, record)
    assert not group.members
    groups.cancel_ended()
    assert not len(timers)
    for record in tombstones:
        replay(groups, record)
    assert groups.get("g") is None


@of_each_kind
def test_a_member_that_ends_and_comes_back_in_one_step_keeps_its_timers(kind: Kind) -> None:
    timers = GroupTimers()
    groups = GroupRegistry(timers)
    replay(groups, member_record(kind))
    key = TimerKey(TimerKind.MODERN_SESSION, "g", "m")
    timers.schedule(key, 1)  # a handler sets timers before its records are replayed
    for record in kind.records.member_tombstones("g", "m"):
        replay(groups, record)
    replay(groups, member_record(kind))
    groups.cancel_ended()
    assert key in timers


@of_each_kind
def test_a_record_of_another_kind_takes_the_groups_place(kind: Kind) -> None:
    timers = GroupTimers()
    groups = GroupRegistry(timers)
    former = ClassicGroup("g")
    groups.put(former)
    timers.schedule(TimerKey(TimerKind.JOIN, "g"), 1)
    replay(groups, member_record(kind))
    assert groups.get_of(kind, "g") is not None
    assert not len(timers)
    assert former.state == "Dead"


def test_a_group_that_takes_anothers_place_leaves_nobody_using_it() -> None:
    groups = GroupRegistry(GroupTimers())
    former = ClassicGroup("g")
    groups.put(former)
    groups.put(ClassicGroup("g"))
    assert former.state == "Dead"
