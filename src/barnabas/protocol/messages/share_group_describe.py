"""ShareGroupDescribe: the state of share groups (KIP-932)."""

from barnabas.base.ids import Uuid
from barnabas.protocol.fields import array_of, boolean, int16, int32, nested, string, uuid
from barnabas.protocol.schema import Message, Struct, message, struct


@message(versions="1", flexible="0+", api_key=77, listeners=("broker",))
class ShareGroupDescribeRequest(Message):
    group_ids: list[str] = array_of(string, "0+")
    include_authorized_operations: bool = boolean("0+")


@struct
class TopicPartitions(Struct):
    topic_id: Uuid = uuid("0+")
    topic_name: str = string("0+")
    partitions: list[int] = array_of(int32, "0+")


@struct
class Assignment(Struct):
    topic_partitions: list[TopicPartitions] = array_of(TopicPartitions, "0+")


@struct
class Member(Struct):
    member_id: str = string("0+")
    rack_id: str | None = string("0+", nullable="0+", default=None)
    member_epoch: int = int32("0+")
    client_id: str = string("0+")
    client_host: str = string("0+")
    subscribed_topic_names: list[str] = array_of(string, "0+")
    assignment: Assignment = nested(Assignment, "0+")


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
