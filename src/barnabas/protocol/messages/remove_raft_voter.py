"""RemoveRaftVoter: take a voter out of the quorum (KIP-853)."""

from barnabas.base.ids import Uuid
from barnabas.protocol.fields import int16, int32, string, uuid
from barnabas.protocol.schema import Message, message


@message(versions="0", flexible="0+", api_key=81, listeners=("controller", "broker"))
class RemoveRaftVoterRequest(Message):
    cluster_id: str | None = string("0+", nullable="0+")
    voter_id: int = int32("0+")
    voter_directory_id: Uuid = uuid("0+")


@message(versions="0", flexible="0+", api_key=81)
class RemoveRaftVoterResponse(Message):
    throttle_time_ms: int = int32("0+")
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+", ignorable=True)
