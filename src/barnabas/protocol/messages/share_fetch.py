"""Records for members of share groups: ShareFetch, ShareAcknowledge."""

from barnabas.base.disk import Buffer
from barnabas.base.ids import Uuid
from barnabas.protocol.fields import (
    array_of,
    boolean,
    int8,
    int16,
    int32,
    int64,
    nested,
    record_batches,
    string,
    uuid,
)
from barnabas.protocol.schema import Message, Struct, message, struct

# ShareFetch: acquire records for a member of a share group (KIP-932, KIP-1206, KIP-1222).


@struct
class AcknowledgementBatch(Struct):
    first_offset: int = int64("0+")
    last_offset: int = int64("0+")
    acknowledge_types: list[int] = array_of(int8, "0+")


@struct
class FetchPartition(Struct):
    partition_index: int = int32("0+", map_key=True)
    partition_max_bytes: int = int32("0")
    acknowledgement_batches: list[AcknowledgementBatch] = array_of(AcknowledgementBatch, "0+")


@struct
class FetchTopic(Struct):
    topic_id: Uuid = uuid("0+", map_key=True)
    partitions: list[FetchPartition] = array_of(FetchPartition, "0+")


@struct
class ForgottenTopic(Struct):
    topic_id: Uuid = uuid("0+")
    partitions: list[int] = array_of(int32, "0+")


@message(versions="1-2", flexible="0+", api_key=78, listeners=("broker",))
class ShareFetchRequest(Message):
    group_id: str | None = string("0+", nullable="0+", default=None)
    member_id: str | None = string("0+", nullable="0+")
    share_session_epoch: int = int32("0+")
    max_wait_ms: int = int32("0+")
    min_bytes: int = int32("0+")
    max_bytes: int = int32("0+", default=2**31 - 1)
    max_records: int = int32("1+")
    batch_size: int = int32("1+")
    share_acquire_mode: int = int8("2+", ignorable=True)
    is_renew_ack: bool = boolean("2+")
    topics: list[FetchTopic] = array_of(FetchTopic, "0+")
    forgotten_topics_data: list[ForgottenTopic] = array_of(ForgottenTopic, "0+")


@struct
class LeaderIdAndEpoch(Struct):
    leader_id: int = int32("0+")
    leader_epoch: int = int32("0+")


@struct
class AcquiredRecords(Struct):
    first_offset: int = int64("0+")
    last_offset: int = int64("0+")
    delivery_count: int = int16("0+")


@struct
class ShareFetchPartitionData(Struct):
    partition_index: int = int32("0+")
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+", default=None)
    acknowledge_error_code: int = int16("0+")
    acknowledge_error_message: str | None = string("0+", nullable="0+", default=None)
    current_leader: LeaderIdAndEpoch = nested(LeaderIdAndEpoch, "0+")
    records: Buffer | None = record_batches("0+", nullable="0")
    acquired_records: list[AcquiredRecords] = array_of(AcquiredRecords, "0+")


@struct
class ShareFetchableTopicResponse(Struct):
    topic_id: Uuid = uuid("0+", map_key=True)
    partitions: list[ShareFetchPartitionData] = array_of(ShareFetchPartitionData, "0+")


@struct
class NodeEndpoint(Struct):
    node_id: int = int32("0+", map_key=True)
    host: str = string("0+")
    port: int = int32("0+")
    rack: str | None = string("0+", nullable="0+", default=None)


@message(versions="1-2", flexible="0+", api_key=78)
class ShareFetchResponse(Message):
    throttle_time_ms: int = int32("0+")
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+", default=None)
    acquisition_lock_timeout_ms: int = int32("1+")
    responses: list[ShareFetchableTopicResponse] = array_of(ShareFetchableTopicResponse, "0+")
    node_endpoints: list[NodeEndpoint] = array_of(NodeEndpoint, "0+")


# ShareAcknowledge: accept, release, reject or renew records of a share group.
#
# Source: KIP-932, KIP-1222.


@struct
class AcknowledgePartition(Struct):
    partition_index: int = int32("0+", map_key=True)
    acknowledgement_batches: list[AcknowledgementBatch] = array_of(AcknowledgementBatch, "0+")


@struct
class AcknowledgeTopic(Struct):
    topic_id: Uuid = uuid("0+", map_key=True)
    partitions: list[AcknowledgePartition] = array_of(AcknowledgePartition, "0+")


@message(versions="1-2", flexible="0+", api_key=79, listeners=("broker",))
class ShareAcknowledgeRequest(Message):
    group_id: str | None = string("0+", nullable="0+", default=None)
    member_id: str | None = string("0+", nullable="0+")
    share_session_epoch: int = int32("0+")
    is_renew_ack: bool = boolean("2+")
    topics: list[AcknowledgeTopic] = array_of(AcknowledgeTopic, "0+")


@struct
class ShareAcknowledgePartitionData(Struct):
    partition_index: int = int32("0+")
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+", default=None)
    current_leader: LeaderIdAndEpoch = nested(LeaderIdAndEpoch, "0+")


@struct
class ShareAcknowledgeTopicResponse(Struct):
    topic_id: Uuid = uuid("0+", map_key=True)
    partitions: list[ShareAcknowledgePartitionData] = array_of(ShareAcknowledgePartitionData, "0+")


@message(versions="1-2", flexible="0+", api_key=79)
class ShareAcknowledgeResponse(Message):
    throttle_time_ms: int = int32("0+")
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+", default=None)
    acquisition_lock_timeout_ms: int = int32("2+", ignorable=True)
    responses: list[ShareAcknowledgeTopicResponse] = array_of(ShareAcknowledgeTopicResponse, "0+")
    node_endpoints: list[NodeEndpoint] = array_of(NodeEndpoint, "0+")
