"""Groups that change between the classic and the consumer protocol while they have members."""

import pytest

from barnabas.node.coordinator.group.classic.group import ClassicGroup
from barnabas.node.coordinator.group.classic.states import GroupState
from barnabas.node.coordinator.group.consumer.group import ConsumerGroup
from barnabas.node.coordinator.group.modern.group import ModernGroupState
from barnabas.protocol.codec import encode
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.groups import ConsumerProtocolAssignment
from support.consumer_world import ClassicMember, ConsumerWorld, ModernMember


def world_with(**settings) -> ConsumerWorld:
    world = ConsumerWorld(**settings)
    world.set_topics({"t": 4})
    return world


def rounds(world, *members, count=12, pause_ms=1_000):
    for _ in range(count):
        for member in members:
            member.step()
        world.clock.advance(pause_ms)


def classic_pair(world) -> tuple[ClassicMember, ClassicMember]:
    first, second = ClassicMember(world, "a", ["t"]), ClassicMember(world, "b", ["t"])
    rounds(world, first, second)
    assert world.group().state is GroupState.STABLE
    return first, second


def join_fields(**more):
    return {
        "member_id": "m",
        "member_epoch": 0,
        "rebalance_timeout_ms": 30_000,
        "subscribed_topic_names": ["t"],
        "topic_partitions": [],
        **more,
    }


def test_upgrade_and_downgrade():
    world = world_with()
    first, second = classic_pair(world)
    modern = ModernMember(world, "m", ["t"])
    modern.step()
    group = world.consumer_group()
    assert group.classic_count == 2
    rounds(world, first, second, modern)
    assert group.state is ModernGroupState.STABLE
    assert sorted(len(m.owned) for m in (first, second, modern)) == [1, 1, 2]
    (described,) = world.coordinator.consumers.describe(["g"])
    assert sorted(member.member_type for member in described.members) == [0, 0, 1]
    modern.leave()
    classic = world.group()
    assert isinstance(classic, ClassicGroup)
    assert classic.state is GroupState.PREPARING_REBALANCE
    rounds(world, first, second)
    assert classic.state is GroupState.STABLE
    assert first.owned | second.owned == {("t", n) for n in range(4)}


def test_the_last_classic_member_goes():
    world = world_with()
    first, second = classic_pair(world)
    modern = ModernMember(world, "m", ["t"])
    rounds(world, modern, first, second)
    first.leave()
    second.leave()
    rounds(world, modern)
    assert world.consumer_group().classic_count == 0
    assert len(modern.owned) == 4


@pytest.mark.parametrize("ending", ["session", "leave", "static leave"])
def test_the_last_modern_member_goes(ending):
    world = world_with()
    (first, second) = classic_pair(world)
    modern = ModernMember(world, "m", ["t"], instance_id="i" if "static" in ending else None)
    rounds(world, modern, first, second)
    if ending == "leave":
        modern.leave()
    elif ending == "static leave":
        modern.leave(-2)
    rounds(world, first, second, count=50)
    assert world.group().state is GroupState.STABLE
    assert len(world.group().members) == 2


def test_a_converted_group_survives_a_move():
    world = world_with()
    members = classic_pair(world)
    modern = ModernMember(world, "m", ["t"])
    rounds(world, modern, *members)
    world.reload()
    assert world.consumer_group().classic_count == 2
    rounds(world, modern, *members, count=2)
    modern.leave()
    world.crash()
    assert set(world.group().members) == {member.member_id for member in members}
    rounds(world, *members)
    assert world.group().state is GroupState.STABLE


def test_a_static_modern_member_is_replaced_by_a_classic_one():
    world = world_with()
    modern = ModernMember(world, "m", ["t"], instance_id="i")
    modern.step()
    joined = world.join("c", instance_id="i")
    assert joined.error is ErrorCode.NONE
    assert joined.response.generation_id == 2
    group = world.group()
    assert group.state is GroupState.STABLE
    assert set(group.members) == {joined.response.member_id}
    synced = world.sync(joined.response.member_id, 2, protocol_name="range")
    assert synced.error is ErrorCode.NONE
    assert synced.response.assignment
    world.reload()
    assert set(world.group().members) == {joined.response.member_id}


def test_waiting_members_are_sent_back():
    world = world_with()
    _, joining = world.join_fully("a")
    assert not joining.is_done
    ModernMember(world, "m", ["t"]).step()
    assert joining.error is ErrorCode.REBALANCE_IN_PROGRESS
    assert isinstance(world.shard.groups.get("g"), ConsumerGroup)


POLICIES = {
    "bidirectional": (True, True, ErrorCode.MEMBER_ID_REQUIRED),
    "UPGRADE": (True, False, ErrorCode.MEMBER_ID_REQUIRED),
    "downgrade": (False, True, ErrorCode.MEMBER_ID_REQUIRED),
    "disabled": (False, False, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
}


@pytest.mark.parametrize("policy", POLICIES)
def test_policy(policy):
    may_upgrade, may_downgrade, joins = POLICIES[policy]
    world = world_with(group_consumer_migration_policy=policy)
    classic_pair(world)
    response = world.beat(**join_fields())
    if may_upgrade:
        assert response.error_code == ErrorCode.NONE
    else:
        assert response.error_code == ErrorCode.GROUP_ID_NOT_FOUND
        assert response.error_message == (
            "Cannot upgrade classic group g to consumer group because online upgrade is disabled."
        )
    world.beat(**join_fields(group_id="h"))
    assert world.join("c", group_id="h").error is joins
    if joins is not ErrorCode.MEMBER_ID_REQUIRED:
        return
    member_id = world.join("c", group_id="h").response.member_id
    assert world.join("c", member_id, group_id="h").error is ErrorCode.NONE
    world.beat(group_id="h", member_id="m", member_epoch=-1)
    assert (world.shard.groups.get_of(ClassicGroup, "h") is not None) is may_downgrade


def test_groups_that_cannot_change():
    world = world_with(group_consumer_max_size=1)
    classic_pair(world)
    assert world.beat(**join_fields()).error_message == (
        "Cannot upgrade classic group g to consumer group because the group size exceeds the "
        "consumer group maximum size."
    )
    world.join_fully("x", group_id="connect", protocol_type="connect")
    assert world.beat(**join_fields(group_id="connect")).error_message == (
        "Cannot upgrade classic group connect to consumer group because the group does not use "
        "the consumer embedded protocol."
    )
    member_id, joined = world.join_fully("x", group_id="custom")
    world.clock.advance(3_000)
    data = b"\0\0" + encode(ConsumerProtocolAssignment(user_data=b"mine"), 0)
    generation = joined.response.generation_id
    assert not world.sync(member_id, generation, {member_id: data}, group_id="custom").error
    assert "an unsupported custom assignor is in use" in (
        world.beat(**join_fields(group_id="custom")).error_message or ""
    )
    _, odd = world.join_fully("x", group_id="odd", metadata=b"?")
    assert not odd.is_done
    assert world.beat(**join_fields(group_id="odd")).error_message == (
        "Cannot upgrade classic group odd to consumer group because the embedded consumer "
        "protocol is malformed."
    )
    assert not odd.is_done, "nothing has happened to it"


CLASSIC_REFUSALS = {
    "other protocol type": ({"protocol_type": "connect"}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
    "no protocol": ({"protocols": ()}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
    "odd subscription": ({"metadata": b"?", "member_id": "x"}, ErrorCode.UNKNOWN_SERVER_ERROR),
    "unknown instance": ({"member_id": "x", "instance_id": "i"}, ErrorCode.UNKNOWN_MEMBER_ID),
}


@pytest.mark.parametrize("case", CLASSIC_REFUSALS.values(), ids=CLASSIC_REFUSALS.keys())
def test_classic_members_that_may_not_join(case):
    fields, error = case
    world = world_with()
    world.beat(**join_fields())
    assert world.join("c", **fields).error is error


def test_classic_requests_of_strangers_and_of_modern_members():
    world = world_with()
    world.beat(**join_fields(instance_id="i"))
    for member_id in ("m", "stranger"):
        assert world.heartbeat(member_id, 2).error is ErrorCode.UNKNOWN_MEMBER_ID
        assert world.sync(member_id, 2).error is ErrorCode.UNKNOWN_MEMBER_ID
    assert world.heartbeat("x", 2, instance_id="i").error is ErrorCode.FENCED_INSTANCE_ID
    left = world.leave(("stranger", None), ("", "i")).response
    assert [m.error_code for m in left.members] == [ErrorCode.UNKNOWN_MEMBER_ID, 0]
    assert world.consumer_group().is_empty


def test_classic_member_that_does_not_follow_is_fenced():
    world = world_with()
    modern = ModernMember(world, "m", ["t"])
    modern.step()
    classic = ClassicMember(world, "c", ["t"])
    rounds(world, classic, modern)
    assert len(classic.owned) == 2
    ModernMember(world, "n", ["t"]).step()
    assert world.heartbeat(classic.member_id, classic.epoch).error is (
        ErrorCode.REBALANCE_IN_PROGRESS
    )
    assert world.heartbeat(classic.member_id, classic.epoch - 1).error is (
        ErrorCode.ILLEGAL_GENERATION
    )
    for _ in range(10):
        world.heartbeat(classic.member_id, classic.epoch)
        modern.step()
        world.clock.advance(3_000)
    assert classic.member_id not in world.consumer_group().members


def test_downgrade_that_is_not_stored():
    world = world_with()
    members = classic_pair(world)
    modern = ModernMember(world, "m", ["t"])
    rounds(world, modern, *members)
    world.log.append_error = ErrorCode.NOT_ENOUGH_REPLICAS
    assert world.beat(member_id="m", member_epoch=-1).error_code == (
        ErrorCode.COORDINATOR_NOT_AVAILABLE
    )
    world.log.append_error = None
    assert set(world.consumer_group().members) == {"m", *(m.member_id for m in members)}
    rounds(world, modern, *members, count=2)
    assert world.consumer_group().state is ModernGroupState.STABLE


def test_a_session_that_ends_while_the_log_takes_nothing_ends_when_it_does():
    """Its end would downgrade the group: the timer is up again soon, and not a session later."""
    world = world_with()
    members = classic_pair(world)
    modern = ModernMember(world, "m", ["t"])
    rounds(world, modern, *members)
    world.log.append_error = ErrorCode.NOT_ENOUGH_REPLICAS
    rounds(world, *members, count=45)
    assert "m" in world.consumer_group().members
    world.log.append_error = None
    rounds(world, *members, count=2)
    assert "m" not in world.group().members
