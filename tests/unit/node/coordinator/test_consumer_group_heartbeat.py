"""ConsumerGroupHeartbeat: what is refused and in which words, joining, following, leaving."""

from typing import Any

import pytest

from barnabas.node.coordinator.group.classic.group import ClassicGroup
from barnabas.node.coordinator.group.consumer.member import MemberState
from barnabas.node.coordinator.group.modern.group import ModernGroupState
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.consumer_groups import (
    ConsumerGroupHeartbeatTopicPartitions as Partitions,
)
from barnabas.protocol.messages.groups import DeleteGroupsRequest, ListGroupsRequest
from barnabas.protocol.messages.offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from support.consumer_world import ConsumerWorld, ModernMember, topic_id

JOIN: dict[str, Any] = {
    "member_id": "m",
    "member_epoch": 0,
    "rebalance_timeout_ms": 30_000,
    "subscribed_topic_names": ["t"],
    "topic_partitions": [],
}
STAY: dict[str, Any] = {"member_id": "m", "member_epoch": 2}


@pytest.fixture
def world() -> ConsumerWorld:
    world = ConsumerWorld()
    world.set_topics({"t": 4})
    return world


INVALID = {
    "no member id": ({**JOIN, "member_id": " "}, "MemberId can't be empty."),
    "no group id": ({**JOIN, "group_id": ""}, "GroupId can't be empty."),
    "no instance id": ({**JOIN, "instance_id": ""}, "InstanceId can't be empty."),
    "no rack": ({**JOIN, "rack_id": ""}, "RackId can't be empty."),
    "no time-out": (
        {**JOIN, "rebalance_timeout_ms": -1},
        "RebalanceTimeoutMs must be provided in first request.",
    ),
    "partitions unsaid": (
        {**JOIN, "topic_partitions": None},
        "TopicPartitions must be empty when (re-)joining.",
    ),
    "partitions owned": (
        {**JOIN, "topic_partitions": [Partitions(topic_id=topic_id("t"), partitions=[0])]},
        "TopicPartitions must be empty when (re-)joining.",
    ),
    "no subscription": (
        {**JOIN, "subscribed_topic_names": None},
        "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining.",
    ),
    "static leave without instance": (
        {"member_id": "m", "member_epoch": -2},
        "InstanceId can't be null.",
    ),
    "epoch": ({"member_id": "m", "member_epoch": -3}, "MemberEpoch is invalid."),
}


@pytest.mark.parametrize("case", INVALID.values(), ids=INVALID.keys())
def test_invalid_requests(world: ConsumerWorld, case: tuple[dict[str, Any], str]) -> None:
    fields, message = case
    response = world.beat(**fields)
    assert (response.error_code, response.error_message) == (ErrorCode.INVALID_REQUEST, message)
    assert world.log.records() == []


def test_assignor_that_is_not_there(world: ConsumerWorld) -> None:
    response = world.beat(**JOIN, server_assignor="sticky")
    assert response.error_code == ErrorCode.UNSUPPORTED_ASSIGNOR
    assert response.error_message == (
        "ServerAssignor sticky is not supported. Supported assignors: uniform, range."
    )


REFUSED = {
    "no such group": (
        {**STAY, "group_id": "x"},
        ErrorCode.GROUP_ID_NOT_FOUND,
        "Consumer group x not found.",
    ),
    "leaves no such group": (
        {"group_id": "x", "member_id": "m", "member_epoch": -1},
        ErrorCode.GROUP_ID_NOT_FOUND,
        "Group x not found.",
    ),
    "stranger": (
        {"member_id": "n", "member_epoch": 2},
        ErrorCode.UNKNOWN_MEMBER_ID,
        "Member n is not a member of group g.",
    ),
    "stranger leaves": (
        {"member_id": "n", "member_epoch": -1},
        ErrorCode.UNKNOWN_MEMBER_ID,
        "Member n is not a member of group g.",
    ),
    "greater epoch": (
        {"member_id": "m", "member_epoch": 3},
        ErrorCode.FENCED_MEMBER_EPOCH,
        (
            "The consumer group member has a greater member epoch (3) than the one known by the "
            "group coordinator (2). The member must abandon all its partitions and rejoin."
        ),
    ),
    "smaller epoch": (
        {"member_id": "m", "member_epoch": 1, "topic_partitions": []},
        ErrorCode.FENCED_MEMBER_EPOCH,
        (
            "The consumer group member has a smaller member epoch (1) than the one known by the "
            "group coordinator (2). The member must abandon all its partitions and rejoin."
        ),
    ),
    "unknown instance": (
        {**STAY, "instance_id": "i"},
        ErrorCode.UNKNOWN_MEMBER_ID,
        "Instance id i is unknown.",
    ),
    "regular expression": (
        {**JOIN, "subscribed_topic_regex": "a[b"},
        ErrorCode.INVALID_REGULAR_EXPRESSION,
        "SubscribedTopicRegex `a[b` is not a valid regular expression: missing closing ].",
    ),
}


@pytest.mark.parametrize("case", REFUSED.values(), ids=REFUSED.keys())
def test_refused_requests(case: tuple[dict[str, Any], ErrorCode, str]) -> None:
    fields, error, message = case
    world = ConsumerWorld()
    world.set_topics({"t": 4})
    world.beat(**JOIN)
    written = len(world.log.records())
    response = world.beat(**fields)
    assert (response.error_code, response.error_message) == (error, message)
    assert len(world.log.records()) == written


def test_a_full_group_takes_nobody_else() -> None:
    world = ConsumerWorld(group_consumer_max_size=1)
    world.set_topics({"t": 4})
    world.beat(**JOIN)
    response = world.beat(**{**JOIN, "member_id": "n"})
    assert response.error_code == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert response.error_message == (
        "The consumer group has reached its maximum capacity of 1 members."
    )
    assert world.beat(**STAY).error_code == ErrorCode.NONE


def test_first_member(world: ConsumerWorld) -> None:
    response = world.beat(**JOIN)
    assert (response.member_id, response.member_epoch) == ("m", 2)
    assert response.heartbeat_interval_ms == 5_000
    assert response.assignment is not None
    assert world.names(response.assignment.topic_partitions) == {("t", n) for n in range(4)}
    assert world.consumer_group().state is ModernGroupState.STABLE
    assert [type(record.key).__name__ for record in world.log.records()] == [
        "ConsumerGroupMemberMetadataKey",
        "ConsumerGroupMetadataKey",
        "ConsumerGroupTargetAssignmentMemberKey",
        "ConsumerGroupTargetAssignmentMetadataKey",
        "ConsumerGroupCurrentMemberAssignmentKey",
    ]


def test_member_without_an_id_is_given_one_in_version_0(world: ConsumerWorld) -> None:
    response = world.beat(**{**JOIN, "member_id": ""}, version=0)
    assert response.error_code == 0
    assert len(response.member_id or "") == 36


def test_a_quiet_heartbeat_writes_nothing_and_says_little(world: ConsumerWorld) -> None:
    world.beat(**JOIN)
    written = len(world.log.records())
    response = world.beat(**STAY)
    assert response.assignment is None
    assert len(world.log.records()) == written


def test_a_lost_response_is_made_up_for(world: ConsumerWorld) -> None:
    """The epoch before is taken where the member owns no more than it was given since."""
    first, second = ModernMember(world, "1", ["t"]), ModernMember(world, "2", ["t"])
    first.step()
    second.step()
    for _ in range(3):
        first.step()
        second.step()
    known = world.consumer_group().members["1"]
    assert known.member_epoch == 3
    owned = [Partitions(topic_id=topic_id("t"), partitions=sorted(n for _, n in first.owned))]
    fields: dict[str, Any] = {"member_id": "1", "member_epoch": known.previous_member_epoch}
    assert world.beat(**fields).error_code == ErrorCode.FENCED_MEMBER_EPOCH
    assert world.beat(**fields, topic_partitions=owned).error_code == ErrorCode.NONE


def test_partitions_are_given_up_before_others_get_them(world: ConsumerWorld) -> None:
    first, second = ModernMember(world, "1", ["t"]), ModernMember(world, "2", ["t"])
    first.step()
    second.step()
    assert second.owned == set()
    group = world.consumer_group()
    assert group.members["2"].state is MemberState.UNRELEASED_PARTITIONS
    first.step()  # is told
    assert group.members["1"].state is MemberState.UNREVOKED_PARTITIONS
    assert group.members["1"].member_epoch == 2
    second.step()
    assert second.owned == set()
    first.step()  # has done it
    assert group.members["1"].member_epoch == 3
    second.step()
    assert (len(first.owned), len(second.owned)) == (2, 2)
    assert group.state is ModernGroupState.STABLE


def test_who_does_not_give_up_in_time_is_fenced(world: ConsumerWorld) -> None:
    first = ModernMember(world, "1", ["t"], rebalance_timeout_ms=10_000)
    second = ModernMember(world, "2", ["t"])
    first.step()
    second.step()
    world.beat(member_id="1", member_epoch=2)  # gets its assignment, reports no partitions
    for _ in range(3):
        world.clock.advance(4_000)
        world.beat(member_id="1", member_epoch=2)
        second.step()
    assert set(world.consumer_group().members) == {"2"}
    second.step()
    assert len(second.owned) == 4


def test_a_silent_member_is_gone_after_its_session(world: ConsumerWorld) -> None:
    first, second = ModernMember(world, "1", ["t"]), ModernMember(world, "2", ["t"])
    first.step()
    second.step()
    for _ in range(9):
        world.clock.advance(5_000)
        second.step()
    assert set(world.consumer_group().members) == {"2"}
    assert world.beat(member_id="1", member_epoch=2).error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_silent_member_is_gone_when_the_log_takes_records_again(world: ConsumerWorld) -> None:
    first = ModernMember(world, "1", ["t"])
    first.step()
    world.log.append_error = ErrorCode.NOT_ENOUGH_REPLICAS
    world.clock.advance(60_000)
    assert set(world.consumer_group().members) == {"1"}
    world.log.append_error = None
    world.clock.advance(500)
    assert world.consumer_group().is_empty


def test_session_and_heartbeat_can_be_set_for_a_group(world: ConsumerWorld) -> None:
    world.set_topics(
        {"t": 4},
        group_configs={
            "g": {
                "consumer.session.timeout.ms": "50000",
                "consumer.heartbeat.interval.ms": "99999",
            }
        },
    )
    assert world.beat(**JOIN).heartbeat_interval_ms == 15_000  # the broker's maximum
    world.clock.advance(49_000)
    assert not world.consumer_group().is_empty
    world.clock.advance(1_000)
    assert world.consumer_group().is_empty


def test_topics_that_grow_come_and_go_are_noticed(world: ConsumerWorld) -> None:
    member = ModernMember(world, "1", ["t", "u"])
    member.step()
    assert member.epoch == 2
    world.set_topics({"t": 6})
    member.step()
    assert (member.epoch, len(member.owned)) == (3, 6)
    world.set_topics({"t": 6, "u": 1})
    member.step()
    assert (member.epoch, len(member.owned)) == (4, 7)
    world.set_topics({"u": 1})
    member.step()
    member.step()
    assert (member.epoch, member.owned) == (5, {("u", 0)})
    world.set_topics({"u": 1, "v": 1})
    member.step()
    assert member.epoch == 5


def test_racks_that_change_make_a_new_epoch(world: ConsumerWorld) -> None:
    member = ModernMember(world, "1", ["t"])
    world.set_topics({"t": 4}, racks={1: "a", 2: "b"})
    member.step()
    world.set_topics({"t": 4}, racks={1: "a", 2: "b"})
    member.step()
    assert member.epoch == 2
    world.set_topics({"t": 4}, racks={1: "a", 3: "c"})
    member.step()
    assert member.epoch == 3


def test_assignments_keep_their_distance() -> None:
    world = ConsumerWorld(group_consumer_assignment_interval_ms=1_000)
    world.set_topics({"t": 4})
    members = [ModernMember(world, str(n), ["t"]) for n in range(3)]
    for member in members:
        member.step()
    group = world.consumer_group()
    assert (group.epoch, group.assignment_epoch) == (4, 2)
    assert group.state is ModernGroupState.ASSIGNING
    assert members[2].epoch == 2
    world.clock.advance(1_000)
    members[2].step()
    assert group.assignment_epoch == 4


def test_a_dropped_topic_is_given_up_before_the_next_assignment() -> None:
    world = ConsumerWorld(group_consumer_assignment_interval_ms=15_000)
    world.set_topics({"t": 2, "u": 2})
    member = ModernMember(world, "1", ["t", "u"])
    member.step()
    member.subscribe("t")
    member.step()
    member.step()
    assert member.owned == {("t", 0), ("t", 1)}
    group = world.consumer_group()
    assert (group.epoch, group.assignment_epoch) == (3, 2)


def test_static_member_comes_back(world: ConsumerWorld) -> None:
    first = ModernMember(world, "1", ["t"], instance_id="i")
    first.step()
    other = world.beat(**{**JOIN, "member_id": "2"}, instance_id="i")
    assert other.error_code == ErrorCode.UNRELEASED_INSTANCE_ID
    assert other.error_message == (
        "Static member 2 with instance id i cannot join the group because the instance id is "
        "owned by 1 member."
    )
    first.leave(-2)
    group = world.consumer_group()
    assert group.members["1"].member_epoch == -2
    second = ModernMember(world, "2", ["t"], instance_id="i")
    second.step()
    assert (second.epoch, len(second.owned)) == (2, 4)
    assert set(group.members) == {"2"}
    fenced = world.beat(member_id="1", member_epoch=2, instance_id="i")
    assert fenced.error_code == ErrorCode.FENCED_INSTANCE_ID
    assert fenced.error_message == "Static member 1 with instance id i was fenced by member 2."


def test_static_member_comes_back_under_its_own_id_and_falls_silent(world: ConsumerWorld) -> None:
    member = ModernMember(world, "1", ["t"], instance_id="i")
    member.step()
    member.leave(epoch=-2)
    member.step()
    assert member.epoch == 2
    world.clock.advance(45_001)
    assert not world.consumer_group().members


def test_static_member_that_does_not_come_back(world: ConsumerWorld) -> None:
    member = ModernMember(world, "1", ["t"], instance_id="i")
    member.step()
    member.leave(-2)
    world.clock.advance(45_000)
    assert world.consumer_group().is_empty


def test_regular_expressions_follow_topics(world: ConsumerWorld) -> None:
    world.set_topics({"a1": 1, "a2": 1, "b": 1})
    member = ModernMember(world, "1", [], regex="a[0-9]")
    member.step()
    assert member.owned == {("a1", 0), ("a2", 0)}
    world.set_topics({"a1": 1, "a2": 1, "a3": 1, "b": 1})
    member.step()
    assert len(member.owned) == 2  # looked up a moment ago
    world.clock.advance(10_001)
    member.step()
    assert len(member.owned) == 3
    member.subscribe("b", regex="")
    member.step()
    member.step()
    assert member.owned == {("b", 0)}
    assert world.consumer_group().resolved_regexes == {}


def test_a_regular_expression_that_would_backtrack_is_harmless(world: ConsumerWorld) -> None:
    world.set_topics({"a" * 200: 1})
    member = ModernMember(world, "1", [], regex="(a*)*(a*)*(a|aa)+$|b")
    member.step()
    assert len(member.owned) == 1
    member.subscribe(regex="(a*)*(a*)*(a|aa)+b")
    member.step()
    member.step()
    assert member.owned == set()


def test_offsets_are_bound_to_epochs(world: ConsumerWorld) -> None:
    world.beat(**JOIN)
    offsets = {("t", 0): 7}
    assert world.commit_error(offsets) is ErrorCode.UNKNOWN_MEMBER_ID
    assert world.commit_error(offsets, "m", 1) is ErrorCode.STALE_MEMBER_EPOCH
    assert world.commit_error(offsets, "m", 3) is ErrorCode.STALE_MEMBER_EPOCH
    assert world.commit_error(offsets, "m", 2, version=8) is ErrorCode.UNSUPPORTED_VERSION
    assert world.commit_error(offsets, "m", 2) is ErrorCode.NONE
    assert world.fetch(member_id="m", member_epoch=1).error is ErrorCode.STALE_MEMBER_EPOCH
    assert world.fetch(member_id="n", member_epoch=2).error is ErrorCode.UNKNOWN_MEMBER_ID
    assert world.fetch(member_id="m", member_epoch=2).error is ErrorCode.NONE
    assert world.offsets() == offsets


def test_a_commit_of_an_older_epoch_counts_for_what_was_owned_then(world: ConsumerWorld) -> None:
    """A commit under way as the epoch rises must not send the client back (KIP-1251)."""
    member = ModernMember(world, "1", ["t"])
    member.step()
    world.set_topics({"t": 5})
    member.step()
    group = world.consumer_group()
    assert member.epoch == 3

    def check(partition: int, epoch: int) -> ErrorCode:
        request = OffsetCommitRequest(
            group_id="g",
            member_id="1",
            generation_id_or_member_epoch=epoch,
            topics=[
                OffsetCommitRequestTopic(
                    topic_id=topic_id("t"),
                    partitions=[OffsetCommitRequestPartition(partition_index=partition)],
                )
            ],
        )
        return group.check_commit(request, 10)

    cases = {
        (0, 2): ErrorCode.NONE,
        (4, 3): ErrorCode.NONE,
        (4, 2): ErrorCode.STALE_MEMBER_EPOCH,
        (0, 1): ErrorCode.STALE_MEMBER_EPOCH,
        (9, 2): ErrorCode.STALE_MEMBER_EPOCH,
    }
    for (partition, epoch), error in cases.items():
        assert check(partition, epoch) is error
        expected = ErrorCode.ILLEGAL_GENERATION if error else ErrorCode.NONE
        assert world.transactional_commit_error(("t", partition), "1", epoch) is expected
    assert world.transactional_commit_error(("x", 0), "1", 2) is ErrorCode.ILLEGAL_GENERATION
    assert world.transactional_commit_error(("t", 0), "1", 4) is ErrorCode.ILLEGAL_GENERATION
    assert world.transactional_commit_error(("t", 0), "2", 3) is ErrorCode.UNKNOWN_MEMBER_ID
    assert world.transactional_commit_error(("t", 0)) is ErrorCode.NONE


def test_groups_are_listed_and_deleted(world: ConsumerWorld) -> None:
    world.beat(**JOIN)
    listed = world.coordinator.list_groups(ListGroupsRequest(types_filter=["consumer"])).groups
    assert [(g.group_id, g.group_state, g.group_type, g.protocol_type) for g in listed] == [
        ("g", "Stable", "consumer", "consumer")
    ]
    delete = DeleteGroupsRequest(groups_names=["g"])
    assert world.coordinator.delete_groups(delete).results[0].error_code == (
        ErrorCode.NON_EMPTY_GROUP
    )
    world.beat(member_id="m", member_epoch=-1)
    assert world.consumer_group().state is ModernGroupState.EMPTY
    assert world.coordinator.delete_groups(delete).results[0].error_code == ErrorCode.NONE
    assert world.shard.groups.get("g") is None


def test_description(world: ConsumerWorld) -> None:
    world.beat(**JOIN, server_assignor="range", rack_id="r", instance_id="i")
    (group, missing, nameless) = world.coordinator.consumers.describe(["g", "x", ""])
    assert (group.group_state, group.group_epoch, group.assignment_epoch) == ("Stable", 2, 2)
    assert group.assignor_name == "range"
    (member,) = group.members
    assert (member.member_id, member.instance_id, member.rack_id) == ("m", "i", "r")
    assert (member.member_epoch, member.member_type) == (2, 1)
    assert member.subscribed_topic_names == ["t"]
    (part,) = member.assignment.topic_partitions
    assert (part.topic_name, part.partitions) == ("t", [0, 1, 2, 3])
    assert member.target_assignment == member.assignment
    assert missing.error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert missing.error_message == "Group x not found."
    assert nameless.error_code == ErrorCode.INVALID_GROUP_ID


def test_an_append_that_fails_changes_nothing(world: ConsumerWorld) -> None:
    world.log.append_error = ErrorCode.NOT_ENOUGH_REPLICAS
    assert world.beat(**JOIN).error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert world.shard.groups.get("g") is None
    world.log.append_error = None
    assert world.beat(**JOIN).error_code == ErrorCode.NONE
    world.set_topics({"t": 8})
    world.log.append_error = ErrorCode.NOT_ENOUGH_REPLICAS
    assert world.beat(**STAY).error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    world.log.append_error = None
    assert world.beat(**STAY).member_epoch == 3  # the change of topics is not forgotten


def test_members_are_told_after_the_commit(world: ConsumerWorld) -> None:
    world.log.holds_commits = True
    call = world.start_beat(**JOIN)
    assert not call.is_done
    world.log.commit()
    assert call.response.member_epoch == 2


def test_an_empty_classic_group_gives_its_place(world: ConsumerWorld) -> None:
    world.commit({("t", 0): 3})
    assert isinstance(world.shard.groups.get("g"), ClassicGroup)
    assert world.beat(**JOIN).member_epoch == 2
    assert world.offsets() == {("t", 0): 3}
    world.reload()
    assert world.offsets() == {("t", 0): 3}
    assert set(world.consumer_group().members) == {"m"}


def test_who_waits_for_partitions_asks_more_often(world: ConsumerWorld) -> None:
    def beat(member: str, epoch: int, *partitions: int) -> tuple[int, int]:
        owned = [Partitions(topic_id=topic_id("t"), partitions=list(partitions))]
        response = world.beat(
            **{**STAY, "member_id": member, "member_epoch": epoch, "topic_partitions": owned}
        )
        assert not response.error_code
        return response.member_epoch, response.heartbeat_interval_ms

    assert world.beat(**JOIN).heartbeat_interval_ms == 5_000
    late = world.beat(**{**JOIN, "member_id": "n"})
    assert (late.member_epoch, late.heartbeat_interval_ms) == (3, 1_000)  # all are another's still
    assert beat("m", 2, 0, 1, 2, 3) == (2, 1_000)  # shall give two of them up
    assert beat("m", 2, 0, 1) == (3, 5_000)
    assert beat("n", 3) == (3, 5_000)
