"""AddRaftVoter: add a voter to the quorum (KIP-853)."""

from barnabas.base.ids import Uuid
from barnabas.protocol.fields import array_of, boolean, int16, int32, string, uint16, uuid
from barnabas.protocol.schema import Message, Struct, message, struct


@struct
class Listener(Struct):
    name: str = string("0+", map_key=True)
    host: str = string("0+")
    port: int = uint16("0+")


@message(versions="0-1", flexible="0+", api_key=80, listeners=("controller", "broker"))
class AddRaftVoterRequest(Message):
    cluster_id: str | None = string("0+", nullable="0+")
    timeout_ms: int = int32("0+")
    voter_id: int = int32("0+")
    voter_directory_id: Uuid = uuid("0+")
    listeners: list[Listener] = array_of(Listener, "0+")
    ack_when_committed: bool = boolean("1+", default=True)


@message(versions="0-1", flexible="0+", api_key=80)
class AddRaftVoterResponse(Message):
    throttle_time_ms: int = int32("0+")
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+", ignorable=True)
