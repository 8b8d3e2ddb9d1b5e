"""Heartbeat: a member of a classic group proves to be alive (KIP-345)."""

from barnabas.protocol.fields import int16, int32, string
from barnabas.protocol.schema import Message, message


@message(versions="0-4", flexible="4+", api_key=12, listeners=("broker",))
class HeartbeatRequest(Message):
    group_id: str = string("0+")
    generation_id: int = int32("0+")
    member_id: str = string("0+")
    group_instance_id: str | None = string("3+", nullable="3+", default=None)


@message(versions="0-4", flexible="4+", api_key=12)
class HeartbeatResponse(Message):
    throttle_time_ms: int = int32("1+", ignorable=True)
    error_code: int = int16("0+")
