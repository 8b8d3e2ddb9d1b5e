"""History of voter sets and kraft.version, from the control records of the log.

Both hold from the moment they are in the log, committed or not, and no longer when they are cut
off it (KIP-853). Source: Kafka's KRaftControlRecordStateMachine and VoterSetHistory.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from barnabas.node.raft.voters import ReplicaKey, VoterSet

NEVER_LOGGED = -1
"""The offset of voters that are not in the log yet: configured, or written by `storage format`."""
EMPTY = VoterSet({})


@dataclass(slots=True)
class VoterHistory:
    """(offset, value), ascending."""

    static: VoterSet = EMPTY
    """From the configuration; they hold while kraft.version is 0, and until it was raised."""
    voters: list[tuple[int, VoterSet]] = field(default_factory=list)
    kraft_versions: list[tuple[int, int]] = field(default_factory=list)

    @property
    def kraft_version(self) -> int:
        """The kraft.version that holds now."""
        return self.kraft_versions[-1][1] if self.kraft_versions else 0

    @property
    def latest(self) -> VoterSet:
        """The voters that hold now."""
        if self.kraft_version >= 1 and self.voters:
            return self.voters[-1][1]
        return self.static

    @property
    def latest_offset(self) -> int:
        """The offset of the current voters' record, or NEVER_LOGGED."""
        return self.voters[-1][0] if self.voters else NEVER_LOGGED

    def is_needed(self, replica: ReplicaKey, high_watermark: int) -> bool:
        """Return whether `replica` votes, or did until a change that may not be committed."""
        if self.latest.is_voter(replica):
            return True
        if self.kraft_version < 1 or not self.voters or self.latest_offset < high_watermark:
            return False
        previous = self.voters[-2][1] if len(self.voters) > 1 else self.static
        return previous.is_voter(replica)

    def before(self, end_offset: int) -> tuple[int, VoterSet | None]:
        """(kraft.version, voters) as the records before `end_offset` have them."""
        versions = [version for offset, version in self.kraft_versions if offset < end_offset]
        voters = [voters for offset, voters in self.voters if offset < end_offset]
        kraft_version = versions[-1] if versions else 0
        return kraft_version, voters[-1] if voters and kraft_version >= 1 else None

    def append(
        self, voters: Iterable[tuple[int, VoterSet]], kraft_versions: Iterable[tuple[int, int]]
    ) -> None:
        """Note control records at the end of the log."""
        self.voters.extend(voters)
        self.kraft_versions.extend(kraft_versions)

    def truncate_to(self, end_offset: int) -> None:
        """Forget what the log lost."""
        self.voters = [entry for entry in self.voters if entry[0] < end_offset]
        self.kraft_versions = [entry for entry in self.kraft_versions if entry[0] < end_offset]

    def restart(self, end_offset: int, voters: VoterSet | None, kraft_version: int) -> None:
        """Start over from a snapshot."""
        self.voters = [] if voters is None else [(end_offset - 1, voters)]
        self.kraft_versions = [(end_offset - 1, kraft_version)] if kraft_version else []

    def forget_before(self, offset: int) -> None:
        """Let go of what no truncation and no snapshot can ask for any more."""
        while len(self.voters) > 1 and self.voters[1][0] < offset:
            del self.voters[0]
        while len(self.kraft_versions) > 1 and self.kraft_versions[1][0] < offset:
            del self.kraft_versions[0]
