"""Rights required by the APIs of groups and of their offsets."""

from __future__ import annotations

from collections.abc import Callable

from barnabas.base.ids import uuid_to_text
from barnabas.protocol import apis
from barnabas.protocol.acls import Operation
from barnabas.protocol.apis import AnyApi
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import (
    consumer_groups,
    groups,
    offsets,
    share_fetch,
    share_groups,
    share_state,
    streams_groups,
)
from barnabas.protocol.schema import Message
from support.node_process import wait_until
from support.required_rights.needs import Case, cluster, group, topic, transaction
from support.required_rights.rights_world import METADATA, OFFSET, World

MEMBER = "AAAAAAAAAAAAAAAAAAAAAQ"
PROTOCOL_TYPE = "rights"


# Offsets


def _commit_request(world: World) -> offsets.OffsetCommitRequest:
    committed = offsets.OffsetCommitRequestPartition(
        partition_index=0, committed_offset=OFFSET, committed_metadata=METADATA
    )
    named = offsets.OffsetCommitRequestTopic(
        name=world.topic, topic_id=world.topic_id, partitions=[committed]
    )
    return offsets.OffsetCommitRequest(group_id=world.group, topics=[named])


def _commit(world: World) -> Message:
    world.make_topic()
    return _commit_request(world)


def _repeated_commit(world: World) -> Message:
    """One that is equal to the last of the connection."""
    world.make_topic()
    request = _commit_request(world)
    request.topics[0].partitions[0].committed_metadata = ""
    for _ in range(2):
        (stored,) = world.call_as_user(request, 9).topics
        assert not stored.partitions[0].error_code
    return request


def committed(world: World) -> None:
    """The group has committed an offset of the topic."""
    world.make_topic()
    (stored,) = world.call(_commit_request(world), 9).topics
    assert not stored.partitions[0].error_code


def _fetch_offsets(world: World) -> Message:
    committed(world)
    wanted = offsets.OffsetFetchRequestTopics(
        name=world.topic, topic_id=world.topic_id, partition_indexes=[0]
    )
    asked = offsets.OffsetFetchRequestGroup(group_id=world.group, topics=[wanted])
    return offsets.OffsetFetchRequest(groups=[asked])


def _fetch_all_offsets(world: World) -> Message:
    committed(world)
    asked = offsets.OffsetFetchRequestGroup(group_id=world.group, topics=None)
    return offsets.OffsetFetchRequest(groups=[asked])


def _fetch_offsets_of_one(world: World) -> Message:
    committed(world)
    wanted = offsets.OffsetFetchRequestTopic(name=world.topic, partition_indexes=[0])
    return offsets.OffsetFetchRequest(group_id=world.group, topics=[wanted])


def _delete_offsets(world: World) -> Message:
    committed(world)
    doomed = offsets.OffsetDeleteRequestPartition(partition_index=0)
    named = offsets.OffsetDeleteRequestTopic(name=world.topic, partitions=[doomed])
    return offsets.OffsetDeleteRequest(group_id=world.group, topics=[named])


# Members


def _join_request(world: World, member_id: str) -> Message:
    protocol = groups.JoinGroupRequestProtocol(name="range", metadata=b"subscription")
    return groups.JoinGroupRequest(
        group_id=world.group,
        session_timeout_ms=30_000,
        rebalance_timeout_ms=30_000,
        member_id=member_id,
        protocol_type=PROTOCOL_TYPE,
        protocols=[protocol],
    )


def joined(world: World) -> tuple[str, int]:
    """A member of a classic group, and its generation."""
    first = world.call(_join_request(world, ""))
    assert first.error_code == ErrorCode.MEMBER_ID_REQUIRED
    second = world.call(_join_request(world, first.member_id))
    assert not second.error_code, second.error_code
    return second.member_id, second.generation_id


def synced(world: World) -> tuple[str, int]:
    """A member of a stable classic group, and its generation."""
    member_id, generation = joined(world)
    answer = world.call(_sync_request(world, member_id, generation))
    assert not answer.error_code, answer.error_code
    return member_id, generation


def _sync_request(world: World, member_id: str, generation: int) -> Message:
    assigned = groups.SyncGroupRequestAssignment(
        member_id=member_id, assignment=b"what-is-assigned"
    )
    return groups.SyncGroupRequest(
        group_id=world.group,
        generation_id=generation,
        member_id=member_id,
        protocol_type=PROTOCOL_TYPE,
        protocol_name="range",
        assignments=[assigned],
    )


def _join(world: World) -> Message:
    return _join_request(world, "")


def _sync(world: World) -> Message:
    return _sync_request(world, *joined(world))


def _heartbeat(world: World) -> Message:
    member_id, generation = synced(world)
    return groups.HeartbeatRequest(
        group_id=world.group, generation_id=generation, member_id=member_id
    )


def _leave(world: World) -> Message:
    member_id, _ = synced(world)
    leaving = groups.MemberIdentity(member_id=member_id)
    return groups.LeaveGroupRequest(group_id=world.group, members=[leaving])


def _consumer_heartbeat_request(world: World) -> Message:
    return consumer_groups.ConsumerGroupHeartbeatRequest(
        group_id=world.group,
        member_id=MEMBER,
        rebalance_timeout_ms=30_000,
        subscribed_topic_names=[world.topic],
        topic_partitions=[],
    )


def _consumer_heartbeat(world: World) -> Message:
    world.make_topic()
    return _consumer_heartbeat_request(world)


def _consumer_heartbeat_by_regex(world: World) -> Message:
    world.make_topic()
    return consumer_groups.ConsumerGroupHeartbeatRequest(
        group_id=world.group,
        member_id=MEMBER,
        rebalance_timeout_ms=30_000,
        subscribed_topic_regex="topic-.*",
        topic_partitions=[],
    )


def _describe_consumer_group(world: World) -> Message:
    world.make_topic()
    heard = world.call(_consumer_heartbeat_request(world))
    assert not heard.error_code, heard.error_message
    return consumer_groups.ConsumerGroupDescribeRequest(group_ids=[world.group])


def _share_heartbeat_request(world: World, epoch: int = 0) -> Message:
    return share_groups.ShareGroupHeartbeatRequest(
        group_id=world.group,
        member_id=MEMBER,
        member_epoch=epoch,
        subscribed_topic_names=[world.topic],
    )


def _share_heartbeat(world: World) -> Message:
    world.make_topic()
    return _share_heartbeat_request(world)


def share_member(world: World) -> None:
    """A member of a share group that is assigned the topic."""
    world.make_topic()
    heard = world.call(_share_heartbeat_request(world))
    assert not heard.error_code, heard.error_message
    epoch = heard.member_epoch

    def is_assigned() -> bool:
        nonlocal epoch
        again = world.call(_share_heartbeat_request(world, epoch))
        epoch = again.member_epoch
        return bool(again.assignment and again.assignment.topic_partitions)

    if not (heard.assignment and heard.assignment.topic_partitions):
        wait_until(is_assigned, f"an assignment in {world.group}")


def _describe_share_group(world: World) -> Message:
    share_member(world)
    return share_groups.ShareGroupDescribeRequest(group_ids=[world.group])


def streams_heartbeat(world: World, changelog: str = "") -> Message:
    """A member that joins a streams group with one task, which may need a changelog."""
    changelogs = [streams_groups.TopicInfo(name=changelog)] if changelog else []
    subtopology = streams_groups.StreamsGroupHeartbeatSubtopology(
        subtopology_id="0", source_topics=[world.topic], state_changelog_topics=changelogs
    )
    topology = streams_groups.StreamsGroupHeartbeatTopology(epoch=1, subtopologies=[subtopology])
    return streams_groups.StreamsGroupHeartbeatRequest(
        group_id=world.group,
        member_id=MEMBER,
        rebalance_timeout_ms=30_000,
        topology=topology,
        active_tasks=[],
        standby_tasks=[],
        warmup_tasks=[],
        process_id="process",
        client_tags=[],
        task_offsets=None,
        task_end_offsets=None,
    )


def _streams_heartbeat(world: World) -> Message:
    world.make_topic()
    return streams_heartbeat(world)


def _describe_streams_group(world: World) -> Message:
    world.make_topic()
    heard = world.call(streams_heartbeat(world))
    assert not heard.error_code, heard.error_message
    return streams_groups.StreamsGroupDescribeRequest(group_ids=[world.group])


# Groups


def _describe_groups(world: World) -> Message:
    synced(world)
    return groups.DescribeGroupsRequest(groups=[world.group])


def _list_groups(world: World) -> Message:
    committed(world)
    return groups.ListGroupsRequest()


def _delete_groups(world: World) -> Message:
    committed(world)
    return groups.DeleteGroupsRequest(groups_names=[world.group])


def _find_group(world: World) -> Message:
    return groups.FindCoordinatorRequest(coordinator_keys=[world.group])


def _find_one_group(world: World) -> Message:
    return groups.FindCoordinatorRequest(key=world.group)


def _find_transaction(world: World) -> Message:
    return groups.FindCoordinatorRequest(key_type=1, coordinator_keys=[world.transactional_id])


def _find_share_partition(world: World) -> Message:
    world.make_topic()
    return groups.FindCoordinatorRequest(
        key_type=2, coordinator_keys=[f"{world.group}:{uuid_to_text(world.topic_id)}:0"]
    )


# Share groups


def _share_fetch_request(world: World) -> Message:
    wanted = share_fetch.FetchTopic(
        topic_id=world.topic_id, partitions=[share_fetch.FetchPartition(partition_index=0)]
    )
    return share_fetch.ShareFetchRequest(
        group_id=world.group,
        member_id=MEMBER,
        max_wait_ms=1,
        max_bytes=1 << 20,
        max_records=10,
        batch_size=10,
        topics=[wanted],
    )


def _share_fetch(world: World) -> Message:
    share_member(world)
    return _share_fetch_request(world)


def _share_acknowledge(world: World) -> Message:
    share_member(world)
    opened = world.call_as_user(_share_fetch_request(world))
    assert not opened.error_code, opened.error_message
    taken = share_fetch.AcknowledgementBatch(first_offset=0, last_offset=0, acknowledge_types=[1])
    partition = share_fetch.AcknowledgePartition(partition_index=0, acknowledgement_batches=[taken])
    named = share_fetch.AcknowledgeTopic(topic_id=world.topic_id, partitions=[partition])
    return share_fetch.ShareAcknowledgeRequest(
        group_id=world.group, member_id=MEMBER, share_session_epoch=1, topics=[named]
    )


def empty_share_group(world: World) -> None:
    """A share group without members that has begun with the topic."""
    share_member(world)
    left = world.call(
        share_groups.ShareGroupHeartbeatRequest(
            group_id=world.group, member_id=MEMBER, member_epoch=-1
        )
    )
    assert not left.error_code, left.error_message


def _describe_share_offsets(world: World) -> Message:
    empty_share_group(world)
    named = share_groups.DescribeShareGroupOffsetsRequestTopic(
        topic_name=world.topic, partitions=[0]
    )
    return _describe_share_offsets_request(world, [named])


def _describe_all_share_offsets(world: World) -> Message:
    empty_share_group(world)
    return _describe_share_offsets_request(world, None)


def _describe_share_offsets_request(
    world: World,
    topics: list[share_groups.DescribeShareGroupOffsetsRequestTopic] | None,
) -> Message:
    asked = share_groups.DescribeShareGroupOffsetsRequestGroup(group_id=world.group, topics=topics)
    return share_groups.DescribeShareGroupOffsetsRequest(groups=[asked])


def _alter_share_offsets(world: World) -> Message:
    empty_share_group(world)
    moved = share_groups.AlterShareGroupOffsetsRequestPartition(partition_index=0, start_offset=1)
    named = share_groups.AlterShareGroupOffsetsRequestTopic(
        topic_name=world.topic, partitions=[moved]
    )
    return share_groups.AlterShareGroupOffsetsRequest(group_id=world.group, topics=[named])


def _delete_share_offsets(world: World) -> Message:
    empty_share_group(world)
    named = share_groups.DeleteShareGroupOffsetsRequestTopic(topic_name=world.topic)
    return share_groups.DeleteShareGroupOffsetsRequest(group_id=world.group, topics=[named])


def _initialize_state_request(world: World) -> Message:
    begun = share_state.InitializeShareGroupStatePartitionData(
        partition=0, state_epoch=0, start_offset=0
    )
    named = share_state.InitializeStateData(topic_id=world.topic_id, partitions=[begun])
    return share_state.InitializeShareGroupStateRequest(group_id=world.group, topics=[named])


def _initialize_state(world: World) -> Message:
    _begun_state(world)
    return _initialize_state_request(world)


def _begun_state(world: World) -> None:
    """Kafka's coordinator refuses it at first: it is being loaded, or knows no such topic yet."""
    world.make_topic()
    request = _initialize_state_request(world)
    wait_until(
        lambda: not world.call(request).results[0].partitions[0].error_code, "a state to begin"
    )


def _read_state(world: World) -> Message:
    _begun_state(world)
    wanted = share_state.ReadShareGroupStatePartitionData(partition=0, leader_epoch=0)
    named = share_state.ReadStateData(topic_id=world.topic_id, partitions=[wanted])
    return share_state.ReadShareGroupStateRequest(group_id=world.group, topics=[named])


def _read_summary(world: World) -> Message:
    _begun_state(world)
    wanted = share_state.ReadShareGroupStateSummaryPartitionData(partition=0, leader_epoch=0)
    named = share_state.ReadStateSummaryData(topic_id=world.topic_id, partitions=[wanted])
    return share_state.ReadShareGroupStateSummaryRequest(group_id=world.group, topics=[named])


def _write_state(world: World) -> Message:
    _begun_state(world)
    written = share_state.WriteShareGroupStatePartitionData(
        partition=0, state_epoch=0, leader_epoch=0, start_offset=1
    )
    named = share_state.WriteStateData(topic_id=world.topic_id, partitions=[written])
    return share_state.WriteShareGroupStateRequest(group_id=world.group, topics=[named])


def _delete_state(world: World) -> Message:
    _begun_state(world)
    doomed = share_state.DeleteShareGroupStatePartitionData(partition=0)
    named = share_state.DeleteStateData(topic_id=world.topic_id, partitions=[doomed])
    return share_state.DeleteShareGroupStateRequest(group_id=world.group, topics=[named])


READ_GROUP = group(Operation.READ)
DESCRIBE_GROUP = group(Operation.DESCRIBE)
DESCRIBE_TOPIC = topic(Operation.DESCRIBE)
READ_TOPIC = topic(Operation.READ)
_MEMBER_NEEDS = [READ_GROUP, DESCRIBE_TOPIC]
_DESCRIBER_NEEDS = [DESCRIBE_GROUP, DESCRIBE_TOPIC]


def _between_brokers(api: AnyApi, make: Callable[[World], Message]) -> Case:
    """A request that only brokers send."""
    return Case(api, "", [cluster(Operation.CLUSTER_ACTION)], make)


CASES = (
    Case(apis.OFFSET_COMMIT, "", [READ_GROUP, READ_TOPIC], _commit),
    Case(apis.OFFSET_COMMIT, "by name", [READ_GROUP, READ_TOPIC], _commit, 9),
    Case(apis.OFFSET_COMMIT, "again", [READ_GROUP, READ_TOPIC], _repeated_commit, 9),
    Case(apis.OFFSET_FETCH, "", [DESCRIBE_GROUP, DESCRIBE_TOPIC], _fetch_offsets),
    Case(apis.OFFSET_FETCH, "by name", [DESCRIBE_GROUP, DESCRIBE_TOPIC], _fetch_offsets, 9),
    Case(apis.OFFSET_FETCH, "of one", [DESCRIBE_GROUP, DESCRIBE_TOPIC], _fetch_offsets_of_one, 7),
    Case(apis.OFFSET_FETCH, "old", [DESCRIBE_GROUP, DESCRIBE_TOPIC], _fetch_offsets_of_one, 1),
    Case(
        apis.OFFSET_FETCH,
        "of all",
        [DESCRIBE_GROUP, DESCRIBE_TOPIC.hidden],
        _fetch_all_offsets,
    ),
    Case(apis.FIND_COORDINATOR, "of a group", [DESCRIBE_GROUP], _find_group),
    Case(apis.FIND_COORDINATOR, "of one group", [DESCRIBE_GROUP], _find_one_group, 3),
    Case(
        apis.FIND_COORDINATOR,
        "of a transaction",
        [transaction(Operation.DESCRIBE)],
        _find_transaction,
    ),
    Case(
        apis.FIND_COORDINATOR,
        "of a share-partition",
        [cluster(Operation.CLUSTER_ACTION)],
        _find_share_partition,
    ),
    Case(
        apis.JOIN_GROUP,
        "",
        [READ_GROUP],
        _join,
        succeeds_with=frozenset({ErrorCode.MEMBER_ID_REQUIRED}),
    ),
    Case(apis.HEARTBEAT, "", [READ_GROUP], _heartbeat),
    Case(apis.LEAVE_GROUP, "", [READ_GROUP], _leave),
    Case(apis.SYNC_GROUP, "", [READ_GROUP], _sync),
    Case(apis.DESCRIBE_GROUPS, "", [DESCRIBE_GROUP], _describe_groups),
    Case(
        apis.LIST_GROUPS,
        "",
        [cluster(Operation.DESCRIBE).or_(DESCRIBE_GROUP).hidden],
        _list_groups,
    ),
    Case(apis.DELETE_GROUPS, "", [group(Operation.DELETE)], _delete_groups),
    Case(apis.OFFSET_DELETE, "", [group(Operation.DELETE), READ_TOPIC], _delete_offsets),
    Case(apis.CONSUMER_GROUP_HEARTBEAT, "", _MEMBER_NEEDS, _consumer_heartbeat),
    Case(
        apis.CONSUMER_GROUP_HEARTBEAT,
        "by regular expression",
        [READ_GROUP, DESCRIBE_TOPIC.hidden],
        _consumer_heartbeat_by_regex,
    ),
    Case(apis.CONSUMER_GROUP_DESCRIBE, "", _DESCRIBER_NEEDS, _describe_consumer_group),
    Case(apis.SHARE_GROUP_HEARTBEAT, "", _MEMBER_NEEDS, _share_heartbeat),
    Case(apis.SHARE_GROUP_DESCRIBE, "", _DESCRIBER_NEEDS, _describe_share_group),
    Case(apis.SHARE_FETCH, "", [READ_GROUP, READ_TOPIC], _share_fetch),
    Case(apis.SHARE_ACKNOWLEDGE, "", [READ_GROUP, READ_TOPIC], _share_acknowledge),
    _between_brokers(apis.INITIALIZE_SHARE_GROUP_STATE, _initialize_state),
    _between_brokers(apis.READ_SHARE_GROUP_STATE, _read_state),
    _between_brokers(apis.WRITE_SHARE_GROUP_STATE, _write_state),
    _between_brokers(apis.DELETE_SHARE_GROUP_STATE, _delete_state),
    _between_brokers(apis.READ_SHARE_GROUP_STATE_SUMMARY, _read_summary),
    Case(apis.STREAMS_GROUP_HEARTBEAT, "", _MEMBER_NEEDS, _streams_heartbeat),
    Case(apis.STREAMS_GROUP_DESCRIBE, "", _DESCRIBER_NEEDS, _describe_streams_group),
    Case(
        apis.DESCRIBE_SHARE_GROUP_OFFSETS,
        "",
        [DESCRIBE_GROUP, DESCRIBE_TOPIC],
        _describe_share_offsets,
    ),
    Case(
        apis.DESCRIBE_SHARE_GROUP_OFFSETS,
        "of all",
        [DESCRIBE_GROUP, DESCRIBE_TOPIC.hidden],
        _describe_all_share_offsets,
    ),
    Case(apis.ALTER_SHARE_GROUP_OFFSETS, "", [READ_GROUP, READ_TOPIC], _alter_share_offsets),
    Case(
        apis.DELETE_SHARE_GROUP_OFFSETS,
        "",
        [group(Operation.DELETE), READ_TOPIC],
        _delete_share_offsets,
    ),
)
