"""ShareGroupHeartbeat: the one request by which a member takes part in a share group (KIP-932)."""

from barnabas.base.ids import Uuid
from barnabas.protocol.fields import array_of, int16, int32, nested, string, uuid
from barnabas.protocol.schema import Message, Struct, message, struct


@message(versions="1", flexible="0+", api_key=76, listeners=("broker",))
class ShareGroupHeartbeatRequest(Message):
    group_id: str = string("0+")
    member_id: str = string("0+")
    member_epoch: int = int32("0+")
    rack_id: str | None = string("0+", nullable="0+", default=None)
    subscribed_topic_names: list[str] | None = array_of(string, "0+", nullable="0+", default=None)


@struct
class TopicPartitions(Struct):
    topic_id: Uuid = uuid("0+")
    partitions: list[int] = array_of(int32, "0+")


@struct
class Assignment(Struct):
    topic_partitions: list[TopicPartitions] = array_of(TopicPartitions, "0+")


@message(versions="1", flexible="0+", api_key=76)
class ShareGroupHeartbeatResponse(Message):
    throttle_time_ms: int = int32("0+")
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+", default=None)
    member_id: str | None = string("0+", nullable="0+", default=None)
    member_epoch: int = int32("0+")
    heartbeat_interval_ms: int = int32("0+")
    assignment: Assignment | None = nested(Assignment, "0+", nullable="0+", default=None)
