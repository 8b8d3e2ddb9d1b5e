"""Control records of the metadata log, and the quorum-state file (KIP-595, KIP-630, KIP-853)."""

from barnabas.base.ids import Uuid
from barnabas.protocol.fields import array_of, int16, int32, int64, nested, string, uint16, uuid
from barnabas.protocol.schema import Message, Struct, message, struct


@struct
class LeaderChangeMessageVoter(Struct):
    voter_id: int = int32("0+")
    voter_directory_id: Uuid = uuid("1+")


@message(versions="0-1", flexible="0+")
class LeaderChangeMessage(Message):
    version: int = int16("0+")
    leader_id: int = int32("0+")
    voters: list[LeaderChangeMessageVoter] = array_of(LeaderChangeMessageVoter, "0+")
    granting_voters: list[LeaderChangeMessageVoter] = array_of(LeaderChangeMessageVoter, "0+")


@struct
class Endpoint(Struct):
    name: str = string("0+", map_key=True)
    host: str = string("0+")
    port: int = uint16("0+")


@struct
class KRaftVersionFeature(Struct):
    min_supported_version: int = int16("0+")
    max_supported_version: int = int16("0+")


@struct
class VotersRecordVoter(Struct):
    voter_id: int = int32("0+")
    voter_directory_id: Uuid = uuid("0+")
    endpoints: list[Endpoint] = array_of(Endpoint, "0+")
    k_raft_version_feature: KRaftVersionFeature = nested(KRaftVersionFeature, "0+")


@message(versions="0", flexible="0+")
class VotersRecord(Message):
    version: int = int16("0+")
    voters: list[VotersRecordVoter] = array_of(VotersRecordVoter, "0+")


@message(versions="0", flexible="0+")
class KRaftVersionRecord(Message):
    version: int = int16("0+")
    k_raft_version: int = int16("0+")


@message(versions="0", flexible="0+")
class SnapshotHeaderRecord(Message):
    version: int = int16("0+")
    last_contained_log_timestamp: int = int64("0+")


@message(versions="0", flexible="0+")
class SnapshotFooterRecord(Message):
    version: int = int16("0+")


@struct
class QuorumStateDataVoter(Struct):
    voter_id: int = int32("0")


@message(versions="0-1", flexible="0+")
class QuorumStateData(Message):
    cluster_id: str = string("0")
    leader_id: int = int32("0+", default=-1)
    leader_epoch: int = int32("0+", default=-1)
    voted_id: int = int32("0+", default=-1)
    voted_directory_id: Uuid = uuid("1+")
    applied_offset: int = int64("0")
    current_voters: list[QuorumStateDataVoter] | None = array_of(
        QuorumStateDataVoter, "0", nullable="0"
    )
