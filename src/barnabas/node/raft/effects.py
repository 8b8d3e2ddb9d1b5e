"""Doing what the machine says: to the disk, to other nodes, to the listener.

Each effect is done at once, in order, except for the fsync and the storing of a snapshot, which
take their time beside the loop and are events when they are done.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from dataclasses import replace

from barnabas.base.disk import Buffer, Disk
from barnabas.base.ids import uuid_to_text
from barnabas.node.raft.applier import Applier
from barnabas.node.raft.core.events import (
    AbandonSnapshot,
    AdvanceHighWatermark,
    AnnounceLeader,
    Answer,
    AppendEpochStart,
    AppendRecords,
    AppendRejected,
    AppendSnapshot,
    AppendVoters,
    BeginSnapshot,
    Effect,
    Event,
    FlushLog,
    InstallSnapshot,
    LogAppended,
    LogFlushed,
    LogTruncated,
    PersistElection,
    ReportViolation,
    Send,
    SnapshotInstalled,
    SnapshotRejected,
    SnapshotStored,
    StoreSnapshot,
    TruncateLog,
)
from barnabas.node.raft.core.messages import (
    Fetch,
    FetchReply,
    FetchSnapshot,
    FetchSnapshotReply,
    Reply,
    Request,
)
from barnabas.node.raft.core.voter_history import VoterHistory
from barnabas.node.raft.exchange import Exchange
from barnabas.node.raft.quorum_state import write_quorum_state
from barnabas.node.raft.recovery import Controls, MetadataLogError
from barnabas.node.raft.replica_log import ReplicaLog
from barnabas.node.raft.settings import RaftSettings
from barnabas.node.raft.snapshot_files import (
    Snapshot,
    SnapshotError,
    SnapshotId,
    SnapshotWriter,
    delete_snapshot,
    read_snapshot,
)
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.quorum import (
    KRaftVersionRecord,
    LeaderChangeMessage,
    LeaderChangeMessageVoter,
)
from barnabas.protocol.records.control import ControlMessage

telemetry = logging.getLogger(__name__)


class EffectRunner:
    """`happened` receives the results of effects that take time, `failed` the error that ended
    one."""

    def __init__(
        self,
        *,
        disk: Disk,
        directory: str,
        log: ReplicaLog,
        applier: Applier,
        exchange: Exchange,
        history: VoterHistory,
        settings: RaftSettings,
        local_id: int,
        happened: Callable[[Event], None],
        failed: Callable[[Exception], None],
    ) -> None:
        self._disk = disk
        self._directory = directory
        self._log = log
        self._applier = applier
        self._exchange = exchange
        self._history = history
        self._settings = settings
        self._local_id = local_id
        self._happened = happened
        self._failed = failed
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._download: SnapshotDownload | None = None

    def run(self, effect: Effect) -> Event | None:
        """Do it; returns what came of it, unless that takes time. Raises LogDirFailure, OSError."""
        match effect:
            case Send():
                self._exchange.send(effect)
            case Answer(token, reply):
                self._exchange.answer(token, reply, self._complete)
            case PersistElection(election):
                write_quorum_state(
                    self._disk,
                    self._directory,
                    election,
                    kraft_version=self._history.kraft_version,
                    voters=sorted(self._history.latest.by_id),
                )
            case FlushLog():
                self._begin("flush", self._flush)
            case AdvanceHighWatermark(offset):
                self._applier.committed(offset)
            case AnnounceLeader(leader_id, epoch):
                self._announce(leader_id, epoch)
            case ReportViolation(text):
                telemetry.error("node %d: %s", self._local_id, text)
            case AppendEpochStart() | AppendVoters() | AppendRecords() | TruncateLog():
                return self._change_log(effect)
            case _:
                return self._change_snapshot(effect)
        return None

    def _announce(self, leader_id: int, epoch: int) -> None:
        if leader_id == self._local_id:
            telemetry.info("node %d leads the metadata quorum in epoch %d", leader_id, epoch)
        else:
            self._applier.leader_changed(leader_id, epoch)

    # -- the log

    def _change_log(
        self, effect: AppendEpochStart | AppendVoters | AppendRecords | TruncateLog
    ) -> Event:
        match effect:
            case AppendEpochStart(epoch):
                self._applier.leads(epoch, self._log.end_offset)
                return _appended(self._log.append_control(self._epoch_start(effect), epoch))
            case AppendVoters(epoch, voters, kraft_version):
                if kraft_version:
                    telemetry.info(
                        "node %d raises kraft.version to %d; the voters are %s",
                        self._local_id,
                        kraft_version,
                        ", ".join(
                            f"{voter.key.id} ({uuid_to_text(voter.key.directory_id)})"
                            for voter in voters.by_id.values()
                        ),
                    )
                return _appended(self._log.append_control(_voters_records(effect), epoch))
            case AppendRecords(epoch, records):
                result = self._log.append_fetched(records, epoch)
                if isinstance(result, Controls):
                    return _appended(result)
                telemetry.error("node %d: the leader sent %s", self._local_id, result)
                return AppendRejected()
            case TruncateLog(offset):
                telemetry.info(
                    "node %d truncates its metadata log from %d to %d, "
                    "where it diverges from the leader's",
                    self._local_id,
                    self._log.end_offset,
                    offset,
                )
                self._log.truncate_to(offset)
                self._applier.truncated(self._log.end_offset)
                return LogTruncated()

    def _epoch_start(self, effect: AppendEpochStart) -> list[ControlMessage]:
        records: list[ControlMessage] = [
            LeaderChangeMessage(
                version=0,
                leader_id=self._local_id,
                voters=[
                    LeaderChangeMessageVoter(voter_id=voter) for voter in self._history.latest.by_id
                ],
                granting_voters=[
                    LeaderChangeMessageVoter(voter_id=voter) for voter in effect.granted_by
                ],
            )
        ]
        if effect.voters is not None:
            records.append(KRaftVersionRecord(version=0, k_raft_version=effect.kraft_version))
            records.append(effect.voters.to_record())
        return records

    async def _flush(self) -> None:
        await self._log.flush()
        self._log.mark.raise_to(self._log.flushed_offset)
        self._happened(LogFlushed())

    # -- snapshots

    def _change_snapshot(self, effect: Effect) -> Event | None:
        match effect:
            case BeginSnapshot(snapshot_id):
                telemetry.info("node %d fetches snapshot %s", self._local_id, snapshot_id)
                self._abandon_download()
                self._download = SnapshotDownload(self._disk, self._directory, snapshot_id)
            case AppendSnapshot(data):
                assert self._download is not None
                self._download.append(data)
            case StoreSnapshot():
                assert self._download is not None
                download = self._download
                self._begin("store", lambda: self._store(download))
            case InstallSnapshot(snapshot_id):
                return self._install(snapshot_id)
            case AbandonSnapshot():
                self._abandon_download()
            case _:
                raise AssertionError(f"nobody does {effect}")
        return None

    async def _store(self, download: SnapshotDownload) -> None:
        try:
            await download.store()
        except SnapshotError as error:
            telemetry.error("node %d fetched a damaged snapshot: %s", self._local_id, error)
            self._happened(SnapshotRejected())
        else:
            self._happened(SnapshotStored(download.snapshot_id))

    def _install(self, snapshot_id: SnapshotId) -> Event:
        download, self._download = self._download, None
        assert download is not None
        assert download.snapshot is not None
        snapshot = download.snapshot
        self._log.start_over(snapshot_id)
        self._applier.load_snapshot(snapshot_id, snapshot)
        telemetry.info("node %d starts over from snapshot %s", self._local_id, snapshot_id)
        return SnapshotInstalled(snapshot_id, snapshot.voters, snapshot.kraft_version)

    def _abandon_download(self) -> None:
        download, self._download = self._download, None
        if download is not None:
            download.abandon()

    # -- answers that carry data

    def _complete(self, reply: Reply, asked: Request) -> Reply:
        """The answer with the records, or the piece of a snapshot, that were asked for."""
        if isinstance(reply, FetchReply) and isinstance(asked, Fetch):
            is_empty = (
                reply.error != ErrorCode.NONE
                or reply.diverging is not None
                or reply.snapshot_id is not None
                or reply.offset >= self._log.end_offset
            )
            if is_empty:
                return reply
            max_bytes = min(asked.max_bytes, self._settings.fetch_max_bytes)
            try:
                return replace(reply, records=self._log.read(reply.offset, max_bytes))
            except MetadataLogError as damage:
                telemetry.error("node %d cannot answer a replica: %s", self._local_id, damage)
                return replace(reply, error=ErrorCode.UNKNOWN_SERVER_ERROR)
        if isinstance(reply, FetchSnapshotReply) and isinstance(asked, FetchSnapshot):
            if reply.error != ErrorCode.NONE:
                return reply
            max_bytes = min(asked.max_bytes, self._settings.fetch_snapshot_max_bytes)
            error, size_bytes, data = self._log.read_snapshot(
                asked.snapshot_id, asked.position, max_bytes
            )
            return replace(reply, error=error, size_bytes=size_bytes, data=data)
        return reply

    # -- what takes time

    def _begin(self, name: str, work: Callable[[], Coroutine[None, None, None]]) -> None:
        task = asyncio.get_running_loop().create_task(self._carry_out(work))
        self._tasks[name] = task

    async def _carry_out(self, work: Callable[[], Coroutine[None, None, None]]) -> None:
        try:
            await work()
        except Exception as error:  # noqa: BLE001  it goes to everyone who waits, and to the node
            self._failed(error)

    async def finish(self) -> None:
        """Return when nothing is under way."""
        while any(not task.done() for task in self._tasks.values()):
            await asyncio.gather(*self._tasks.values())
        self._abandon_download()


def _voters_records(effect: AppendVoters) -> list[ControlMessage]:
    records: list[ControlMessage] = [effect.voters.to_record()]
    if effect.kraft_version:
        records.insert(0, KRaftVersionRecord(version=0, k_raft_version=effect.kraft_version))
    return records


def _appended(controls: Controls) -> LogAppended:
    return LogAppended(tuple(controls.voters), tuple(controls.kraft_versions))


# -- a snapshot on its way from the leader: pieces are written beside the log until it is whole


class SnapshotDownload:
    """One snapshot. Every method raises OSError."""

    def __init__(self, disk: Disk, directory: str, snapshot_id: SnapshotId) -> None:
        self.snapshot_id = snapshot_id
        self.snapshot: Snapshot | None = None
        """The snapshot, once it is stored."""
        self._disk = disk
        self._directory = directory
        self._writer = SnapshotWriter(disk, directory, snapshot_id)
        self._is_storing = False
        self._is_abandoned = False

    def append(self, data: Buffer) -> None:
        """Write down the next piece."""
        self._writer.append(data)

    async def store(self) -> None:
        """Force it to the medium and read it. Raises SnapshotError for one that is damaged."""
        self._is_storing = True
        await self._writer.freeze()
        try:
            snapshot = read_snapshot(self._disk, self._directory, self.snapshot_id)
        except ValueError:
            self._is_abandoned = True
            raise
        finally:
            self._is_storing = False
            if self._is_abandoned:
                delete_snapshot(self._disk, self._directory, self.snapshot_id)
        if not self._is_abandoned:
            self.snapshot = snapshot

    def abandon(self) -> None:
        """Nothing shall remain of it; what is being stored goes when that is done."""
        self._is_abandoned = True
        if self.snapshot is not None:
            delete_snapshot(self._disk, self._directory, self.snapshot_id)
        elif not self._is_storing:
            self._writer.abandon()
