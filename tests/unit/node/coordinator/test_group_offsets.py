"""OffsetCommit, OffsetFetch, OffsetDelete, retention, transactions and deleted topics."""

import pytest

from barnabas.base.ids import ZERO_UUID, Uuid
from barnabas.node.coordinator.group.classic.states import GroupState
from barnabas.node.coordinator.group.offsets import OffsetStore, is_valid_for
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.group_records import (
    GroupMetadataValue,
    OffsetCommitKey,
    OffsetCommitValue,
)
from barnabas.protocol.messages.offsets import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from support.group_world import GroupWorld

DAY_MS = 24 * 3_600_000
WEEK_MS = 7 * DAY_MS
TOPIC_ID = Uuid(bytes(range(16)))


# Commit and fetch


def test_what_is_committed_is_fetched_with_all_its_parts():
    world = GroupWorld()
    world.commit({("t", 0): 5}, metadata="where I was", leader_epoch=3)
    (topic,) = world.fetch(("t", 0), ("t", 1)).response.topics
    first, second = topic.partitions
    assert (first.committed_offset, first.committed_leader_epoch) == (5, 3)
    assert first.metadata == "where I was"
    assert (second.committed_offset, second.committed_leader_epoch) == (-1, -1)
    assert second.metadata == ""
    assert second.error_code == ErrorCode.NONE


def test_no_metadata_reads_as_empty():
    world = GroupWorld()
    world.commit({("t", 0): 5}, metadata=None)
    assert world.fetch(("t", 0)).response.topics[0].partitions[0].metadata == ""


def test_unknown_groups_have_no_offsets():
    world = GroupWorld()
    assert world.fetch().response.topics == []
    assert world.fetch(("t", 0)).response.topics[0].partitions[0].committed_offset == -1
    assert world.fetch(("t", 0)).error is ErrorCode.NONE


@pytest.mark.parametrize(
    ("metadata", "expected"),
    [
        ("x" * 4_096, ErrorCode.NONE),
        ("x" * 4_097, ErrorCode.OFFSET_METADATA_TOO_LARGE),
        ("\u00e9" * 4_096, ErrorCode.NONE),
        ("\U0001f600" * 2_048, ErrorCode.NONE),
        ("\U0001f600" * 2_049, ErrorCode.OFFSET_METADATA_TOO_LARGE),
    ],
)
def test_metadata_is_measured_in_java_characters(metadata, expected):
    world = GroupWorld()
    assert world.commit_error({("t", 0): 5}, metadata=metadata) is expected
    assert bool(world.offsets()) == (expected is ErrorCode.NONE)


def test_a_commit_without_generation_creates_a_group_that_only_keeps_offsets():
    world = GroupWorld()
    assert world.commit_error({("t", 0): 5}) is ErrorCode.NONE
    assert world.group().state is GroupState.EMPTY
    assert world.group().protocol_type is None
    world.reload()
    assert world.offsets() == {("t", 0): 5}


@pytest.mark.parametrize(
    ("version", "expected"), [(8, "ILLEGAL_GENERATION"), (9, "GROUP_ID_NOT_FOUND")]
)
def test_a_commit_of_a_member_for_an_unknown_group(version, expected):
    world = GroupWorld()
    error = world.commit_error({("t", 0): 5}, "a", 1, version=version)
    assert error is ErrorCode[expected]
    assert world.log.records() == []


@pytest.mark.parametrize(
    ("member", "generation", "options", "expected"),
    [
        ("a", 1, {}, "NONE"),
        ("a", 0, {}, "ILLEGAL_GENERATION"),
        ("a", 2, {}, "ILLEGAL_GENERATION"),
        ("a", -1, {}, "ILLEGAL_GENERATION"),
        ("unknown", 1, {}, "UNKNOWN_MEMBER_ID"),
        ("", -1, {}, "UNKNOWN_MEMBER_ID"),
        ("", -1, {"instance_id": "x"}, "UNKNOWN_MEMBER_ID"),
    ],
)
def test_commits_to_a_group_with_members(member, generation, options, expected):
    world = GroupWorld()
    (a,) = world.stable_group("a")
    member_id = a if member == "a" else member
    assert (
        world.commit_error({("t", 0): 5}, member_id, generation, **options) is ErrorCode[expected]
    )


def test_commits_while_members_join_count_for_the_generation_that_ends():
    world = GroupWorld()
    a, b = world.stable_group("a", "b")
    world.join("a", a)
    assert world.commit_error({("t", 0): 5}, b, 1) is ErrorCode.NONE


def test_commits_before_the_assignment_must_wait():
    world = GroupWorld()
    a, _ = world.join_fully("a")
    world.clock.advance(3_000)
    assert world.commit_error({("t", 0): 5}, a, 1) is ErrorCode.REBALANCE_IN_PROGRESS


def test_an_administrator_may_commit_once_the_members_are_gone():
    world = GroupWorld()
    world.stable_group("a")
    world.clock.advance(10_000)
    assert world.commit_error({("t", 0): 5}) is ErrorCode.NONE
    assert world.commit_error({("t", 0): 6}, "a", 1) is ErrorCode.UNKNOWN_MEMBER_ID


def test_the_empty_group_id_may_keep_offsets():
    world = GroupWorld()
    assert world.commit_error({("t", 0): 5}, group_id="") is ErrorCode.NONE
    assert world.offsets("") == {("t", 0): 5}


def test_commits_of_a_topic_made_anew_do_not_pass_for_its_namesakes():
    world = GroupWorld()
    store = world.shard.offsets
    store.replay(0, -1, key("g", "t", 0), value(5, topic_id=TOPIC_ID))
    offset = store.get("g", "t", 0)
    assert is_valid_for(offset, TOPIC_ID)
    assert is_valid_for(offset, ZERO_UUID)
    assert not is_valid_for(offset, Uuid(bytes(15) + b"\x01"))
    assert not is_valid_for(None, TOPIC_ID)


# Deleting


def delete(world: GroupWorld, topic: str, *partitions: int, group_id: str = "g"):
    request = OffsetDeleteRequest(
        group_id=group_id,
        topics=[
            OffsetDeleteRequestTopic(
                name=topic,
                partitions=[OffsetDeleteRequestPartition(partition_index=p) for p in partitions],
            )
        ],
    )
    return world.coordinator.offset_delete(request)


def test_offsets_are_deleted():
    world = GroupWorld()
    world.commit({("t", 0): 5, ("t", 1): 6})
    response = delete(world, "t", 0, 7)
    assert [p.error_code for p in response.topics[0].partitions] == [0, 0]
    assert world.offsets() == {("t", 1): 6}
    world.reload()
    assert world.offsets() == {("t", 1): 6}


def test_offsets_of_topics_that_members_read_are_not_deleted():
    world = GroupWorld()
    (a,) = world.stable_group("a", topics=("t",))
    world.commit({("t", 0): 5, ("u", 0): 6}, a, 1)
    subscribed = delete(world, "t", 0).topics[0].partitions[0].error_code
    assert subscribed == ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
    assert delete(world, "u", 0).topics[0].partitions[0].error_code == ErrorCode.NONE
    assert world.offsets() == {("t", 0): 5}


def test_what_members_read_is_unknown_where_their_metadata_is_not_understood():
    world = GroupWorld()
    (a,) = world.stable_group("a", metadata=b"\x00\x00\x7f")
    world.commit({("u", 0): 6}, a, 1)
    error = delete(world, "u", 0).topics[0].partitions[0].error_code
    assert error == ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC


def test_groups_that_are_not_of_consumers_must_be_empty():
    world = GroupWorld()
    world.stable_group("a", protocol_type="connect")
    assert delete(world, "t", 0).error_code == ErrorCode.NON_EMPTY_GROUP
    assert delete(world, "t", 0, group_id="other").error_code == ErrorCode.GROUP_ID_NOT_FOUND


def test_offsets_of_deleted_topics_go_everywhere():
    world = GroupWorld()
    world.commit({("t", 0): 5, ("u", 0): 6}, group_id="one")
    world.commit({("t", 3): 5}, group_id="two")
    world.coordinator.on_topics_deleted(["t", "never seen"])
    assert world.offsets("one") == {("u", 0): 6}
    assert world.offsets("two") == {}


# Retention


def test_offsets_of_a_group_without_members_outlive_it_by_the_retention():
    world = GroupWorld()
    (a,) = world.stable_group("a")
    world.commit({("t", 0): 5}, a, 1)
    world.clock.advance(10_000)
    assert world.group().state is GroupState.EMPTY
    world.clock.advance(WEEK_MS - 1)
    world.coordinator.expire_offsets()
    assert world.offsets() == {("t", 0): 5}
    world.clock.advance(1)
    world.coordinator.expire_offsets()
    assert world.offsets() == {}
    assert world.shard.groups.get("g") is None
    world.reload()
    assert world.shard.groups.get("g") is None


def test_offsets_without_members_expire_after_their_own_commit():
    world = GroupWorld()
    world.commit({("t", 0): 5})
    world.clock.advance(DAY_MS)
    world.commit({("t", 1): 5})
    world.clock.advance(WEEK_MS - DAY_MS)
    world.coordinator.expire_offsets()
    assert world.offsets() == {("t", 1): 5}
    assert world.shard.groups.get("g") is not None
    world.clock.advance(DAY_MS)
    world.coordinator.expire_offsets()
    assert world.shard.groups.get("g") is None


def test_in_a_stable_group_only_topics_that_nobody_reads_expire():
    world = GroupWorld(offsets_retention_minutes=1)
    (a,) = world.stable_group("a", topics=("t",), session_timeout_ms=600_000)
    world.commit({("t", 0): 5, ("u", 0): 5}, a, 1)
    world.clock.advance(60_000)
    world.coordinator.expire_offsets()
    assert world.offsets() == {("t", 0): 5}


@pytest.mark.parametrize("protocol_type", ["consumer", "connect"])
def test_nothing_expires_during_a_rebalance_or_without_knowing_the_topics(protocol_type):
    world = GroupWorld(offsets_retention_minutes=1)
    options = {"session_timeout_ms": 600_000, "protocol_type": protocol_type}
    a, _ = world.stable_group("a", "b", **options)
    world.commit({("u", 0): 5}, a, 1)
    if protocol_type == "consumer":
        world.join("a", a, rebalance_timeout_ms=600_000, **options)
    world.clock.advance(61_000)
    world.coordinator.expire_offsets()
    assert world.offsets() == {("u", 0): 5}


def test_a_commit_may_bring_its_own_expiry_up_to_version_4():
    world = GroupWorld()
    world.commit({("t", 0): 5}, version=4, retention_ms=60_000)
    (record,) = world.log.records()
    assert record.value_version == 1
    world.reload()
    world.clock.advance(59_999)
    world.coordinator.expire_offsets()
    assert world.offsets() == {("t", 0): 5}
    world.clock.advance(1)
    world.coordinator.expire_offsets()
    assert world.offsets() == {}


def test_a_group_that_somebody_is_about_to_join_is_kept():
    world = GroupWorld()
    world.join("a", session_timeout_ms=600_000)
    world.coordinator.expire_offsets()
    assert world.shard.groups.get("g") is not None


# Transactions


def key(group: str, topic: str, partition: int) -> OffsetCommitKey:
    return OffsetCommitKey(group=group, topic=topic, partition=partition)


def value(offset: int, **options) -> OffsetCommitValue:
    return OffsetCommitValue(offset=offset, metadata="", commit_timestamp=0, **options)


@pytest.mark.parametrize("is_commit", [True, False])
def test_offsets_of_a_transaction_count_once_it_has_committed(is_commit):
    store = OffsetStore()
    store.replay(0, -1, key("g", "t", 0), value(1))
    store.replay(1, 42, key("g", "t", 0), value(2))
    assert store.get("g", "t", 0).offset == 1
    assert store.is_unstable("g", "t", 0)
    assert store.has_open_transactions("g")
    store.replay_end_transaction(42, is_commit)
    assert store.get("g", "t", 0).offset == (2 if is_commit else 1)
    assert not store.is_unstable("g", "t", 0)


def test_the_later_record_counts_when_a_transaction_ends_after_a_plain_commit():
    store = OffsetStore()
    store.replay(0, 42, key("g", "t", 0), value(2))
    store.replay(1, -1, key("g", "t", 0), value(9))
    store.replay_end_transaction(42, True)
    assert store.get("g", "t", 0).offset == 9


def test_a_tombstone_takes_open_offsets_along():
    store = OffsetStore()
    store.replay(0, 42, key("g", "t", 0), value(2))
    store.replay(1, -1, key("g", "t", 0), None)
    store.replay_end_transaction(42, True)
    assert store.get("g", "t", 0) is None
    store.replay_end_transaction(7, True)


def test_unstable_offsets_are_withheld_where_stable_ones_are_required():
    world = GroupWorld()
    world.commit({("t", 0): 1, ("t", 1): 1})
    world.shard.offsets.replay(9, 42, key("g", "t", 0), value(2))
    loose = world.fetch(("t", 0)).response.topics[0].partitions[0]
    assert loose.committed_offset == 1
    for strict in (
        world.fetch(("t", 0), ("t", 1), require_stable=True),
        world.fetch(require_stable=True),
    ):
        first, second = strict.response.topics[0].partitions
        assert first.error_code == ErrorCode.UNSTABLE_OFFSET_COMMIT
        assert first.committed_offset == -1
        assert second.committed_offset == 1


def test_open_transactions_keep_offsets_and_groups():
    world = GroupWorld()
    world.commit({("t", 0): 1})
    world.shard.offsets.replay(9, 42, key("g", "t", 0), value(2))
    world.clock.advance(WEEK_MS)
    world.coordinator.expire_offsets()
    assert world.offsets() == {("t", 0): 1}
    world.shard.offsets.replay_end_transaction(42, False)
    world.coordinator.expire_offsets()
    assert world.shard.groups.get("g") is None


# Records


def test_records_are_of_the_versions_that_kafka_writes():
    world = GroupWorld()
    (a,) = world.stable_group("a")
    world.commit({("t", 0): 5}, a, 1, leader_epoch=2)
    created, assigned, committed = world.log.records()
    assert created.value == GroupMetadataValue(
        protocol_type="",
        generation=0,
        protocol=None,
        leader=None,
        current_state_timestamp=created.value.current_state_timestamp,
        members=[],
    )
    assert assigned.value_version == 3
    assert assigned.value.generation == 1
    assert assigned.value.members[0].client_host == "/10.0.0.1"
    assert committed.value_version == 4
    assert committed.value.leader_epoch == 2
