"""Consumer groups of KIP-848: ConsumerGroupHeartbeat, ConsumerGroupDescribe."""

from barnabas.base.ids import Uuid
from barnabas.protocol.fields import array_of, boolean, int8, int16, int32, nested, string, uuid
from barnabas.protocol.schema import Message, Struct, message, struct

# ConsumerGroupHeartbeat: the one request by which a consumer takes part in its group (KIP-848).


@struct
class ConsumerGroupHeartbeatTopicPartitions(Struct):
    topic_id: Uuid = uuid("0+")
    partitions: list[int] = array_of(int32, "0+")


@message(versions="0-1", flexible="0+", api_key=68, listeners=("broker",))
class ConsumerGroupHeartbeatRequest(Message):
    group_id: str = string("0+")
    member_id: str = string("0+")
    member_epoch: int = int32("0+")
    instance_id: str | None = string("0+", nullable="0+", default=None)
    rack_id: str | None = string("0+", nullable="0+", default=None)
    rebalance_timeout_ms: int = int32("0+", default=-1)
    subscribed_topic_names: list[str] | None = array_of(string, "0+", nullable="0+", default=None)
    subscribed_topic_regex: str | None = string("1+", nullable="1+", default=None)
    server_assignor: str | None = string("0+", nullable="0+", default=None)
    topic_partitions: list[ConsumerGroupHeartbeatTopicPartitions] | None = array_of(
        ConsumerGroupHeartbeatTopicPartitions, "0+", nullable="0+", default=None
    )


@struct
class ConsumerGroupHeartbeatAssignment(Struct):
    topic_partitions: list[ConsumerGroupHeartbeatTopicPartitions] = array_of(
        ConsumerGroupHeartbeatTopicPartitions, "0+"
    )


@message(versions="0-1", flexible="0+", api_key=68)
class ConsumerGroupHeartbeatResponse(Message):
    throttle_time_ms: int = int32("0+")
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+", default=None)
    member_id: str | None = string("0+", nullable="0+", default=None)
    member_epoch: int = int32("0+")
    heartbeat_interval_ms: int = int32("0+")
    assignment: ConsumerGroupHeartbeatAssignment | None = nested(
        ConsumerGroupHeartbeatAssignment, "0+", nullable="0+", default=None
    )


# ConsumerGroupDescribe: the state of groups that use the consumer protocol (KIP-848).


@message(versions="0-1", flexible="0+", api_key=69, listeners=("broker",))
class ConsumerGroupDescribeRequest(Message):
    group_ids: list[str] = array_of(string, "0+")
    include_authorized_operations: bool = boolean("0+")


@struct
class TopicPartitions(Struct):
    topic_id: Uuid = uuid("0+")
    topic_name: str = string("0+")
    partitions: list[int] = array_of(int32, "0+")


@struct
class ConsumerGroupDescribeAssignment(Struct):
    topic_partitions: list[TopicPartitions] = array_of(TopicPartitions, "0+")


@struct
class Member(Struct):
    member_id: str = string("0+")
    instance_id: str | None = string("0+", nullable="0+", default=None)
    rack_id: str | None = string("0+", nullable="0+", default=None)
    member_epoch: int = int32("0+")
    client_id: str = string("0+")
    client_host: str = string("0+")
    subscribed_topic_names: list[str] = array_of(string, "0+")
    subscribed_topic_regex: str | None = string("0+", nullable="0+", default=None)
    assignment: ConsumerGroupDescribeAssignment = nested(ConsumerGroupDescribeAssignment, "0+")
    target_assignment: ConsumerGroupDescribeAssignment = nested(
        ConsumerGroupDescribeAssignment, "0+"
    )
    member_type: int = int8("1+", default=-1, ignorable=True)


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


@message(versions="0-1", flexible="0+", api_key=69)
class ConsumerGroupDescribeResponse(Message):
    throttle_time_ms: int = int32("0+")
    groups: list[DescribedGroup] = array_of(DescribedGroup, "0+")
