"""One replica of the metadata log at work: disk, time and tasks around the pure machine.

The log is forced to the medium before anything of it counts: appends return at once, and one
fsync serves all that were made while the one before was under way. What a majority has on the
medium is committed, and whoever waits for it is woken.

This release runs quorums of one voter; a directory or configuration that names more is refused
at start.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from barnabas.base.clock import Clock
from barnabas.base.disk import Disk
from barnabas.log.errors import LogDirFailure
from barnabas.log.partition_log import AppendOrigin, PartitionLog
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.raft_records import (
    KRaftVersionRecord,
    LeaderChangeMessage,
    LeaderChangeMessageVoter,
)
from barnabas.protocol.records.control import ControlMessage, encode_control_batch
from barnabas.protocol.records.records import Record, encode_batch
from barnabas.protocol.schema import Message
from barnabas.raft.core.machine import (
    AdvanceHighWatermark,
    AnnounceLeader,
    AppendEpochStart,
    Effect,
    ElectionTimedOut,
    EpochStartAppended,
    Event,
    FlushLog,
    PersistElection,
    RaftState,
    RecordsAppended,
    ReplicaFlushed,
    Role,
    step,
)
from barnabas.raft.interfaces import (
    Appended,
    NotLeaderError,
    RaftListener,
    RaftTransport,
    RandomSource,
)
from barnabas.raft.quorum_state import (
    ElectionState,
    read_quorum_state,
    write_quorum_state,
)
from barnabas.raft.recovery import NEVER_LOGGED, MetadataLogError, Recovered, recover
from barnabas.raft.settings import RaftSettings
from barnabas.raft.snapshot_files import (
    SnapshotId,
    SnapshotWriter,
    delete_snapshot,
    encode_snapshot,
    list_snapshots,
)
from barnabas.raft.voters import Voter, VoterSet

telemetry = logging.getLogger(__name__)


class RaftNode:
    """A replica. `start` returns when it leads and everything in its log is committed."""

    def __init__(
        self,
        *,
        disk: Disk,
        clock: Clock,
        log: PartitionLog,
        directory: str,
        local: Voter,
        static_voters: VoterSet | None,
        listener: RaftListener,
        on_failure: Callable[[Exception], None],
        random: RandomSource | None = None,
        cluster_id: str = "",
        is_controller: bool = True,
        bootstrap: Sequence[tuple[str, int]] = (),
        settings: RaftSettings | None = None,
        transport: RaftTransport | None = None,
    ) -> None:
        self._disk = disk
        self._clock = clock
        self._log = log
        self._directory = directory
        self._local = local
        self._static_voters = static_voters
        self._listener = listener
        self._on_failure = on_failure
        self._waiters: list[tuple[int, asyncio.Future[None]]] = []
        self._flusher: asyncio.Task[None] | None = None
        self._failure: Exception | None = None
        self._state = RaftState(local.key, VoterSet({}), ElectionState(), 0)
        self._voters_offset = NEVER_LOGGED
        self.kraft_version = 0
        self.snapshot_id: SnapshotId | None = None
        """The newest snapshot on disk."""

    @property
    def epoch(self) -> int:
        """The epoch this replica is in."""
        return self._state.election.epoch

    @property
    def leader_id(self) -> int:
        """The leader of the epoch, or -1."""
        return self._state.election.leader_id

    @property
    def is_leader(self) -> bool:
        """Whether this replica may append."""
        return self._state.role is Role.LEADER

    @property
    def voters(self) -> VoterSet:
        """The voters that hold now."""
        return self._state.voters

    @property
    def high_watermark(self) -> int:
        """The offset after the last committed record."""
        return self._state.high_watermark

    @property
    def log_end_offset(self) -> int:
        """The offset after the last record."""
        return self._state.log_end_offset

    async def start(self) -> None:
        """Recover, become leader, and hand everything committed to the listener.

        Raises MetadataLogError where the replica cannot lead alone, and OSError.
        """
        recovered = recover(self._disk, self._directory, self._log)
        voters = self._check_voters(recovered)
        self.kraft_version = recovered.kraft_version
        self.snapshot_id = recovered.snapshot_id
        self._voters_offset = recovered.voters_offset
        election = read_quorum_state(self._disk, self._directory) or ElectionState()
        # A log copied without its quorum-state must not fall back to epochs it has seen.
        election_epoch = max(election.epoch, self._log.epochs.latest_epoch)
        self._state = RaftState(
            local=self._local.key,
            voters=voters,
            election=ElectionState(election_epoch),
            log_end_offset=self._log.log_end_offset,
        )
        self._handle(ElectionTimedOut())
        await self.wait_committed(self.log_end_offset - 1)
        if recovered.snapshot_id is not None and recovered.snapshot is not None:
            self._listener.load_snapshot(recovered.snapshot_id, recovered.snapshot)
        self._listener.apply(recovered.batches)

    def _check_voters(self, recovered: Recovered) -> VoterSet:
        """The quorum this replica belongs to. Raises MetadataLogError unless it is all of it."""
        local = self._local.key
        voters = recovered.voters if recovered.kraft_version >= 1 else self._static_voters
        if voters is None or not voters.by_id:
            raise MetadataLogError(
                f"{self._directory} names no voters: set controller.quorum.voters, or format it "
                "with --standalone"
            )
        if not voters.is_voter(local):
            raise MetadataLogError(
                f"node {local.id} with this metadata directory is not among the voters "
                f"{sorted(voters.by_id)} of the quorum"
            )
        if len(voters.by_id) > 1:
            raise MetadataLogError(
                f"the quorum has voters {sorted(voters.by_id)}; this release runs a single voter"
            )
        return voters

    @property
    def leader_endpoint(self) -> tuple[str, int] | None:
        """Where the leader's controller listener answers, or None while none is known."""
        raise NotImplementedError

    async def handle(self, request: Message, version: int) -> Any:
        """Answer a request of the quorum's RPCs."""
        raise NotImplementedError

    def resign(self) -> None:
        """Lead no more: the others elect someone else."""
        raise NotImplementedError

    # -- appending

    def append(self, values: Sequence[bytes]) -> Appended:
        """Append records as one batch, atomically; `wait_committed` says when they hold.

        Raises NotLeaderError, and the failure that stopped the log.
        """
        if self._failure is not None:
            raise self._failure
        if not self.is_leader:
            raise NotLeaderError
        now_ms = self._clock.now_ms()
        batch = encode_batch([Record(timestamp=now_ms, value=value) for value in values])
        try:
            appended = self._write(batch, now_ms)
        except LogDirFailure as error:
            self._fail(error)
            raise
        self._handle(RecordsAppended(appended.last_offset + 1))
        return appended

    async def wait_committed(self, offset: int) -> None:
        """Return once the record at `offset` is committed. Raises the failure of the log."""
        if self._failure is not None:
            raise self._failure
        if offset < self.high_watermark:
            return
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters.append((offset, waiter))
        await waiter

    def _write(self, batch: bytearray, now_ms: int) -> Appended:
        result = self._log.append_as_leader(
            batch, leader_epoch=self.epoch, now_ms=now_ms, origin=AppendOrigin.RAFT
        )
        assert result.error == ErrorCode.NONE, f"the metadata log refused a batch: {result}"
        return Appended(result.first_offset, result.last_offset)

    # -- the machine's effects

    def _handle(self, event: Event) -> None:
        try:
            for effect in step(self._state, event):
                self._do(effect)
        except Exception as error:
            self._fail(error)
            raise

    def _do(self, effect: Effect) -> None:
        match effect:
            case PersistElection(election):
                write_quorum_state(
                    self._disk,
                    self._directory,
                    election,
                    kraft_version=self.kraft_version,
                    voters=sorted(self.voters.by_id),
                )
            case AppendEpochStart(epoch, granted_by):
                self._append_epoch_start(epoch, granted_by)
            case FlushLog():
                self._flush_soon()
            case AdvanceHighWatermark(offset):
                self._log.high_watermark = offset
                self._listener.committed(offset)
                self._wake(offset)
            case AnnounceLeader(epoch):
                telemetry.info(
                    "node %d leads the metadata quorum in epoch %d", self._local.key.id, epoch
                )

    def _append_epoch_start(self, epoch: int, granted_by: tuple[int, ...]) -> None:
        records: list[ControlMessage] = [
            LeaderChangeMessage(
                version=0,
                leader_id=self._local.key.id,
                voters=[LeaderChangeMessageVoter(voter_id=voter) for voter in self.voters.by_id],
                granting_voters=[LeaderChangeMessageVoter(voter_id=voter) for voter in granted_by],
            )
        ]
        if self.kraft_version >= 1 and self._must_write_voters():
            self._state.voters = self.voters.with_voter(self._local)
            records.append(KRaftVersionRecord(version=0, k_raft_version=self.kraft_version))
            records.append(self.voters.to_record())
        now_ms = self._clock.now_ms()
        batch = encode_control_batch(records, timestamp_ms=now_ms, partition_leader_epoch=epoch)
        appended = self._write(batch, now_ms)
        if len(records) > 1:
            self._voters_offset = appended.last_offset
        self._handle(EpochStartAppended(appended.base_offset, appended.last_offset + 1))

    def _must_write_voters(self) -> bool:
        """Whether the log lacks the voters, or has this one's endpoints wrong."""
        known = self.voters.by_id[self._local.key.id]
        return self._voters_offset == NEVER_LOGGED or known != self._local

    def _flush_soon(self) -> None:
        if self._flusher is None:
            self._flusher = asyncio.get_running_loop().create_task(self._flush())

    async def _flush(self) -> None:
        """fsync until nothing is left to do; appends made meanwhile share the next one."""
        try:
            while self._state.flushed[self._local.key.id] < self.log_end_offset:
                await self._log.flush()
                self._handle(ReplicaFlushed(self._local.key.id, self._log.flushed_offset))
        except Exception as error:  # noqa: BLE001  it goes to everyone who waits, and to the node
            self._fail(error)
        finally:
            self._flusher = None

    def _wake(self, high_watermark: int) -> None:
        waiting = []
        for offset, waiter in self._waiters:
            if offset >= high_watermark:
                waiting.append((offset, waiter))
            elif not waiter.done():
                waiter.set_result(None)
        self._waiters = waiting

    def _fail(self, error: Exception) -> None:
        """Nothing can be appended or committed any more; the node must not go on."""
        if self._failure is not None:
            return
        self._failure = error
        for _, waiter in self._waiters:
            if not waiter.done():
                waiter.set_exception(error)
        self._waiters.clear()
        self._on_failure(error)

    # -- snapshots

    async def write_snapshot(
        self, snapshot_id: SnapshotId, values: Iterable[bytes], last_timestamp_ms: int
    ) -> int:
        """Write a snapshot of committed state and return its size in bytes. Raises OSError."""
        assert snapshot_id.end_offset <= self.high_watermark, "a snapshot of uncommitted records"
        writer = SnapshotWriter(self._disk, self._directory, snapshot_id)
        try:
            for batch in encode_snapshot(
                values,
                now_ms=self._clock.now_ms(),
                epoch=snapshot_id.epoch,
                last_timestamp_ms=last_timestamp_ms,
                kraft_version=self.kraft_version,
                voters=self.voters if self.kraft_version >= 1 else None,
            ):
                writer.append(batch)
                await asyncio.sleep(0)
            size_bytes = await writer.freeze()
        except BaseException:
            writer.abandon()
            raise
        self.snapshot_id = snapshot_id
        return size_bytes

    def clean(self, *, retention_bytes: int, retention_ms: int) -> list[SnapshotId]:
        """Drop old snapshots, and the log that newer ones cover; returns the snapshots dropped.

        A snapshot goes while log and snapshots together exceed `retention_bytes`, or when its
        data is older than `retention_ms` (-1: no limit); the newest always stays. Raises OSError.
        Source: Kafka's KafkaMetadataLog.maybeClean.
        """
        kept = list_snapshots(self._disk, self._directory)
        dropped = []
        now_ms = self._clock.now_ms()
        while len(kept) > 1:
            path = f"{self._directory}/{kept[0].file_name}"
            total = self._log.size_bytes + sum(self._size_bytes(snapshot) for snapshot in kept)
            too_large = 0 <= retention_bytes < total
            too_old = 0 <= retention_ms < now_ms - self._disk.modified_ms(path)
            if not (too_large or too_old):
                break
            self._log.delete_records_before(kept[1].end_offset)
            self._log.apply_retention(now_ms)
            delete_snapshot(self._disk, self._directory, kept[0])
            dropped.append(kept.pop(0))
        return dropped

    def _size_bytes(self, snapshot_id: SnapshotId) -> int:
        file = self._disk.open(f"{self._directory}/{snapshot_id.file_name}")
        try:
            return file.size()
        finally:
            file.close()

    async def stop(self) -> None:
        """Finish the fsync under way and close the log.

        Who still waits is told that the replica stopped. Raises LogDirFailure.
        """
        if self._flusher is not None:
            await self._flusher
        if self._failure is None:
            self._failure = NotLeaderError("the replica stopped")
        for _, waiter in self._waiters:
            if not waiter.done():
                waiter.set_exception(self._failure)
        self._waiters.clear()
        self._log.close(clean=True)
