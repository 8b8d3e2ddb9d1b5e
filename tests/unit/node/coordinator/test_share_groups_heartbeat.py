"""Share groups as groups: what is refused, joining, following, leaving, offsets, deletion."""

from typing import Any

import pytest

from barnabas.base.ids import Uuid
from barnabas.node.coordinator.group.modern.group import ModernGroupState
from barnabas.node.coordinator.group.share.offsets import Alteration, Deletion
from barnabas.node.coordinator.group.step import Refusal
from barnabas.node.coordinator.share.share_group_service import ShareGroupService
from barnabas.node.coordinator.share.state import ShareStateError
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import group_records as records
from barnabas.protocol.messages import share_groups as altering
from barnabas.protocol.messages.groups import DeleteGroupsRequest, ListGroupsRequest
from barnabas.protocol.messages.offsets import OffsetDeleteRequest, OffsetFetchRequestGroup
from barnabas.protocol.messages.share_groups import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsRequestTopic,
)
from support.consumer_world import topic_id
from support.group_world import Call
from support.share_group_world import ShareGroupWorld

JOIN: dict[str, Any] = {"member_id": "m", "member_epoch": 0, "subscribed_topic_names": ["t"]}
INVALID = {
    "no member id": ({**JOIN, "member_id": " "}, "MemberId can't be empty."),
    "no group id": ({**JOIN, "group_id": ""}, "GroupId can't be empty."),
    "no rack": ({**JOIN, "rack_id": ""}, "RackId can't be empty."),
    "no subscription": (
        {**JOIN, "subscribed_topic_names": None},
        "SubscribedTopicNames must be set in first request.",
    ),
    "empty subscription": (
        {**JOIN, "subscribed_topic_names": []},
        "SubscribedTopicNames must be set in first request.",
    ),
    "epoch": ({"member_id": "m", "member_epoch": -2}, "MemberEpoch is invalid."),
}
REFUSED = {
    "no such group": ({"group_id": "x", "member_epoch": 1}, "GROUP_ID_NOT_FOUND"),
    "no such group to leave": ({"group_id": "x", "member_epoch": -1}, "GROUP_ID_NOT_FOUND"),
    "another kind of group": ({**JOIN, "group_id": "consumers"}, "GROUP_ID_NOT_FOUND"),
    "to leave another kind": ({"group_id": "consumers", "member_epoch": -1}, "GROUP_ID_NOT_FOUND"),
    "no such member": ({"member_id": "x", "member_epoch": 1}, "UNKNOWN_MEMBER_ID"),
    "no such member to leave": ({"member_id": "x", "member_epoch": -1}, "UNKNOWN_MEMBER_ID"),
    "an epoch to come": ({"member_epoch": 99}, "FENCED_MEMBER_EPOCH"),
    "an epoch long past": ({"member_epoch": 1}, "FENCED_MEMBER_EPOCH"),
}


@pytest.fixture
def world() -> ShareGroupWorld:
    """Topics t and u, and m in group g with all of t."""
    world = ShareGroupWorld()
    world.set_topics({"t": 3, "u": 1})
    world.join_share("m", "t")
    world.initialized()
    world.share_beat(member_id="m", member_epoch=2)
    world.share_beat(member_id="m", member_epoch=3, subscribed_topic_names=["t"])
    world.beat_joining("c", "t", group_id="consumers")
    return world


@pytest.mark.parametrize("case", INVALID.values(), ids=INVALID.keys())
def test_invalid_requests(case: tuple[dict[str, Any], str]) -> None:
    world = ShareGroupWorld()
    fields, message = case
    response = world.share_beat(**fields)
    assert (response.error_code, response.error_message) == (ErrorCode.INVALID_REQUEST, message)
    assert world.log.records() == []


@pytest.mark.parametrize("case", REFUSED.values(), ids=REFUSED.keys())
def test_refused(world: ShareGroupWorld, case: tuple[dict[str, Any], str]) -> None:
    fields, error = case
    written = world.log[0].end_offset
    response = world.share_beat(**{"member_id": "m", **fields})
    assert response.error_code == ErrorCode[error]
    assert response.error_message
    assert world.log[0].end_offset == written


def test_partitions_are_assigned_once_their_state_is_initialised() -> None:
    world = ShareGroupWorld()
    world.set_topics({"t": 2})
    joined = world.join_share("m", "t")
    assert (joined.member_epoch, joined.heartbeat_interval_ms) == (2, 5_000)
    assert joined.assignment is not None
    assert joined.assignment.topic_partitions == []
    (asked,) = world.asked
    assert (asked.state_epoch, asked.start_offsets) == (2, {topic_id("t"): {0: -1, 1: -1}})
    waiting = world.share_beat(member_id="m", member_epoch=2)
    assert (waiting.member_epoch, waiting.assignment) == (2, None)
    assert len(world.asked) == 1, "they were asked for a moment ago"
    world.initialized()
    assigned = world.share_beat(member_id="m", member_epoch=2)
    assert assigned.member_epoch == 3
    assert assigned.assignment is not None
    assert world.names(assigned.assignment.topic_partitions) == {("t", 0), ("t", 1)}
    quiet = world.share_beat(member_id="m", member_epoch=3)
    assert (quiet.member_epoch, quiet.assignment) == (3, None)


def test_records_are_kafkas(world: ShareGroupWorld) -> None:
    kinds = [
        type(record.key) for record in world.log.records() if "Share" in type(record.key).__name__
    ]
    assert kinds[:5] == [
        records.ShareGroupMemberMetadataKey,
        records.ShareGroupMetadataKey,
        records.ShareGroupTargetAssignmentMemberKey,
        records.ShareGroupTargetAssignmentMetadataKey,
        records.ShareGroupCurrentMemberAssignmentKey,
    ]
    assert kinds[5:7] == [records.ShareGroupStatePartitionMetadataKey] * 2


def test_the_epoch_before_is_taken_since_an_answer_may_be_lost(world: ShareGroupWorld) -> None:
    assert world.share_beat(member_id="m", member_epoch=2).member_epoch == 3


def test_more_members_than_partitions_share_them(world: ShareGroupWorld) -> None:
    for number in range(5):
        world.join_share(f"n{number}", "t")
    group = world.share_group()
    sizes = [sum(map(len, target.values())) for target in group.target.values()]
    assert sizes == [1] * 6
    assert group.state is ModernGroupState.STABLE


def test_new_partitions_and_topics_are_initialised_too(world: ShareGroupWorld) -> None:
    world.set_topics({"t": 4, "u": 1})
    world.share_beat(member_id="m", member_epoch=3, subscribed_topic_names=["t", "u"])
    (asked,) = world.asked
    assert asked.partitions == {topic_id("t"): (3,), topic_id("u"): (0,)}


def test_what_was_given_up_is_asked_for_again(world: ShareGroupWorld) -> None:
    world.share_beat(member_id="m", member_epoch=3, subscribed_topic_names=["t", "u"])
    world.given_up()
    assert world.share_group().state_metadata.initializing == {}
    world.share_beat(member_id="m", member_epoch=4)
    assert len(world.asked) == 1


def test_what_was_never_answered_is_asked_for_again_after_a_while(world: ShareGroupWorld) -> None:
    world.share_beat(member_id="m", member_epoch=3, subscribed_topic_names=["t", "u"])
    world.asked.clear()
    for _ in range(3):
        world.clock.advance(10_000)
        assert not world.asked
        world.share_beat(member_id="m", member_epoch=4)
    assert len(world.asked) == 1


def test_a_silent_member_is_fenced(world: ShareGroupWorld) -> None:
    world.clock.advance(44_999)
    assert list(world.share_group().members) == ["m"]
    world.clock.advance(1)
    assert world.share_group().is_empty
    assert world.share_group().epoch == 4
    response = world.share_beat(member_id="m", member_epoch=3)
    assert response.error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_silent_member_is_fenced_when_the_log_takes_records_again(
    world: ShareGroupWorld,
) -> None:
    world.log.append_error = ErrorCode.NOT_ENOUGH_REPLICAS
    world.clock.advance(60_000)
    assert list(world.share_group().members) == ["m"]
    world.log.append_error = None
    world.clock.advance(500)
    assert world.share_group().is_empty


def test_a_member_leaves(world: ShareGroupWorld) -> None:
    response = world.share_beat(member_id="m", member_epoch=-1)
    assert (response.error_code, response.member_id, response.member_epoch) == (0, "m", -1)
    assert world.share_group().state is ModernGroupState.EMPTY


def test_a_full_group_takes_nobody() -> None:
    world = ShareGroupWorld(group_share_max_size=1)
    world.set_topics({"t": 1})
    world.join_share("m", "t")
    response = world.join_share("n", "t")
    assert response.error_code == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert world.join_share("m", "t").error_code == 0


def test_settings_of_the_group_count_within_limits(world: ShareGroupWorld) -> None:
    world.set_topics(
        {"t": 3},
        group_configs={
            "g": {"share.heartbeat.interval.ms": "9000", "share.session.timeout.ms": "99999"}
        },
    )
    response = world.share_beat(member_id="m", member_epoch=3)
    assert response.heartbeat_interval_ms == 9_000
    world.clock.advance(59_999)
    assert not world.share_group().is_empty
    world.clock.advance(1)
    assert world.share_group().is_empty


def test_assignments_keep_their_interval() -> None:
    world = ShareGroupWorld(group_share_assignment_interval_ms=5_000)
    world.set_topics({"t": 2})
    world.join_share("m", "t")
    world.initialized()
    early = world.share_beat(member_id="m", member_epoch=2)
    assert early.member_epoch == 2
    world.clock.advance(5_000)
    assert world.share_beat(member_id="m", member_epoch=2).member_epoch == 3


def test_a_move_keeps_members_and_gives_them_a_session(world: ShareGroupWorld) -> None:
    world.clock.advance(30_000)
    world.reload()
    world.clock.advance(44_999)
    assert list(world.share_group().members) == ["m"]
    assert world.share_beat(member_id="m", member_epoch=3).error_code == 0


def test_describe_and_list(world: ShareGroupWorld) -> None:
    described = world.run_share("g", lambda shares, _: shares.describe("g"))
    assert (described.group_state, described.assignor_name) == ("Stable", "simple")
    assert (described.group_epoch, described.assignment_epoch) == (3, 3)
    (member,) = described.members
    assert (member.member_id, member.client_host, member.member_epoch) == ("m", "/10.0.0.1", 3)
    assert world.names(member.assignment.topic_partitions) == {("t", 0), ("t", 1), ("t", 2)}
    other = world.run_share("consumers", lambda shares, _: shares.describe("consumers"))
    assert other.error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert other.error_message == "Group consumers is not a share group."
    listed: Any = Call(
        world.coordinator.list_groups(ListGroupsRequest(types_filter=["share"]))
    ).response
    (group,) = listed.groups
    assert (group.group_id, group.group_type, group.protocol_type) == ("g", "share", "share")
    assert group.group_state == "Stable"


def test_other_protocols_find_no_group_of_theirs(world: ShareGroupWorld) -> None:
    assert world.join("c", group_id="g").error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert world.commit_error({("t", 0): 1}) is ErrorCode.GROUP_ID_NOT_FOUND
    fetched: Any = Call(
        world.coordinator.offset_fetch(
            OffsetFetchRequestGroup(group_id="g", topics=None), require_stable=False
        )
    ).response
    assert fetched.error_code == ErrorCode.GROUP_ID_NOT_FOUND
    deleted: Any = Call(world.coordinator.offset_delete(OffsetDeleteRequest(group_id="g"))).response
    assert deleted.error_code == ErrorCode.GROUP_ID_NOT_FOUND
    response = world.beat_joining("x", "t", group_id="g")
    assert response.error_code == ErrorCode.GROUP_ID_NOT_FOUND


def test_empty_share_groups_do_not_expire(world: ShareGroupWorld) -> None:
    world.share_beat(member_id="m", member_epoch=-1)
    world.clock.advance(30 * 24 * 3_600_000)
    world.coordinator.expire_offsets()
    assert world.share_group().is_empty


# Offsets


def alter(world: ShareGroupWorld, group_id: str, **offsets: dict[int, int]) -> Any:
    request = altering.AlterShareGroupOffsetsRequest(
        group_id=group_id,
        topics=[
            altering.AlterShareGroupOffsetsRequestTopic(
                topic_name=name,
                partitions=[
                    altering.AlterShareGroupOffsetsRequestPartition(
                        partition_index=index, start_offset=offset
                    )
                    for index, offset in partitions.items()
                ],
            )
            for name, partitions in offsets.items()
        ],
    )
    return world.run_share(group_id, lambda shares, now: shares.alter(request, now))


def begin_deletion(world: ShareGroupWorld, group_id: str, *topics: str) -> Any:
    request = DeleteShareGroupOffsetsRequest(
        group_id=group_id,
        topics=[DeleteShareGroupOffsetsRequestTopic(topic_name=name) for name in topics],
    )
    return world.run_share(group_id, lambda shares, now: shares.begin_deletion(request, now))


@pytest.mark.parametrize(
    ("group_id", "error"),
    [("g", "NON_EMPTY_GROUP"), ("consumers", "GROUP_ID_NOT_FOUND")],
)
def test_offsets_that_cannot_be_altered(world: ShareGroupWorld, group_id: str, error: str) -> None:
    outcome = alter(world, group_id, t={0: 5})
    assert isinstance(outcome, Refusal)
    assert outcome.error is ErrorCode[error]


def test_altering_offsets_makes_a_group(world: ShareGroupWorld) -> None:
    outcome = alter(world, "new", t={0: 5, 7: 1}, missing={0: 1})
    assert isinstance(outcome, Alteration)
    assert outcome.initialization.start_offsets == {topic_id("t"): {0: 5}}
    errors = {
        (topic.topic_name, partition.partition_index): partition.error_code
        for topic in outcome.response.responses
        for partition in topic.partitions
    }
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert errors == {("t", 0): 0, ("t", 7): unknown, ("missing", 0): unknown}
    world.asked.append(outcome.initialization)
    world.initialized()
    group = world.share_group("new")
    assert group.state_metadata.initialized[topic_id("t")].partitions == (0,)
    assert group.is_empty


@pytest.mark.parametrize(
    ("group_id", "error"),
    [
        ("g", "NON_EMPTY_GROUP"),
        ("consumers", "GROUP_ID_NOT_FOUND"),
        ("nobody", "GROUP_ID_NOT_FOUND"),
    ],
)
def test_offsets_that_cannot_be_deleted(world: ShareGroupWorld, group_id: str, error: str) -> None:
    outcome = begin_deletion(world, group_id, "t")
    assert isinstance(outcome, Refusal)
    assert outcome.error is ErrorCode[error]


def test_deleting_offsets_takes_two_steps_and_may_be_repeated(world: ShareGroupWorld) -> None:
    world.share_beat(member_id="m", member_epoch=-1)
    for _ in range(2):  # the first attempt does not come to its end
        outcome = begin_deletion(world, "g", "t", "u", "missing")
        assert isinstance(outcome, Deletion)
        assert outcome.partitions == {topic_id("t"): (0, 1, 2)}
        assert {error.topic_name for error in outcome.errors} == {"u", "missing"}
        assert world.share_group().state_metadata.deleting == {topic_id("t"): "t"}
    world.run_share("g", lambda shares, now: shares.end_deletion("g", [topic_id("t")], now))
    state = world.share_group().state_metadata
    assert (state.initializing, state.initialized, state.deleting) == ({}, {}, {})


def test_a_topic_that_comes_back_is_deleted_no_more(world: ShareGroupWorld) -> None:
    world.share_beat(member_id="m", member_epoch=-1)
    begin_deletion(world, "g", "t")
    world.join_share("m", "t")
    state = world.share_group().state_metadata
    assert list(state.initializing) == [topic_id("t")]
    assert state.deleting == {}


class Persister:
    """Notes what it is asked to delete; fails with `error` if there is one."""

    def __init__(self) -> None:
        self.deleted: list[tuple[str, Uuid, int]] = []
        self.error: ErrorCode | None = None

    async def delete(self, group_id: str, topic: Uuid, partition: int) -> None:
        if self.error is not None:
            raise ShareStateError(self.error)
        self.deleted.append((group_id, topic, partition))


def service_of(world: ShareGroupWorld, persister: Persister) -> ShareGroupService:
    unused: Any = None
    store: Any = persister
    return ShareGroupService(world.coordinator, store, unused, unused, world.clock)


def test_topics_that_are_gone_are_forgotten(world: ShareGroupWorld) -> None:
    service_of(world, Persister()).on_topics_deleted([topic_id("t")])
    assert world.share_group().state_metadata.initialized == {}


async def test_groups_are_deleted_once_the_share_coordinators_have(world: ShareGroupWorld) -> None:
    persister = Persister()
    service = service_of(world, persister)

    async def delete(*group_ids: str) -> dict[str, int]:
        response = await service.delete_groups(DeleteGroupsRequest(groups_names=list(group_ids)))
        return {result.group_id: result.error_code for result in response.results}

    assert await delete("g", "consumers", "x") == {
        "g": ErrorCode.NON_EMPTY_GROUP,
        "consumers": ErrorCode.NON_EMPTY_GROUP,
        "x": ErrorCode.GROUP_ID_NOT_FOUND,
    }
    assert persister.deleted == []
    world.share_beat(member_id="m", member_epoch=-1)
    persister.error = ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert await delete("g") == {"g": ErrorCode.COORDINATOR_NOT_AVAILABLE}
    assert world.share_group().state_metadata.deleting == {topic_id("t"): "t"}
    persister.error = None
    assert await delete("g") == {"g": ErrorCode.NONE}
    assert persister.deleted == [("g", topic_id("t"), partition) for partition in range(3)]
    assert world.shard.groups.get("g") is None
    world.reload()
    assert world.shard.groups.get("g") is None
