"""Heartbeats, leaving, sessions and static members."""

import pytest

from barnabas.node.coordinator.group.classic.states import GroupState
from barnabas.protocol.errors import ErrorCode
from support.group_world import Call, GroupWorld

# Heartbeats and sessions


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({}, ErrorCode.NONE),
        ({"generation_id": 0}, ErrorCode.ILLEGAL_GENERATION),
        ({"generation_id": 2}, ErrorCode.ILLEGAL_GENERATION),
        ({"member_id": "unknown"}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"instance_id": "unknown"}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"group_id": "other"}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"group_id": ""}, ErrorCode.INVALID_GROUP_ID),
    ],
)
def test_heartbeat_errors(change, expected):
    world = GroupWorld()
    (a,) = world.stable_group("a")
    options = {"member_id": a, "generation_id": 1, **change}
    member_id, generation_id = options.pop("member_id"), options.pop("generation_id")
    assert world.heartbeat(member_id, generation_id, **options).error is expected


def test_heartbeats_keep_a_session_alive():
    world = GroupWorld()
    a, b = world.stable_group("a", "b")
    for _ in range(5):
        world.clock.advance(9_000)
        assert world.heartbeat(a, 1).error is ErrorCode.NONE
        assert world.heartbeat(b, 1).error is ErrorCode.NONE


def test_a_silent_member_is_removed_and_the_others_rebalance():
    world = GroupWorld()
    a, b = world.stable_group("a", "b")
    world.clock.advance(6_000)
    world.heartbeat(a, 1)
    world.clock.advance(4_000)
    assert world.heartbeat(a, 1).error is ErrorCode.REBALANCE_IN_PROGRESS
    assert world.heartbeat(b, 1).error is ErrorCode.UNKNOWN_MEMBER_ID


def test_commits_keep_a_session_alive():
    world = GroupWorld()
    (a,) = world.stable_group("a")
    for offset in range(5):
        world.clock.advance(9_000)
        assert world.commit_error({("t", 0): offset}, a, 1) is ErrorCode.NONE
    assert world.heartbeat(a, 1).error is ErrorCode.NONE


def test_a_member_that_waits_for_a_generation_need_not_send_heartbeats():
    world = GroupWorld()
    a, b = world.stable_group("a", "b", rebalance_timeout_ms=100_000, session_timeout_ms=10_000)
    call = world.join("a", a, rebalance_timeout_ms=100_000)
    for _ in range(5):
        world.clock.advance(9_000)
        assert world.heartbeat(b, 1).error is ErrorCode.REBALANCE_IN_PROGRESS
    assert not call.is_done
    world.join("b", b)
    assert call.response.generation_id == 2


def test_the_last_member_gone_leaves_an_empty_group_on_record():
    world = GroupWorld()
    world.stable_group("a")
    world.clock.advance(10_000)
    assert world.group().state is GroupState.EMPTY
    assert world.group().generation_id == 2
    world.reload()
    assert world.group().state is GroupState.EMPTY
    assert world.group().generation_id == 2
    assert world.group().protocol_type == "consumer"


def test_a_new_member_whose_connection_is_gone_is_removed_after_five_minutes():
    world = GroupWorld()
    world.stable_group("a", session_timeout_ms=1_800_000)
    _, ghost = world.join_fully("b", rebalance_timeout_ms=3_600_000)
    world.clock.advance(299_999)
    assert not ghost.is_done
    world.clock.advance(1)
    assert ghost.error is ErrorCode.UNKNOWN_MEMBER_ID


# Leaving


def test_leaving_makes_the_others_rebalance():
    world = GroupWorld()
    a, b = world.stable_group("a", "b")
    call = world.leave((b, None))
    assert call.error is ErrorCode.NONE
    assert call.response.members[0].error_code == ErrorCode.NONE
    assert world.heartbeat(a, 1).error is ErrorCode.REBALANCE_IN_PROGRESS
    assert world.join("a", a).response.generation_id == 2


@pytest.mark.parametrize("version", [0, 2, 3, 5])
def test_leave_of_an_unknown_member(version):
    world = GroupWorld()
    world.stable_group("a")
    response = world.leave(("unknown", None), version=version).response
    if version < 3:
        assert response.error_code == ErrorCode.UNKNOWN_MEMBER_ID
        assert response.members == []
    else:
        assert response.error_code == ErrorCode.NONE
        assert response.members[0].error_code == ErrorCode.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize("version", [0, 5])
def test_leave_of_an_unknown_group(version):
    world = GroupWorld()
    response = world.leave(("a", None), group_id="other", version=version).response
    error = response.error_code if version < 3 else response.members[0].error_code
    assert error == ErrorCode.UNKNOWN_MEMBER_ID


def test_an_administrator_removes_static_members_by_instance():
    world = GroupWorld()
    static_member(world, "a", "one")
    response = world.leave(("", "one"), ("", "unknown"), ("", None)).response
    assert [member.error_code for member in response.members] == [
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.UNKNOWN_MEMBER_ID,
    ]
    assert world.group().state is GroupState.EMPTY


def test_the_log_names_a_static_member_that_was_removed_by_instance(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO")
    world = GroupWorld()
    static_member(world, "a", "one")
    world.leave(("", "one"))
    assert "the member with instance id one left" in caplog.text


def test_a_pending_member_leaves():
    world = GroupWorld()
    a, *_ = world.stable_group("a")
    pending = world.join("b").response.member_id
    call = world.join("a", a)
    assert not call.is_done
    assert world.leave((pending, None)).response.members[0].error_code == ErrorCode.NONE
    assert call.response.generation_id == 2


def test_leaving_while_joining_answers_the_join():
    world = GroupWorld()
    world.stable_group("a")
    b, joining = world.join_fully("b")
    world.leave((b, None))
    assert joining.error is ErrorCode.UNKNOWN_MEMBER_ID


# Static members


def static_member(world: GroupWorld, name: str, instance_id: str, version: int = 9) -> str:
    """One static member alone in a stable group; returns its member id."""
    call = world.join(name, instance_id=instance_id, version=version)
    world.clock.advance(3_000)
    member_id = call.response.member_id
    generation = call.response.generation_id
    assert world.sync(member_id, generation, {member_id: b"mine"}).error is ErrorCode.NONE
    return member_id


def test_a_static_member_needs_no_second_join():
    world = GroupWorld()
    member_id = static_member(world, "a", "one")
    assert member_id.startswith("one-")


def test_a_static_member_that_comes_back_keeps_its_assignment():
    world = GroupWorld()
    old = static_member(world, "a", "one")
    call = world.join("a", instance_id="one")
    new = call.response.member_id
    assert new != old
    assert call.response.generation_id == 1
    assert call.response.leader == new
    assert call.response.skip_assignment
    assert [member.member_id for member in call.response.members] == [new]
    assert world.group().state is GroupState.STABLE
    assert world.sync(new, 1, instance_id="one").response.assignment == b"mine"
    world.reload()
    assert list(world.group().members) == [new]


@pytest.mark.parametrize("version", [5, 8])
def test_a_leader_that_cannot_skip_the_assignment_believes_that_it_follows(version):
    world = GroupWorld()
    old = static_member(world, "a", "one", version=version)
    response = world.join("a", instance_id="one", version=version).response
    assert response.leader == old
    assert not response.skip_assignment
    assert response.members == []


def test_the_replaced_static_member_is_fenced():
    world = GroupWorld()
    old = static_member(world, "a", "one")
    world.join("a", instance_id="one")
    fenced = ErrorCode.FENCED_INSTANCE_ID
    assert world.heartbeat(old, 1, instance_id="one").error is fenced
    assert world.sync(old, 1, instance_id="one").error is fenced
    assert world.join("a", old, instance_id="one").error is fenced
    assert world.commit_error({("t", 0): 1}, old, 1, instance_id="one") is fenced
    response = world.leave((old, "one")).response
    assert response.members[0].error_code == fenced


def test_requests_that_the_replaced_member_has_parked_are_fenced():
    world = GroupWorld()
    a, *_ = world.stable_group("a")
    joining = world.join("s", instance_id="one")
    again = world.join("s", instance_id="one")
    assert joining.error is ErrorCode.FENCED_INSTANCE_ID
    world.join("a", a)
    assert again.response.generation_id == 2
    waiting = world.sync(again.response.member_id, 2, instance_id="one")
    world.join("s", instance_id="one")
    assert waiting.error is ErrorCode.FENCED_INSTANCE_ID
    assert world.group().state is GroupState.PREPARING_REBALANCE


def test_a_static_member_with_another_protocol_makes_a_rebalance():
    world = GroupWorld()
    call = world.join("a", instance_id="one", protocols=("range", "sticky"))
    world.clock.advance(3_000)
    member_id = call.response.member_id
    world.sync(member_id, 1, {member_id: b"mine"})
    again = world.join("a", instance_id="one", protocols=("sticky", "range"))
    assert again.response.generation_id == 2
    assert again.response.protocol_name == "sticky"


def test_an_absent_static_member_stays_until_its_session_ends():
    world = GroupWorld()
    static_member(world, "a", "one")
    b, joining = world.join_fully("b", rebalance_timeout_ms=5_000)
    # The static member's own rebalance time-out is 30 s, its session 10 s.
    world.clock.advance(9_999)
    assert not joining.is_done
    world.clock.advance(1)
    assert [member.member_id for member in joining.response.members] == [b]


def test_a_rebalance_goes_on_without_an_absent_static_member_but_keeps_it():
    world = GroupWorld()
    call: Call = world.join("s", instance_id="one", session_timeout_ms=600_000)
    world.clock.advance(3_000)
    static_id = call.response.member_id
    world.sync(static_id, 1, {static_id: b"mine"})
    b, joining = world.join_fully("b")
    world.clock.advance(30_000)
    assert joining.response.generation_id == 2
    assert joining.response.leader == b
    assert {member.member_id for member in joining.response.members} == {static_id, b}
