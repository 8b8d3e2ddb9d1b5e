"""JoinGroup and SyncGroup, case by case."""

import pytest

from barnabas.node.coordinator.group.classic.states import GroupState
from barnabas.protocol.errors import ErrorCode
from support.group_world import GroupWorld, subscription


def test_a_member_without_id_is_told_to_come_back_with_one():
    world = GroupWorld()
    call = world.join("a", version=4)
    assert call.error is ErrorCode.MEMBER_ID_REQUIRED
    assert call.response.member_id.startswith("a-")
    assert world.group().pending_joins == {call.response.member_id}
    assert world.group().state is GroupState.EMPTY


def test_before_version_4_a_member_joins_at_once():
    world = GroupWorld()
    call = world.join("a", version=3)
    assert not call.is_done
    world.clock.advance(3_000)
    assert call.response.generation_id == 1
    assert call.response.leader == call.response.member_id


def test_the_first_rebalance_waits_longer_for_each_new_member():
    world = GroupWorld()
    _, first = world.join_fully("a")
    world.clock.advance(2_999)
    _, second = world.join_fully("b")
    world.clock.advance(1)
    assert not first.is_done
    world.clock.advance(2_999)
    assert not first.is_done
    world.clock.advance(1)
    assert first.response.generation_id == second.response.generation_id == 1


def test_the_first_rebalance_ends_with_the_rebalance_timeout():
    world = GroupWorld()
    calls = [world.join_fully("m0", rebalance_timeout_ms=7_000)[1]]
    for index in range(1, 8):
        world.clock.advance(999)
        calls.append(world.join_fully(f"m{index}", rebalance_timeout_ms=7_000)[1])
    world.clock.advance(7_000 - 7 * 999 - 1)
    assert not calls[0].is_done
    world.clock.advance(1)
    assert {call.response.generation_id for call in calls} == {1}


def test_only_the_leader_gets_the_members():
    world = GroupWorld()
    a, first = world.join_fully("a")
    b, second = world.join_fully("b")
    world.clock.advance(6_000)
    assert [member.member_id for member in first.response.members] == [a, b]
    assert first.response.members[1].metadata == subscription("t")
    assert second.response.members == []
    assert second.response.leader == a


@pytest.mark.parametrize(
    ("votes", "expected"),
    [
        ([("x", "y"), ("x", "y")], "x"),
        ([("x", "y"), ("y", "x"), ("y", "x")], "y"),
        ([("x", "y"), ("y",)], "y"),
        ([("x", "y"), ("y", "x")], "x"),
        ([("x", "y", "z"), ("z", "y"), ("y", "z")], "y"),
    ],
)
def test_the_protocol_that_all_support_and_most_prefer(votes, expected):
    world = GroupWorld()
    calls = [world.join_fully(f"m{index}", protocols=names)[1] for index, names in enumerate(votes)]
    world.clock.advance(9_000)
    assert {call.response.protocol_name for call in calls} == {expected}


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"group_id": ""}, ErrorCode.INVALID_GROUP_ID),
        ({"session_timeout_ms": 5_999}, ErrorCode.INVALID_SESSION_TIMEOUT),
        ({"session_timeout_ms": 1_800_001}, ErrorCode.INVALID_SESSION_TIMEOUT),
        ({"protocols": ()}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"protocol_type": ""}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"member_id": "unknown"}, ErrorCode.UNKNOWN_MEMBER_ID),
    ],
)
def test_what_is_refused_creates_no_group(options, expected):
    world = GroupWorld()
    assert world.join("a", **options).error is expected
    assert len(world.shard.groups) == 0
    assert world.log.records() == []


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"protocols": ("other",)}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"protocol_type": "connect"}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"member_id": "unknown"}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"member_id": "unknown", "instance_id": "i"}, ErrorCode.UNKNOWN_MEMBER_ID),
    ],
)
def test_what_a_stable_group_refuses(options, expected):
    world = GroupWorld()
    world.stable_group("a")
    assert world.join("b", **options).error is expected
    assert world.group().state is GroupState.STABLE


def test_a_follower_that_joins_a_stable_group_again_changes_nothing():
    world = GroupWorld()
    _, b = world.stable_group("a", "b")
    call = world.join("b", b)
    assert call.response.generation_id == 1
    assert call.response.members == []
    assert world.group().state is GroupState.STABLE
    assert world.sync(b, 1).response.assignment == b.encode()


def test_a_leader_that_joins_again_makes_a_rebalance():
    world = GroupWorld()
    a, b = world.stable_group("a", "b")
    call = world.join("a", a)
    assert not call.is_done
    assert world.heartbeat(b, 1).error is ErrorCode.REBALANCE_IN_PROGRESS
    world.join("b", b)
    assert call.response.generation_id == 2


def test_a_follower_with_new_metadata_makes_a_rebalance():
    world = GroupWorld()
    _, b = world.stable_group("a", "b")
    assert not world.join("b", b, topics=("t", "u")).is_done
    assert world.group().state is GroupState.PREPARING_REBALANCE


def test_a_lost_join_answer_can_be_asked_for_again():
    world = GroupWorld()
    a, first = world.join_fully("a")
    world.clock.advance(3_000)
    again = world.join("a", a)
    assert again.response == first.response
    assert world.group().state is GroupState.COMPLETING_REBALANCE


def test_the_same_member_joining_twice_has_its_first_request_answered():
    world = GroupWorld()
    world.stable_group("a", "b")
    c, first = world.join_fully("c")
    second = world.join("c", c)
    assert first.error is ErrorCode.REBALANCE_IN_PROGRESS
    assert not second.is_done
    assert world.group().awaiting_join_count == 1


def test_who_does_not_join_again_in_time_is_removed():
    world = GroupWorld()
    a, b = world.stable_group("a", "b", session_timeout_ms=60_000)
    call = world.join("a", a)
    world.clock.advance(29_999)
    assert not call.is_done
    world.clock.advance(1)
    assert [member.member_id for member in call.response.members] == [a]
    assert world.heartbeat(b, 1).error is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_pending_member_is_waited_for_until_its_session_ends():
    world = GroupWorld()
    a, *_ = world.stable_group("a", session_timeout_ms=60_000)
    pending = world.join("b", session_timeout_ms=6_000)
    call = world.join("a", a)
    assert not call.is_done
    world.clock.advance(6_000)
    assert call.response.generation_id == 2
    late = world.join("b", pending.response.member_id)
    assert late.error is ErrorCode.UNKNOWN_MEMBER_ID


def test_group_max_size():
    world = GroupWorld(group_max_size=2)
    a, b = world.stable_group("a", "b")
    assert world.join("c").error is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert world.join("b", b).error is ErrorCode.NONE
    world.join("a", a)
    world.join("c")
    assert world.join("b", b).is_done is False


def test_above_a_lowered_limit_the_last_to_come_back_leaves():
    world = GroupWorld()
    members = world.stable_group("a", "b", "c")
    small = GroupWorld(group_max_size=2)
    small.log = world.log
    small.crash()
    assert small.group().state is GroupState.PREPARING_REBALANCE
    calls = [small.join(name, member) for name, member in zip("abc", members, strict=True)]
    assert calls[2].error is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert calls[0].response.generation_id == 2
    assert len(calls[0].response.members) == 2


# SyncGroup


def test_followers_wait_for_the_leader():
    world = GroupWorld()
    a, first = world.join_fully("a")
    b, _ = world.join_fully("b")
    world.clock.advance(6_000)
    follower = world.sync(b, 1)
    assert not follower.is_done
    assert first.response.leader == a
    leader = world.sync(a, 1, {a: b"one", b: b"two"})
    assert leader.response.assignment == b"one"
    assert follower.response.assignment == b"two"
    assert follower.response.protocol_name == "range"
    assert world.group().state is GroupState.STABLE


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"generation_id": 2}, ErrorCode.ILLEGAL_GENERATION),
        ({"generation_id": 0}, ErrorCode.ILLEGAL_GENERATION),
        ({"member_id": "unknown"}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"instance_id": "unknown"}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"protocol_type": "connect"}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"protocol_name": "other"}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"group_id": "other"}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"group_id": ""}, ErrorCode.INVALID_GROUP_ID),
        ({}, ErrorCode.NONE),
    ],
)
def test_sync_errors(change, expected):
    world = GroupWorld()
    (a,) = world.stable_group("a")
    options = {"member_id": a, "generation_id": 1, **change}
    member_id, generation_id = options.pop("member_id"), options.pop("generation_id")
    assert world.sync(member_id, generation_id, **options).error is expected


def test_sync_while_members_join_sends_back_to_join():
    world = GroupWorld()
    a, b = world.stable_group("a", "b")
    world.join("a", a)
    assert world.sync(b, 1).error is ErrorCode.REBALANCE_IN_PROGRESS


def test_a_join_while_others_sync_sends_them_back_to_join():
    world = GroupWorld()
    world.join_fully("a")
    b, _ = world.join_fully("b")
    world.clock.advance(6_000)
    waiting = world.sync(b, 1)
    world.join_fully("c")
    assert waiting.error is ErrorCode.REBALANCE_IN_PROGRESS


def test_who_does_not_sync_in_time_is_removed():
    world = GroupWorld()
    a, _ = world.join_fully("a", rebalance_timeout_ms=20_000, session_timeout_ms=60_000)
    b, _ = world.join_fully("b", rebalance_timeout_ms=20_000, session_timeout_ms=60_000)
    world.clock.advance(6_000)
    call = world.sync(a, 1, {a: b"x"})
    assert call.error is ErrorCode.NONE
    world.clock.advance(20_000)
    assert world.heartbeat(b, 1).error is ErrorCode.UNKNOWN_MEMBER_ID
    assert world.heartbeat(a, 1).error is ErrorCode.REBALANCE_IN_PROGRESS
    assert world.join("a", a).response.generation_id == 2


def test_a_leader_that_does_not_sync_leaves_a_new_leader():
    world = GroupWorld()
    a, _ = world.join_fully("a", rebalance_timeout_ms=20_000, session_timeout_ms=60_000)
    b, _ = world.join_fully("b", rebalance_timeout_ms=20_000, session_timeout_ms=60_000)
    world.clock.advance(6_000)
    waiting = world.sync(b, 1)
    world.clock.advance(20_000)
    assert waiting.error is ErrorCode.REBALANCE_IN_PROGRESS
    call = world.join("b", b)
    assert call.response.leader == b
    assert world.heartbeat(a, 2).error is ErrorCode.UNKNOWN_MEMBER_ID


def test_members_that_the_leader_forgot_get_nothing():
    world = GroupWorld()
    a, _ = world.join_fully("a")
    b, _ = world.join_fully("b")
    world.clock.advance(6_000)
    world.sync(a, 1, {a: b"x", "stranger": b"y"})
    assert world.sync(b, 1).response.assignment == b""
    assert set(world.group().members) == {a, b}
