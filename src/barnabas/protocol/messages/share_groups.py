"""Share groups: ShareGroupHeartbeat, ShareGroupDescribe, and their offsets."""

from barnabas.base.ids import Uuid
from barnabas.protocol.fields import array_of, boolean, int16, int32, int64, nested, string, uuid
from barnabas.protocol.messages.consumer_groups import TopicPartitions
from barnabas.protocol.schema import Message, Struct, message, struct

# ShareGroupHeartbeat: the one request by which a member takes part in a share group (KIP-932).


@message(versions="1", flexible="0+", api_key=76, listeners=("broker",))
class ShareGroupHeartbeatRequest(Message):
    group_id: str = string("0+")
    member_id: str = string("0+")
    member_epoch: int = int32("0+")
    rack_id: str | None = string("0+", nullable="0+", default=None)
    subscribed_topic_names: list[str] | None = array_of(string, "0+", nullable="0+", default=None)


@struct
class ShareGroupHeartbeatTopicPartitions(Struct):
    topic_id: Uuid = uuid("0+")
    partitions: list[int] = array_of(int32, "0+")


@struct
class ShareGroupHeartbeatAssignment(Struct):
    topic_partitions: list[ShareGroupHeartbeatTopicPartitions] = array_of(
        ShareGroupHeartbeatTopicPartitions, "0+"
    )


@message(versions="1", flexible="0+", api_key=76)
class ShareGroupHeartbeatResponse(Message):
    throttle_time_ms: int = int32("0+")
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+", default=None)
    member_id: str | None = string("0+", nullable="0+", default=None)
    member_epoch: int = int32("0+")
    heartbeat_interval_ms: int = int32("0+")
    assignment: ShareGroupHeartbeatAssignment | None = nested(
        ShareGroupHeartbeatAssignment, "0+", nullable="0+", default=None
    )


# ShareGroupDescribe: the state of share groups (KIP-932).


@message(versions="1", flexible="0+", api_key=77, listeners=("broker",))
class ShareGroupDescribeRequest(Message):
    group_ids: list[str] = array_of(string, "0+")
    include_authorized_operations: bool = boolean("0+")


@struct
class ShareGroupDescribeAssignment(Struct):
    topic_partitions: list[TopicPartitions] = array_of(TopicPartitions, "0+")


@struct
class Member(Struct):
    member_id: str = string("0+")
    rack_id: str | None = string("0+", nullable="0+", default=None)
    member_epoch: int = int32("0+")
    client_id: str = string("0+")
    client_host: str = string("0+")
    subscribed_topic_names: list[str] = array_of(string, "0+")
    assignment: ShareGroupDescribeAssignment = nested(ShareGroupDescribeAssignment, "0+")


@struct
class DescribedGroup(Struct):
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+", default=None)
    group_id: str = string("0+")
    group_state: str = string("0+")
    group_epoch: int = int32("0+")
    assignment_epoch: int = int32("0+")
    assignor_name: str = string("0+")
    members: list[Member] = array_of(Member, "0+")
    authorized_operations: int = int32("0+", default=-(2**31))


@message(versions="1", flexible="0+", api_key=77)
class ShareGroupDescribeResponse(Message):
    throttle_time_ms: int = int32("0+")
    groups: list[DescribedGroup] = array_of(DescribedGroup, "0+")


# DescribeShareGroupOffsets: where a share group starts, and how far it lags (KIP-932).


@struct
class DescribeShareGroupOffsetsRequestTopic(Struct):
    topic_name: str = string("0+")
    partitions: list[int] = array_of(int32, "0+")


@struct
class DescribeShareGroupOffsetsRequestGroup(Struct):
    group_id: str = string("0+")
    topics: list[DescribeShareGroupOffsetsRequestTopic] | None = array_of(
        DescribeShareGroupOffsetsRequestTopic, "0+", nullable="0+"
    )


@message(versions="0-1", flexible="0+", api_key=90, listeners=("broker",))
class DescribeShareGroupOffsetsRequest(Message):
    groups: list[DescribeShareGroupOffsetsRequestGroup] = array_of(
        DescribeShareGroupOffsetsRequestGroup, "0+"
    )


@struct
class DescribeShareGroupOffsetsResponsePartition(Struct):
    partition_index: int = int32("0+")
    start_offset: int = int64("0+")
    leader_epoch: int = int32("0+")
    lag: int = int64("1+", default=-1, ignorable=True)
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+", default=None)


@struct
class DescribeShareGroupOffsetsResponseTopic(Struct):
    topic_name: str = string("0+")
    topic_id: Uuid = uuid("0+")
    partitions: list[DescribeShareGroupOffsetsResponsePartition] = array_of(
        DescribeShareGroupOffsetsResponsePartition, "0+"
    )


@struct
class DescribeShareGroupOffsetsResponseGroup(Struct):
    group_id: str = string("0+")
    topics: list[DescribeShareGroupOffsetsResponseTopic] = array_of(
        DescribeShareGroupOffsetsResponseTopic, "0+"
    )
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+", default=None)


@message(versions="0-1", flexible="0+", api_key=90)
class DescribeShareGroupOffsetsResponse(Message):
    throttle_time_ms: int = int32("0+")
    groups: list[DescribeShareGroupOffsetsResponseGroup] = array_of(
        DescribeShareGroupOffsetsResponseGroup, "0+"
    )


# AlterShareGroupOffsets: reset where a share group starts (KIP-932).


@struct
class AlterShareGroupOffsetsRequestPartition(Struct):
    partition_index: int = int32("0+")
    start_offset: int = int64("0+")


@struct
class AlterShareGroupOffsetsRequestTopic(Struct):
    topic_name: str = string("0+", map_key=True)
    partitions: list[AlterShareGroupOffsetsRequestPartition] = array_of(
        AlterShareGroupOffsetsRequestPartition, "0+"
    )


@message(versions="0", flexible="0+", api_key=91, listeners=("broker",))
class AlterShareGroupOffsetsRequest(Message):
    group_id: str = string("0+")
    topics: list[AlterShareGroupOffsetsRequestTopic] = array_of(
        AlterShareGroupOffsetsRequestTopic, "0+"
    )


@struct
class AlterShareGroupOffsetsResponsePartition(Struct):
    partition_index: int = int32("0+")
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+", default=None)


@struct
class AlterShareGroupOffsetsResponseTopic(Struct):
    topic_name: str = string("0+", map_key=True)
    topic_id: Uuid = uuid("0+")
    partitions: list[AlterShareGroupOffsetsResponsePartition] = array_of(
        AlterShareGroupOffsetsResponsePartition, "0+"
    )


@message(versions="0", flexible="0+", api_key=91)
class AlterShareGroupOffsetsResponse(Message):
    throttle_time_ms: int = int32("0+")
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+", default=None)
    responses: list[AlterShareGroupOffsetsResponseTopic] = array_of(
        AlterShareGroupOffsetsResponseTopic, "0+"
    )


# DeleteShareGroupOffsets: forget the topics of a share group (KIP-932).


@struct
class DeleteShareGroupOffsetsRequestTopic(Struct):
    topic_name: str = string("0+")


@message(versions="0", flexible="0+", api_key=92, listeners=("broker",))
class DeleteShareGroupOffsetsRequest(Message):
    group_id: str = string("0+")
    topics: list[DeleteShareGroupOffsetsRequestTopic] = array_of(
        DeleteShareGroupOffsetsRequestTopic, "0+"
    )


@struct
class DeleteShareGroupOffsetsResponseTopic(Struct):
    topic_name: str = string("0+")
    topic_id: Uuid = uuid("0+")
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+", default=None)


@message(versions="0", flexible="0+", api_key=92)
class DeleteShareGroupOffsetsResponse(Message):
    throttle_time_ms: int = int32("0+")
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+", default=None)
    responses: list[DeleteShareGroupOffsetsResponseTopic] = array_of(
        DeleteShareGroupOffsetsResponseTopic, "0+"
    )
