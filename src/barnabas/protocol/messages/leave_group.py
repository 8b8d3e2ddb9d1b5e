"""LeaveGroup: leave a classic group, or remove several static members (KIP-345, KIP-800)."""

from barnabas.protocol.fields import array_of, int16, int32, string
from barnabas.protocol.schema import Message, Struct, message, struct


@struct
class MemberIdentity(Struct):
    member_id: str = string("3+")
    group_instance_id: str | None = string("3+", nullable="3+", default=None)
    reason: str | None = string("5+", nullable="5+", default=None, ignorable=True)


@message(versions="0-5", flexible="4+", api_key=13, listeners=("broker",))
class LeaveGroupRequest(Message):
    group_id: str = string("0+")
    member_id: str = string("0-2")
    members: list[MemberIdentity] = array_of(MemberIdentity, "3+")


@struct
class MemberResponse(Struct):
    member_id: str = string("3+")
    group_instance_id: str | None = string("3+", nullable="3+")
    error_code: int = int16("3+")


@message(versions="0-5", flexible="4+", api_key=13)
class LeaveGroupResponse(Message):
    throttle_time_ms: int = int32("1+", ignorable=True)
    error_code: int = int16("0+")
    members: list[MemberResponse] = array_of(MemberResponse, "3+")
