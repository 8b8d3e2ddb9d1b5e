"""UpdateRaftVoter: a voter corrects its endpoints and supported versions (KIP-853)."""

from barnabas.base.ids import Uuid
from barnabas.protocol.fields import array_of, int16, int32, nested, string, uint16, uuid
from barnabas.protocol.schema import Message, Struct, message, struct


@struct
class Listener(Struct):
    name: str = string("0+", map_key=True)
    host: str = string("0+")
    port: int = uint16("0+")


@struct
class KRaftVersionFeature(Struct):
    min_supported_version: int = int16("0+")
    max_supported_version: int = int16("0+")


@message(versions="0", flexible="0+", api_key=82, listeners=("controller",))
class UpdateRaftVoterRequest(Message):
    cluster_id: str | None = string("0+", nullable="0+")
    current_leader_epoch: int = int32("0+")
    voter_id: int = int32("0+")
    voter_directory_id: Uuid = uuid("0+")
    listeners: list[Listener] = array_of(Listener, "0+")
    k_raft_version_feature: KRaftVersionFeature = nested(KRaftVersionFeature, "0+")


@struct
class CurrentLeader(Struct):
    leader_id: int = int32("0+", default=-1)
    leader_epoch: int = int32("0+", default=-1)
    host: str = string("0+")
    port: int = int32("0+")


@message(versions="0", flexible="0+", api_key=82)
class UpdateRaftVoterResponse(Message):
    throttle_time_ms: int = int32("0+")
    error_code: int = int16("0+")
    current_leader: CurrentLeader = nested(CurrentLeader, "0+", tagged="0+", tag=0)
