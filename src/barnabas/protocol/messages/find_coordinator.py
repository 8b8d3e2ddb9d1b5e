"""FindCoordinator: the broker that looks after a group, transaction or share partition.

Source: KIP-699, KIP-932.
"""

from barnabas.protocol.fields import array_of, int8, int16, int32, string
from barnabas.protocol.schema import Message, Struct, message, struct


@message(versions="0-6", flexible="3+", api_key=10, listeners=("broker",))
class FindCoordinatorRequest(Message):
    key: str = string("0-3")
    key_type: int = int8("1+")
    coordinator_keys: list[str] = array_of(string, "4+")


@struct
class Coordinator(Struct):
    key: str = string("4+")
    node_id: int = int32("4+")
    host: str = string("4+")
    port: int = int32("4+")
    error_code: int = int16("4+")
    error_message: str | None = string("4+", nullable="4+", ignorable=True)


@message(versions="0-6", flexible="3+", api_key=10)
class FindCoordinatorResponse(Message):
    throttle_time_ms: int = int32("1+", ignorable=True)
    error_code: int = int16("0-3")
    error_message: str | None = string("1-3", nullable="1-3", ignorable=True)
    node_id: int = int32("0-3")
    host: str = string("0-3")
    port: int = int32("0-3")
    coordinators: list[Coordinator] = array_of(Coordinator, "4+")
