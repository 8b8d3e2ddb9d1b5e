"""Requests and responses between replicas, independent of Kafka's wire format.

Every answer tells where its sender stands: the epoch it is in and the leader it knows of. The epoch
alone may move its receiver into a later epoch, even when the request itself is void.
Source: KIP-595, KIP-630, KIP-853, KIP-996.
"""

from dataclasses import dataclass
from typing import NamedTuple

from barnabas.base.disk import Buffer
from barnabas.base.ids import NO_NODE
from barnabas.node.raft.snapshot_files import SnapshotId
from barnabas.node.raft.voters import ReplicaKey, Voter, VoterEndpoint
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.records.batch import NO_OFFSET

HIGH_WATERMARK_NOT_COMPARED = 2**63 - 1
"""Sent by followers that do not say what high watermark they know (before KIP-1166)."""


class LogPosition(NamedTuple):
    """The end of a log: the epoch of its last record, and the offset after it.

    Of two logs, the one with the greater position has all that is committed of the other.
    """

    epoch: int
    offset: int


class Standing(NamedTuple):
    """The epoch a replica is in, and its leader or -1."""

    epoch: int
    leader_id: int = NO_NODE
    endpoints: tuple[VoterEndpoint, ...] = ()


# -- requests


@dataclass(frozen=True, slots=True)
class Vote:
    """A candidate asks for a vote in `epoch`; with `is_pre_vote`, whether it would get it."""

    epoch: int
    candidate: ReplicaKey
    voter: ReplicaKey | None
    last: LogPosition
    is_pre_vote: bool


@dataclass(frozen=True, slots=True)
class BeginEpoch:
    """The leader of `epoch` makes itself known."""

    epoch: int
    leader_id: int
    endpoints: tuple[VoterEndpoint, ...]
    voter: ReplicaKey | None


@dataclass(frozen=True, slots=True)
class EndEpoch:
    """The leader of `epoch` leads no more; `preferred` had most of its log, best first."""

    epoch: int
    leader_id: int
    endpoints: tuple[VoterEndpoint, ...]
    preferred: tuple[ReplicaKey, ...]


@dataclass(frozen=True, slots=True)
class Fetch:
    """A replica has everything before `offset` on its medium and asks for more."""

    epoch: int
    replica: ReplicaKey
    offset: int
    last_epoch: int
    max_wait_ms: int
    high_watermark: int = HIGH_WATERMARK_NOT_COMPARED
    max_bytes: int = 1 << 20


@dataclass(frozen=True, slots=True)
class FetchSnapshot:
    """A replica asks for a piece of a snapshot."""

    epoch: int
    replica: ReplicaKey
    snapshot_id: SnapshotId
    position: int
    max_bytes: int


@dataclass(frozen=True, slots=True)
class AddVoter:
    """Make a replica a voter."""

    voter: Voter
    ack_when_committed: bool = True


@dataclass(frozen=True, slots=True)
class RemoveVoter:
    """Take a voter out of the quorum."""

    key: ReplicaKey


@dataclass(frozen=True, slots=True)
class UpdateVoter:
    """A voter says where it answers and what it supports."""

    epoch: int
    voter: Voter


@dataclass(frozen=True, slots=True)
class AskVersions:
    """The question which levels of kraft.version a replica supports (ApiVersions)."""


Request = (
    Vote
    | BeginEpoch
    | EndEpoch
    | Fetch
    | FetchSnapshot
    | AddVoter
    | RemoveVoter
    | UpdateVoter
    | AskVersions
)

# -- answers


@dataclass(frozen=True, slots=True)
class VoteReply:
    """The answer to a vote request: granted or not."""

    standing: Standing
    error: ErrorCode = ErrorCode.NONE
    is_granted: bool = False


@dataclass(frozen=True, slots=True)
class BeginEpochReply:
    """The leader is known."""

    standing: Standing
    error: ErrorCode = ErrorCode.NONE


@dataclass(frozen=True, slots=True)
class EndEpochReply:
    """The resignation is known."""

    standing: Standing
    error: ErrorCode = ErrorCode.NONE


@dataclass(frozen=True, slots=True)
class FetchReply:
    """Records from `offset` on; or where the logs part; or which snapshot to begin with."""

    standing: Standing
    error: ErrorCode = ErrorCode.NONE
    offset: int = NO_OFFSET
    high_watermark: int = NO_OFFSET
    log_start_offset: int = NO_OFFSET
    diverging: LogPosition | None = None
    snapshot_id: SnapshotId | None = None
    records: Buffer | None = None
    """The records that the leader's driver reads from its log when it answers."""


@dataclass(frozen=True, slots=True)
class FetchSnapshotReply:
    """A piece of a snapshot of `size_bytes`; its driver reads it when it answers."""

    standing: Standing
    error: ErrorCode = ErrorCode.NONE
    snapshot_id: SnapshotId | None = None
    size_bytes: int = 0
    position: int = 0
    data: Buffer | None = None


@dataclass(frozen=True, slots=True)
class AddVoterReply:
    """The outcome of AddVoter."""

    error: ErrorCode = ErrorCode.NONE
    message: str | None = None


@dataclass(frozen=True, slots=True)
class RemoveVoterReply:
    """The outcome of RemoveVoter."""

    error: ErrorCode = ErrorCode.NONE
    message: str | None = None


@dataclass(frozen=True, slots=True)
class UpdateVoterReply:
    """The outcome of UpdateVoter."""

    standing: Standing
    error: ErrorCode = ErrorCode.NONE


@dataclass(frozen=True, slots=True)
class VersionsReply:
    """The levels of kraft.version that a replica supports; none for one that knows none."""

    error: ErrorCode = ErrorCode.NONE
    levels: tuple[int, int] | None = None


Reply = (
    VoteReply
    | BeginEpochReply
    | EndEpochReply
    | FetchReply
    | FetchSnapshotReply
    | AddVoterReply
    | RemoveVoterReply
    | UpdateVoterReply
    | VersionsReply
)
