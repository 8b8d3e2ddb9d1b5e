"""What becomes of a partition when its replicas or their brokers change.

Given the wanted in-sync replicas, replicas and so on, this finds the leader, the eligible leader
replicas and, where it is done, the end of a reassignment, and writes what differs as one
PartitionChangeRecord. A clean leader comes from the ISR or, when that is empty, from the ELR:
replicas that left an ISR which was below min.insync.replicas, so that nothing acknowledged can
be missing from them (KIP-966). Failing that, the last leader known may be taken if it is the
only one known, and with unclean election any live replica; then data may be lost, and the
leader is marked as recovering.
Source: Kafka's PartitionChangeBuilder and PartitionReassignmentReplicas.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum, auto

from barnabas.base.ids import Uuid
from barnabas.metadata.features import MetadataVersion
from barnabas.metadata.ids import DIRECTORY_UNASSIGNED
from barnabas.metadata.image import NO_LEADER, LeaderRecoveryState, PartitionImage
from barnabas.metadata.merging import LEADER_UNCHANGED
from barnabas.metadata.records import MetadataRecord
from barnabas.protocol.messages.metadata_records import PartitionChangeRecord


class Election(Enum):
    """How far the search for a leader may go."""

    PREFERRED = auto()
    """The first replica if it can lead, else as ONLINE."""
    ONLINE = auto()
    """Only a replica that has everything that was acknowledged."""
    UNCLEAN = auto()
    """Any live replica if there is no other."""


@dataclass(slots=True)
class PartitionChange:
    """A wanted change of one partition. `record()` decides; None means: leave as it is."""

    topic_id: Uuid
    partition_id: int
    partition: PartitionImage
    level: MetadataVersion
    is_acceptable_leader: Callable[[int], bool]
    elr_enabled: bool
    min_isr: int
    election: Election = Election.ONLINE
    isr: tuple[int, ...] | None = None
    replicas: tuple[int, ...] | None = None
    removing: tuple[int, ...] | None = None
    adding: tuple[int, ...] | None = None
    leader_recovery_state: int | None = None
    unclean_shutdown: tuple[int, ...] = ()
    """Replicas that went down uncleanly, and so are no longer known to hold everything."""
    directories: Mapping[int, Uuid] = field(default_factory=dict)
    """Directories that are newly known, by replica."""
    default_directory: Callable[[int], Uuid] = lambda _: DIRECTORY_UNASSIGNED

    def record(self) -> MetadataRecord | None:
        """The record that makes the change, or None if nothing differs."""
        return _Builder(self).build()


class _Builder:
    """The targets, refined step by step."""

    def __init__(self, change: PartitionChange) -> None:
        partition = change.partition
        self.change = change
        self.partition = partition
        self.isr = _or_else(change.isr, partition.isr)
        self.replicas = _or_else(change.replicas, partition.replicas)
        self.removing = _or_else(change.removing, partition.removing)
        self.adding = _or_else(change.adding, partition.adding)
        self.elr = partition.elr
        self.record = PartitionChangeRecord(
            partition_id=change.partition_id, topic_id=change.topic_id
        )
        self.is_unclean = False

    def build(self) -> MetadataRecord | None:
        self._complete_reassignment()
        self._find_eligible_replicas()
        self._elect()
        self._keep_epoch_rules()
        self._write_isr()
        self._write_last_known_leader()
        self._write_assignment()
        wanted_state = self.change.leader_recovery_state
        if wanted_state is not None and wanted_state != self.partition.leader_recovery_state:
            self.record.leader_recovery_state = wanted_state
        if self.record == PartitionChangeRecord(
            partition_id=self.change.partition_id, topic_id=self.change.topic_id
        ):
            return None
        return MetadataRecord(self.record, self.change.level.partition_record_version)

    def _complete_reassignment(self) -> None:
        """Drop the replicas that leave once all that stay are in sync."""
        if not (self.removing or self.adding):
            return
        isr = tuple(replica for replica in self.isr if replica not in self.removing)
        replicas = tuple(replica for replica in self.replicas if replica not in self.removing)
        if isr and replicas and set(replicas) <= set(isr):
            self.isr, self.replicas, self.removing, self.adding = isr, replicas, (), ()

    def _find_eligible_replicas(self) -> None:
        """Keep those that leave an ISR below min.insync.replicas, and drop them all above."""
        if not self.change.elr_enabled:
            return
        if len(self.isr) >= self.change.min_isr:
            self.elr = ()
            return
        candidates = dict.fromkeys((*self.elr, *self.partition.isr))
        self.elr = tuple(
            replica
            for replica in candidates
            if replica not in self.isr and replica not in self.change.unclean_shutdown
        )

    def _elect(self) -> None:
        leader = self._find_leader()
        if leader == self.partition.leader:
            return
        if leader in self.elr and not self.is_unclean:
            self.isr = (leader,)
            self.elr = tuple(replica for replica in self.elr if replica != leader)
        self.record.leader = leader
        if self.is_unclean:
            self.record.isr = [leader]
            if self.partition.leader_recovery_state != LeaderRecoveryState.RECOVERING:
                self.record.leader_recovery_state = LeaderRecoveryState.RECOVERING

    def _find_leader(self) -> int:
        current = self.partition.leader
        first, *others = self.replicas or (NO_LEADER,)
        if self.change.election is Election.PREFERRED:
            candidates = [first, current, *others]
        else:
            candidates = [current, first, *others]
        for replica in candidates:
            if replica != NO_LEADER and self._is_clean_leader(replica):
                return replica
        acceptable = self.change.is_acceptable_leader
        unclean = []
        if self._may_take_last_known_leader():
            unclean.append(self.partition.last_known_elr[0])
        if self.change.election is Election.UNCLEAN:
            unclean += self.replicas
        for replica in unclean:
            if acceptable(replica):
                self.is_unclean = True
                return replica
        return NO_LEADER

    def _is_clean_leader(self, replica: int) -> bool:
        eligible = self.isr or self.elr
        return replica in eligible and self.change.is_acceptable_leader(replica)

    def _may_take_last_known_leader(self) -> bool:
        return (
            self.change.elr_enabled
            and not self.isr
            and not self.elr
            and len(self.partition.last_known_elr) == 1
        )

    def _keep_epoch_rules(self) -> None:
        """Name the leader again where its epoch must rise though it stays.

        Replicas that leave must not go on fetching in the old epoch; and before 3.6-IV0 a
        shrinking ISR needed it too (KAFKA-15021).
        """
        if self.record.leader != LEADER_UNCHANGED:
            return
        shrinks = self.change.level.has_leader_epoch_bump_on_isr_shrink and not set(
            self.partition.isr
        ) <= set(self.isr)
        if shrinks or not set(self.partition.replicas) <= set(self.replicas):
            self.record.leader = self.partition.leader

    def _write_isr(self) -> None:
        if self.is_unclean or not self.change.elr_enabled:
            self.elr = ()
        if self.elr != self.partition.elr:
            self.record.eligible_leader_replicas = list(self.elr)
        # Without ELR the last member of an ISR stays in it: it is all that is known.
        if (
            self.record.isr is None
            and (self.isr or self.change.elr_enabled)
            and self.isr != self.partition.isr
        ):
            self.record.isr = list(self.isr)

    def _write_last_known_leader(self) -> None:
        if not self.change.elr_enabled:
            if self.partition.last_known_elr and self.change.level.has_elr:
                self.record.last_known_elr = []
            return
        leader = self.partition.leader
        if self.record.isr == [] and self.partition.last_known_elr != (leader,):
            if leader != NO_LEADER:
                self.record.last_known_elr = [leader]
        elif self.partition.last_known_elr and (
            self.record.leader >= 0 or (leader != NO_LEADER and self.record.leader != NO_LEADER)
        ):
            self.record.last_known_elr = []

    def _write_assignment(self) -> None:
        if self.change.level.has_directories and self.replicas:
            held = dict(zip(self.partition.replicas, self.partition.directories, strict=False))
            held.update(self.change.directories)
            directories = tuple(
                held.get(replica) or self.change.default_directory(replica)
                for replica in self.replicas
            )
            if directories != self.partition.directories:
                self.record.directories = list(directories)
        if self.replicas != self.partition.replicas:
            self.record.replicas = list(self.replicas)
        if self.removing != self.partition.removing:
            self.record.removing_replicas = list(self.removing)
        if self.adding != self.partition.adding:
            self.record.adding_replicas = list(self.adding)


def _or_else(wanted: tuple[int, ...] | None, current: tuple[int, ...]) -> tuple[int, ...]:
    return current if wanted is None else wanted
