"""Events that a replica takes in, and effects that it asks for."""

from dataclasses import dataclass, field
from enum import Enum, auto

from barnabas.base.disk import Buffer
from barnabas.node.raft.core.messages import Reply, Request
from barnabas.node.raft.quorum_state import ElectionState
from barnabas.node.raft.snapshot_files import SnapshotId
from barnabas.node.raft.voters import VoterSet


class Failure(Enum):
    """Why a request got no answer."""

    REFUSED = auto()
    """Nobody listens there: the process is dead."""
    LOST = auto()
    """There was a connection, and it broke."""
    TIMED_OUT = auto()
    """Slow, paused or unreachable: no evidence of anything."""


# -- events


@dataclass(frozen=True, slots=True)
class Started:
    """The replica has read what its disk holds."""


@dataclass(frozen=True, slots=True)
class TimePassed:
    """A deadline may be over."""


@dataclass(frozen=True, slots=True)
class RequestReceived:
    """Another node asks; the Answer carries the same token."""

    token: int
    request: Request


@dataclass(frozen=True, slots=True)
class ReplyReceived:
    """The answer to request `number` to `peer_id`."""

    peer_id: int
    number: int
    reply: Reply


@dataclass(frozen=True, slots=True)
class RequestFailed:
    """There will be no answer to request `number` to `peer_id`."""

    peer_id: int
    number: int
    failure: Failure


@dataclass(frozen=True, slots=True)
class LogAppended:
    """The log grew; its control records about the quorum, with their offsets."""

    voters: tuple[tuple[int, VoterSet], ...] = ()
    kraft_versions: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class AppendRejected:
    """The leader sent a batch that does not belong in the log: damaged, or out of place."""


@dataclass(frozen=True, slots=True)
class LogTruncated:
    """The log was cut as TruncateLog said."""


@dataclass(frozen=True, slots=True)
class LogFlushed:
    """More of the log is on the medium."""


@dataclass(frozen=True, slots=True)
class SnapshotStored:
    """The downloaded snapshot is whole and on the medium."""

    snapshot_id: SnapshotId


@dataclass(frozen=True, slots=True)
class SnapshotInstalled:
    """The replica's state is that of the snapshot; the log is empty and begins at its end."""

    snapshot_id: SnapshotId
    voters: VoterSet | None
    kraft_version: int


@dataclass(frozen=True, slots=True)
class SnapshotRejected:
    """The downloaded snapshot is incomplete."""


@dataclass(frozen=True, slots=True)
class UpgradeRequested:
    """kraft.version should be raised to `level`, which `upgrade_refusal` allows."""

    level: int


@dataclass(frozen=True, slots=True)
class ResignRequested:
    """The replica should lead no more."""


@dataclass(frozen=True, slots=True)
class StopRequested:
    """The replica is about to stop: lead no more, and do not stand again."""


Event = (
    Started
    | TimePassed
    | RequestReceived
    | ReplyReceived
    | RequestFailed
    | LogAppended
    | AppendRejected
    | LogTruncated
    | LogFlushed
    | SnapshotStored
    | SnapshotInstalled
    | SnapshotRejected
    | UpgradeRequested
    | ResignRequested
    | StopRequested
)

# -- effects


@dataclass(frozen=True, slots=True)
class PersistElection:
    """Write the quorum-state file and force it to the medium before the next effect."""

    election: ElectionState


@dataclass(frozen=True, slots=True)
class Send:
    """Ask; a ReplyReceived or RequestFailed with the same number follows."""

    peer_id: int
    host: str
    port: int
    number: int
    request: Request


@dataclass(frozen=True, slots=True)
class Answer:
    """Answer the request that came with `token`."""

    token: int
    reply: Reply


@dataclass(frozen=True, slots=True)
class AppendEpochStart:
    """As leader, append the control records that begin the epoch; LogAppended follows.

    `voters` go with them, and `kraft_version`, where the log lacks them or has them wrong.
    """

    epoch: int
    granted_by: tuple[int, ...]
    kraft_version: int = 0
    voters: VoterSet | None = None


@dataclass(frozen=True, slots=True)
class AppendVoters:
    """As leader, append a new set of voters; LogAppended follows.

    Unless 0, `kraft_version` goes before them in the same batch.
    """

    epoch: int
    voters: VoterSet
    kraft_version: int = 0


@dataclass(frozen=True, slots=True)
class AppendRecords:
    """As follower, append what the leader sent; LogAppended or AppendRejected follows."""

    epoch: int
    records: Buffer = field(repr=False)


@dataclass(frozen=True, slots=True)
class TruncateLog:
    """Drop `offset` and all after it; LogTruncated follows."""

    offset: int


@dataclass(frozen=True, slots=True)
class FlushLog:
    """Force the log to the medium; LogFlushed follows."""


@dataclass(frozen=True, slots=True)
class BeginSnapshot:
    """Make ready to write down a snapshot; what was downloaded of another is void."""

    snapshot_id: SnapshotId


@dataclass(frozen=True, slots=True)
class AppendSnapshot:
    """Write down a piece of the snapshot."""

    data: Buffer = field(repr=False)


@dataclass(frozen=True, slots=True)
class StoreSnapshot:
    """It is whole: check it, force it to the medium; SnapshotStored or -Rejected follows."""

    snapshot_id: SnapshotId


@dataclass(frozen=True, slots=True)
class InstallSnapshot:
    """Start over from the stored snapshot; SnapshotInstalled follows."""

    snapshot_id: SnapshotId


@dataclass(frozen=True, slots=True)
class AbandonSnapshot:
    """Delete what was downloaded, stored or not."""


@dataclass(frozen=True, slots=True)
class AdvanceHighWatermark:
    """Everything before `offset` is committed."""

    offset: int


@dataclass(frozen=True, slots=True)
class AnnounceLeader:
    """`leader_id` leads `epoch`, or nobody is known to (-1)."""

    leader_id: int
    epoch: int


@dataclass(frozen=True, slots=True)
class ReportViolation:
    """Another replica said what no correct one can."""

    text: str


Effect = (
    PersistElection
    | Send
    | Answer
    | AppendEpochStart
    | AppendVoters
    | AppendRecords
    | TruncateLog
    | FlushLog
    | BeginSnapshot
    | AppendSnapshot
    | StoreSnapshot
    | InstallSnapshot
    | AbandonSnapshot
    | AdvanceHighWatermark
    | AnnounceLeader
    | ReportViolation
)
