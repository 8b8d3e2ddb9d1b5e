"""SyncGroup: members of a classic group obtain what its leader assigned (KIP-345, KIP-559)."""

from barnabas.protocol.fields import array_of, binary, int16, int32, string
from barnabas.protocol.schema import Message, Struct, message, struct


@struct
class SyncGroupRequestAssignment(Struct):
    member_id: str = string("0+")
    assignment: bytes = binary("0+")


@message(versions="0-5", flexible="4+", api_key=14, listeners=("broker",))
class SyncGroupRequest(Message):
    group_id: str = string("0+")
    generation_id: int = int32("0+")
    member_id: str = string("0+")
    group_instance_id: str | None = string("3+", nullable="3+", default=None)
    protocol_type: str | None = string("5+", nullable="5+", default=None, ignorable=True)
    protocol_name: str | None = string("5+", nullable="5+", default=None, ignorable=True)
    assignments: list[SyncGroupRequestAssignment] = array_of(SyncGroupRequestAssignment, "0+")


@message(versions="0-5", flexible="4+", api_key=14)
class SyncGroupResponse(Message):
    throttle_time_ms: int = int32("1+", ignorable=True)
    error_code: int = int16("0+")
    protocol_type: str | None = string("5+", nullable="5+", default=None, ignorable=True)
    protocol_name: str | None = string("5+", nullable="5+", default=None, ignorable=True)
    assignment: bytes = binary("0+")
