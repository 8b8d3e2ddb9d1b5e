"""Changes of a partition when its replicas or their brokers change.

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
from barnabas.node.metadata.ids import DIRECTORY_UNASSIGNED
from barnabas.node.metadata.image import NO_LEADER, LeaderRecoveryState, PartitionImage
from barnabas.node.metadata.merging import LEADER_UNCHANGED, RECOVERY_STATE_UNCHANGED
from barnabas.node.metadata.records import MetadataRecord
from barnabas.protocol.features import MetadataVersion
from barnabas.protocol.messages.metadata_records import PartitionChangeRecord


class Election(Enum):
    """The replicas that may become leader."""

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
    """min.insync.replicas of the topic; no more than there are replicas is ever asked for."""
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
        return _ChangeBuilder(self).build()


class _ChangeBuilder:
    """The targets, refined step by step."""

    __slots__ = (
        "adding",
        "change",
        "elr",
        "is_unclean",
        "isr",
        "partition",
        "record",
        "removing",
        "replicas",
    )

    def __init__(self, change: PartitionChange) -> None:
        partition = change.partition
        self.change = change
        self.partition = partition
        self.isr = partition.isr if change.isr is None else change.isr
        self.replicas = partition.replicas if change.replicas is None else change.replicas
        self.removing = partition.removing if change.removing is None else change.removing
        self.adding = partition.adding if change.adding is None else change.adding
        self.elr = partition.elr
        self.record = PartitionChangeRecord(
            partition_id=change.partition_id, topic_id=change.topic_id
        )
        self.is_unclean = False

    def build(self) -> MetadataRecord | None:
        if self.removing or self.adding:
            self._complete_reassignment()
        if self.change.elr_enabled:
            self._find_eligible_replicas()
        self._elect()
        if self.removing or self.adding:
            # A leader from outside the ISR may be all that is to stay.
            self._complete_reassignment()
            if self.change.elr_enabled:
                self._find_eligible_replicas()  # some of which may have left with that
        self._write_isr()
        self._keep_epoch_rules()
        self._write_last_known_leader()
        self._write_assignment()
        wanted_state = self.change.leader_recovery_state
        if wanted_state is not None and wanted_state != self.partition.leader_recovery_state:
            self.record.leader_recovery_state = wanted_state
        if self._is_empty():
            return None
        return MetadataRecord(self.record, self.change.level.partition_record_version)

    def _is_empty(self) -> bool:
        record = self.record
        return (
            record.leader == LEADER_UNCHANGED
            and record.isr is None
            and record.replicas is None
            and record.removing_replicas is None
            and record.adding_replicas is None
            and record.leader_recovery_state == RECOVERY_STATE_UNCHANGED
            and record.directories is None
            and record.eligible_leader_replicas is None
            and record.last_known_elr is None
        )

    def _complete_reassignment(self) -> None:
        """Drop the replicas that leave once all that stay are in sync."""
        isr = tuple(replica for replica in self.isr if replica not in self.removing)
        replicas = tuple(replica for replica in self.replicas if replica not in self.removing)
        if isr and replicas and set(replicas) <= set(isr):
            self.isr, self.replicas, self.removing, self.adding = isr, replicas, (), ()

    def _find_eligible_replicas(self) -> None:
        """Keep those that leave an ISR below min.insync.replicas, and drop them all above."""
        if len(self.isr) >= min(self.change.min_isr, len(self.replicas)):
            self.elr = ()
            return
        self.elr = tuple(
            replica
            for replica in dict.fromkeys((*self.elr, *self.partition.isr))
            if replica not in self.isr
            and replica in self.replicas
            and replica not in self.change.unclean_shutdown
        )

    def _elect(self) -> None:
        leader = self._find_leader()
        if leader == self.partition.leader and not self.is_unclean:
            return
        if leader in self.elr and not self.is_unclean:
            self.isr = (leader,)
            self.elr = tuple(replica for replica in self.elr if replica != leader)
        self.record.leader = leader
        if self.is_unclean:
            self.isr = (leader,)
            self.record.isr = [leader]
            if self.partition.leader_recovery_state != LeaderRecoveryState.RECOVERING:
                self.record.leader_recovery_state = LeaderRecoveryState.RECOVERING

    def _find_leader(self) -> int:
        current = self.partition.leader
        eligible = self.isr or self.elr
        acceptable = self.change.is_acceptable_leader
        if self.change.election is not Election.PREFERRED and (
            current in eligible and acceptable(current)
        ):
            return current
        if self.change.election is Election.PREFERRED:
            first, *others = self.replicas
            candidates = [first, current, *others]
        else:
            candidates = list(self.replicas)
        for replica in candidates:
            if replica in eligible and acceptable(replica):
                return replica
        unclean = []
        if self._may_take_last_known_leader():
            unclean.append(self.partition.last_known_elr[0])
        if self.change.election is Election.UNCLEAN:
            # Those that are only being added may have nothing yet.
            unclean += sorted(self.replicas, key=self.adding.__contains__)
        for replica in unclean:
            if acceptable(replica):
                self.is_unclean = True
                return replica
        return NO_LEADER

    def _may_take_last_known_leader(self) -> bool:
        return (
            self.change.elr_enabled
            and not self.isr
            and not self.elr
            and len(self.partition.last_known_elr) == 1
            and self.partition.last_known_elr[0] in self.replicas
        )

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

    def _keep_epoch_rules(self) -> None:
        """Name the leader again where its epoch must rise though it stays.

        Replicas that leave must not go on fetching in the old epoch; and before 3.6-IV0 a
        shrinking ISR needed it too (KAFKA-15021).
        """
        record = self.record
        if record.leader != LEADER_UNCHANGED:
            return
        if (
            self.replicas is not self.partition.replicas
            and not set(self.partition.replicas) <= set(self.replicas)
        ) or (
            record.isr is not None
            and self.change.level.has_leader_epoch_bump_on_isr_shrink
            and not set(self.partition.isr) <= set(record.isr)
        ):
            record.leader = self.partition.leader

    def _write_last_known_leader(self) -> None:
        if not self.change.elr_enabled:
            if self.partition.last_known_elr and self.change.level.has_elr:
                self.record.last_known_elr = []
            return
        leader = self.partition.leader
        if self.record.isr == [] and self.partition.last_known_elr != (leader,):
            if leader != NO_LEADER:
                self.record.last_known_elr = [leader]
            elif not self.partition.last_known_elr and self.partition.isr:
                # The leader went first, and the last that was in sync had as much. Kafka
                # remembers nobody here, and leaves the partition to its operator.
                self.record.last_known_elr = [self.partition.isr[-1]]
        elif self.partition.last_known_elr and (
            self.record.leader >= 0 or (leader != NO_LEADER and self.record.leader != NO_LEADER)
        ):
            self.record.last_known_elr = []

    def _write_assignment(self) -> None:
        partition, record = self.partition, self.record
        replicas_change = self.replicas != partition.replicas
        if replicas_change:
            record.replicas = list(self.replicas)
        if self.removing != partition.removing:
            record.removing_replicas = list(self.removing)
        if self.adding != partition.adding:
            record.adding_replicas = list(self.adding)
        if self.change.level.has_directories and (
            replicas_change
            or self.change.directories
            or len(partition.directories) != len(partition.replicas)
        ):
            held = dict(zip(partition.replicas, partition.directories, strict=False))
            held.update(self.change.directories)
            directories = tuple(
                held.get(replica) or self.change.default_directory(replica)
                for replica in self.replicas
            )
            if directories != partition.directories:
                record.directories = list(directories)
