"""DescribeGroups: the state of classic groups (KIP-40, KIP-345, KIP-430, KIP-1043)."""

from barnabas.protocol.fields import array_of, binary, boolean, int16, int32, string
from barnabas.protocol.schema import Message, Struct, message, struct


@message(versions="0-6", flexible="5+", api_key=15, listeners=("broker",))
class DescribeGroupsRequest(Message):
    groups: list[str] = array_of(string, "0+")
    include_authorized_operations: bool = boolean("3+")


@struct
class DescribedGroupMember(Struct):
    member_id: str = string("0+")
    group_instance_id: str | None = string("4+", nullable="4+", default=None, ignorable=True)
    client_id: str = string("0+")
    client_host: str = string("0+")
    member_metadata: bytes = binary("0+")
    member_assignment: bytes = binary("0+")


@struct
class DescribedGroup(Struct):
    error_code: int = int16("0+")
    error_message: str | None = string("6+", nullable="6+", default=None)
    group_id: str = string("0+")
    group_state: str = string("0+")
    protocol_type: str = string("0+")
    protocol_data: str = string("0+")
    members: list[DescribedGroupMember] = array_of(DescribedGroupMember, "0+")
    authorized_operations: int = int32("3+", default=-(2**31))


@message(versions="0-6", flexible="5+", api_key=15)
class DescribeGroupsResponse(Message):
    throttle_time_ms: int = int32("1+", ignorable=True)
    groups: list[DescribedGroup] = array_of(DescribedGroup, "0+")
