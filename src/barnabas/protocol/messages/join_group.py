"""JoinGroup: join a classic group and wait for its next generation.

Source: KIP-62, KIP-345, KIP-394, KIP-559, KIP-800.
"""

from barnabas.protocol.fields import array_of, binary, boolean, int16, int32, string
from barnabas.protocol.schema import Message, Struct, message, struct


@struct
class JoinGroupRequestProtocol(Struct):
    name: str = string("0+", map_key=True)
    metadata: bytes = binary("0+")


@message(versions="0-9", flexible="6+", api_key=11, listeners=("broker",))
class JoinGroupRequest(Message):
    group_id: str = string("0+")
    session_timeout_ms: int = int32("0+")
    rebalance_timeout_ms: int = int32("1+", default=-1, ignorable=True)
    member_id: str = string("0+")
    group_instance_id: str | None = string("5+", nullable="5+", default=None)
    protocol_type: str = string("0+")
    protocols: list[JoinGroupRequestProtocol] = array_of(JoinGroupRequestProtocol, "0+")
    reason: str | None = string("8+", nullable="8+", default=None, ignorable=True)


@struct
class JoinGroupResponseMember(Struct):
    member_id: str = string("0+")
    group_instance_id: str | None = string("5+", nullable="5+", default=None, ignorable=True)
    metadata: bytes = binary("0+")


@message(versions="0-9", flexible="6+", api_key=11)
class JoinGroupResponse(Message):
    throttle_time_ms: int = int32("2+", ignorable=True)
    error_code: int = int16("0+")
    generation_id: int = int32("0+", default=-1)
    protocol_type: str | None = string("7+", nullable="7+", default=None, ignorable=True)
    protocol_name: str | None = string("0+", nullable="7+")
    leader: str = string("0+")
    skip_assignment: bool = boolean("9+")
    member_id: str = string("0+")
    members: list[JoinGroupResponseMember] = array_of(JoinGroupResponseMember, "0+")
