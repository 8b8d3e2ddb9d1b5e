"""Requests on committed offsets (commit, fetch, delete), and their expiry.

The group decides who may commit. Commits without a generation are for groups without
members; an unknown group comes into being by one. Source: Kafka's OffsetMetadataManager.
"""

from collections.abc import Iterable

from barnabas.base.ids import ZERO_UUID, Uuid
from barnabas.node.coordinator.decision import CoordinatorRecord, Moment
from barnabas.node.coordinator.group.config import GroupConfig
from barnabas.node.coordinator.group.group import Group
from barnabas.node.coordinator.group.offset_record import offset_record
from barnabas.node.coordinator.group.offsets import (
    NO_EXPIRY,
    CommittedOffset,
    OffsetStore,
    is_valid_for,
)
from barnabas.node.coordinator.group.records import offset_tombstone
from barnabas.node.coordinator.group.view import GroupMetadata
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
    OffsetFetchRequestGroup,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)
from barnabas.protocol.messages.transactions import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from barnabas.protocol.records.batch import NO_OFFSET

GROUP_ID_NOT_FOUND_FROM_VERSION = 9
NO_RETENTION = -1


def check_commit(group: Group | None, request: OffsetCommitRequest, version: int) -> ErrorCode:
    """Check whether the sender may commit offsets for the group."""
    generation = request.generation_id_or_member_epoch
    if group is None:
        if generation < 0:
            return ErrorCode.NONE
        return (
            ErrorCode.GROUP_ID_NOT_FOUND
            if version >= GROUP_ID_NOT_FOUND_FROM_VERSION
            else ErrorCode.ILLEGAL_GENERATION
        )
    return group.check_commit(request, version)


def commit(
    request: OffsetCommitRequest, config: GroupConfig, now: Moment
) -> tuple[list[CoordinatorRecord], OffsetCommitResponse]:
    """The records of a commit that `check_commit` allows; too long metadata is refused."""
    retention_ms = request.retention_time_ms
    expire_ms = NO_EXPIRY if retention_ms == NO_RETENTION else now.wall_ms + retention_ms
    records: list[CoordinatorRecord] = []
    response = OffsetCommitResponse()
    for topic in request.topics:
        results = [
            OffsetCommitResponsePartition(partition_index=index, error_code=error)
            for index, error in _commit_topic(
                request.group_id, topic, topic.topic_id, config, now, expire_ms, records
            )
        ]
        response.topics.append(
            OffsetCommitResponseTopic(name=topic.name, topic_id=topic.topic_id, partitions=results)
        )
    return records, response


def _commit_topic(
    group_id: str,
    topic: OffsetCommitRequestTopic | TxnOffsetCommitRequestTopic,
    topic_id: Uuid,
    config: GroupConfig,
    now: Moment,
    expire_ms: int,
    records: list[CoordinatorRecord],
) -> list[tuple[int, ErrorCode]]:
    """Add the records of a topic's offsets; the outcome of each partition."""
    outcomes = []
    for partition in topic.partitions:
        error = ErrorCode.NONE
        metadata = partition.committed_metadata or ""
        if _utf16_length(metadata) > config.offset_metadata_size_max:
            error = ErrorCode.OFFSET_METADATA_TOO_LARGE
        else:
            records.append(
                offset_record(
                    group_id,
                    topic.name,
                    partition.partition_index,
                    offset=partition.committed_offset,
                    leader_epoch=partition.committed_leader_epoch,
                    metadata=metadata,
                    commit_timestamp_ms=now.wall_ms,
                    expire_timestamp_ms=expire_ms,
                    topic_id=topic_id,
                )
            )
        outcomes.append((partition.partition_index, error))
    return outcomes


def check_transactional_commit(
    group: Group | None, request: TxnOffsetCommitRequest, metadata: GroupMetadata
) -> ErrorCode:
    """Check whether the producer may commit for the group: its consumer must be a member (KIP-447).

    Older clients name no member; then nothing is checked. The group's state does not matter.
    """
    generation = request.generation_id
    if group is None:
        return ErrorCode.NONE if generation < 0 else ErrorCode.ILLEGAL_GENERATION
    return group.check_transactional_commit(request, metadata)


def transactional_commit(
    request: TxnOffsetCommitRequest, config: GroupConfig, now: Moment
) -> tuple[list[CoordinatorRecord], TxnOffsetCommitResponse]:
    """The records of a commit that counts when its transaction is committed."""
    records: list[CoordinatorRecord] = []
    response = TxnOffsetCommitResponse()
    for topic in request.topics:
        results = [
            TxnOffsetCommitResponsePartition(partition_index=index, error_code=error)
            for index, error in _commit_topic(
                request.group_id, topic, ZERO_UUID, config, now, NO_EXPIRY, records
            )
        ]
        response.topics.append(TxnOffsetCommitResponseTopic(name=topic.name, partitions=results))
    return records, response


def fetch(
    store: OffsetStore,
    group: Group | None,
    request: OffsetFetchRequestGroup,
    require_stable: bool,
) -> OffsetFetchResponseGroup:
    """Offsets of the partitions asked for, or of all (topics None); -1 if none exists.

    With `require_stable` a partition that an open transaction commits gets
    UNSTABLE_OFFSET_COMMIT (KIP-447).
    """
    response = OffsetFetchResponseGroup(group_id=request.group_id)
    if group is not None:
        error = group.check_fetch(request.member_id, request.member_epoch)
        if error:
            response.error_code = error
            return response
    asked: list[tuple[str, Uuid, Uuid, Iterable[int]]]
    if request.topics is None:
        asked = [
            (name, next(iter(partitions.values())).topic_id, ZERO_UUID, partitions)
            for name, partitions in store.group(request.group_id).items()
        ]
    else:
        asked = [
            (topic.name, topic.topic_id, topic.topic_id, topic.partition_indexes)
            for topic in request.topics
        ]
    response.topics = [
        OffsetFetchResponseTopics(
            name=name,
            topic_id=topic_id,
            partitions=[
                _fetched(store, request.group_id, name, valid_for, partition, require_stable)
                for partition in partitions
            ],
        )
        for name, topic_id, valid_for, partitions in asked
    ]
    return response


def _fetched(
    store: OffsetStore,
    group_id: str,
    topic: str,
    topic_id: Uuid,
    partition: int,
    require_stable: bool,
) -> OffsetFetchResponsePartitions:
    if require_stable and store.is_unstable(group_id, topic, partition):
        return OffsetFetchResponsePartitions(
            partition_index=partition,
            committed_offset=NO_OFFSET,
            metadata="",
            error_code=ErrorCode.UNSTABLE_OFFSET_COMMIT,
        )
    offset = store.get(group_id, topic, partition)
    if offset is None or not is_valid_for(offset, topic_id):
        return OffsetFetchResponsePartitions(
            partition_index=partition, committed_offset=NO_OFFSET, metadata=""
        )
    return OffsetFetchResponsePartitions(
        partition_index=partition,
        committed_offset=offset.offset,
        committed_leader_epoch=offset.leader_epoch,
        metadata=offset.metadata,
    )


def delete(
    store: OffsetStore, group: Group | None, request: OffsetDeleteRequest
) -> tuple[list[CoordinatorRecord], OffsetDeleteResponse]:
    """Forget offsets, but for topics that the group reads (KIP-496)."""
    if group is None:
        return [], OffsetDeleteResponse(error_code=ErrorCode.GROUP_ID_NOT_FOUND)
    refusal = group.check_delete()
    if refusal:
        return [], OffsetDeleteResponse(error_code=refusal)
    records = []
    response = OffsetDeleteResponse()
    for topic in request.topics:
        is_subscribed = group.is_subscribed(topic.name)
        error = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC if is_subscribed else ErrorCode.NONE
        response.topics.append(
            OffsetDeleteResponseTopic(
                name=topic.name,
                partitions=[
                    OffsetDeleteResponsePartition(
                        partition_index=partition.partition_index, error_code=error
                    )
                    for partition in topic.partitions
                ],
            )
        )
        if is_subscribed:
            continue
        for partition in topic.partitions:
            index = partition.partition_index
            is_known = store.get(request.group_id, topic.name, index) is not None
            if is_known or store.is_unstable(request.group_id, topic.name, index):
                records.append(offset_tombstone(request.group_id, topic.name, index))
    return records, response


def expired(
    store: OffsetStore, group: Group, config: GroupConfig, now: Moment
) -> tuple[list[CoordinatorRecord], bool]:
    """Tombstones of what has outlived its retention, and whether the group may go too.

    Retention runs from the moment when a group lost its last member; in a stable group from the
    commit, for topics that it no longer reads; for offsets without a group's protocol from the
    commit. A commit with its own expiry keeps it (KIP-211).
    """
    if group.keeps_offsets:
        return [], False
    since_ms = group.retention_since_ms

    def is_expired(offset: CommittedOffset) -> bool:
        if offset.expire_timestamp_ms != NO_EXPIRY:
            return now.wall_ms >= offset.expire_timestamp_ms
        base_ms = offset.commit_timestamp_ms if since_ms is None else since_ms
        return now.wall_ms - base_ms >= config.offsets_retention_ms

    partitions, is_all = store.expired(group.group_id, is_expired, group.is_subscribed)
    records = [offset_tombstone(group.group_id, *partition) for partition in partitions]
    return records, is_all


def _utf16_length(text: str) -> int:
    """Kafka counts Java characters."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


# Responses that are made without asking a shard.


def commit_error(request: OffsetCommitRequest, error: ErrorCode) -> OffsetCommitResponse:
    """The same outcome for every partition of a commit."""
    return OffsetCommitResponse(
        topics=[
            OffsetCommitResponseTopic(
                name=topic.name,
                topic_id=topic.topic_id,
                partitions=[
                    OffsetCommitResponsePartition(
                        partition_index=partition.partition_index, error_code=error
                    )
                    for partition in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


def txn_commit_error(request: TxnOffsetCommitRequest, error: ErrorCode) -> TxnOffsetCommitResponse:
    """The same outcome for every partition of a transactional commit."""
    return TxnOffsetCommitResponse(
        topics=[
            TxnOffsetCommitResponseTopic(
                name=topic.name,
                partitions=[
                    TxnOffsetCommitResponsePartition(
                        partition_index=partition.partition_index, error_code=error
                    )
                    for partition in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


def fetch_error(error: ErrorCode) -> ErrorCode:
    """Old consumers do not expect COORDINATOR_NOT_AVAILABLE here; both make them look again."""
    return ErrorCode.NOT_COORDINATOR if error is ErrorCode.COORDINATOR_NOT_AVAILABLE else error
