"""ConsumerGroupHeartbeat: the one request by which a consumer takes part in its group (KIP-848)."""

from barnabas.base.ids import Uuid
from barnabas.protocol.fields import array_of, int16, int32, nested, string, uuid
from barnabas.protocol.schema import Message, Struct, message, struct


@struct
class ConsumerGroupHeartbeatRequestTopicPartitions(Struct):
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
    topic_partitions: list[ConsumerGroupHeartbeatRequestTopicPartitions] | None = array_of(
        ConsumerGroupHeartbeatRequestTopicPartitions, "0+", nullable="0+", default=None
    )


@struct
class ConsumerGroupHeartbeatResponseTopicPartitions(Struct):
    topic_id: Uuid = uuid("0+")
    partitions: list[int] = array_of(int32, "0+")


@struct
class Assignment(Struct):
    topic_partitions: list[ConsumerGroupHeartbeatResponseTopicPartitions] = array_of(
        ConsumerGroupHeartbeatResponseTopicPartitions, "0+"
    )


@message(versions="0-1", flexible="0+", api_key=68)
class ConsumerGroupHeartbeatResponse(Message):
    throttle_time_ms: int = int32("0+")
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+", default=None)
    member_id: str | None = string("0+", nullable="0+", default=None)
    member_epoch: int = int32("0+")
    heartbeat_interval_ms: int = int32("0+")
    assignment: Assignment | None = nested(Assignment, "0+", nullable="0+", default=None)
