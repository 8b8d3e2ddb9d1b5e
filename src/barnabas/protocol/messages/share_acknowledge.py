"""ShareAcknowledge: accept, release, reject or renew records of a share group.

Source: KIP-932, KIP-1222.
"""

from barnabas.base.ids import Uuid
from barnabas.protocol.fields import (
    array_of,
    boolean,
    int8,
    int16,
    int32,
    int64,
    nested,
    string,
    uuid,
)
from barnabas.protocol.schema import Message, Struct, message, struct


@struct
class AcknowledgementBatch(Struct):
    first_offset: int = int64("0+")
    last_offset: int = int64("0+")
    acknowledge_types: list[int] = array_of(int8, "0+")


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
class LeaderIdAndEpoch(Struct):
    leader_id: int = int32("0+")
    leader_epoch: int = int32("0+")


@struct
class PartitionData(Struct):
    partition_index: int = int32("0+")
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+", default=None)
    current_leader: LeaderIdAndEpoch = nested(LeaderIdAndEpoch, "0+")


@struct
class ShareAcknowledgeTopicResponse(Struct):
    topic_id: Uuid = uuid("0+", map_key=True)
    partitions: list[PartitionData] = array_of(PartitionData, "0+")


@struct
class NodeEndpoint(Struct):
    node_id: int = int32("0+", map_key=True)
    host: str = string("0+")
    port: int = int32("0+")
    rack: str | None = string("0+", nullable="0+", default=None)


@message(versions="1-2", flexible="0+", api_key=79)
class ShareAcknowledgeResponse(Message):
    throttle_time_ms: int = int32("0+")
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+", default=None)
    acquisition_lock_timeout_ms: int = int32("2+", ignorable=True)
    responses: list[ShareAcknowledgeTopicResponse] = array_of(ShareAcknowledgeTopicResponse, "0+")
    node_endpoints: list[NodeEndpoint] = array_of(NodeEndpoint, "0+")
