"""Replicas of the pure machine in a world that drops, delays, reorders, crashes and forgets.

Nothing here knows Kafka's messages, files or tasks: what one machine wants sent, another gets as
an event, later or never. A crash loses what was not synced. After every step the rules of Raft
are checked on the whole world:

- election safety: an epoch has one leader, and a voter gives one vote in it;
- log matching: an offset and an epoch mean one record, with one record before it;
- state machine safety: a record committed on one node is the same on all, and stays;
- leader completeness: an elected leader has all committed records;
- a high watermark never goes back.
"""

import heapq
import random
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, cast

from machine_disk import Disk, Entry, ModelLog

from barnabas.base.ids import ZERO_UUID, Uuid
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
    Failure,
    FlushLog,
    InstallSnapshot,
    LogAppended,
    LogFlushed,
    LogTruncated,
    PersistElection,
    ReplyReceived,
    ReportViolation,
    RequestFailed,
    RequestReceived,
    Send,
    SnapshotInstalled,
    SnapshotStored,
    Started,
    StoreSnapshot,
    TimePassed,
    TruncateLog,
    UpgradeRequested,
)
from barnabas.node.raft.core.machine import step
from barnabas.node.raft.core.messages import (
    AddVoter,
    AskVersions,
    FetchReply,
    FetchSnapshotReply,
    RemoveVoter,
    Reply,
    Request,
    VersionsReply,
    VoteReply,
)
from barnabas.node.raft.core.state import NEVER, RaftState, Role
from barnabas.node.raft.core.upgrade import upgrade_refusal
from barnabas.node.raft.core.voter_history import VoterHistory
from barnabas.node.raft.settings import RaftSettings
from barnabas.node.raft.snapshot_files import SnapshotId
from barnabas.node.raft.voters import ReplicaKey, Voter, VoterEndpoint, VoterSet
from barnabas.protocol.errors import ErrorCode

SNAPSHOT_SIZE_BYTES = 10
CHUNK_SIZE_BYTES = 4
FETCH_ENTRIES_MAX = 5


class RuleBrokenError(AssertionError):
    """A rule of Raft was broken."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """What travels in place of bytes: entries with the offset of the first."""

    offset: int
    entries: tuple[Entry, ...]


def member(node_id: int) -> Voter:
    return Voter(
        ReplicaKey(node_id, Uuid(bytes([node_id] * 16))),
        (VoterEndpoint("CONTROLLER", f"node{node_id}", 1),),
    )


def configured(node_id: int) -> Voter:
    """The same as `controller.quorum.voters` knows it: without its directory."""
    return replace(member(node_id), key=ReplicaKey(node_id, ZERO_UUID))


@dataclass
class Node:
    """One replica; `state` is None while it is down."""

    local: Voter
    disk: Disk = field(default_factory=Disk)
    state: RaftState | None = None
    log: ModelLog | None = None
    incarnation: int = 0
    timer: int = 0
    high_watermark: int = 0
    downloading: SnapshotId | None = None


class World:
    """See the module."""

    def __init__(
        self,
        seed: int,
        voters: int = 3,
        observers: int = 0,
        *,
        drop: float = 0.0,
        kraft_version: int = 1,
        fetch_entries_max: int = FETCH_ENTRIES_MAX,
    ) -> None:
        self.random = random.Random(seed)
        self.now_ms = 0
        self.drop = drop
        self.fetch_entries_max = fetch_entries_max
        self.cut: set[tuple[int, int]] = set()
        self.settings = RaftSettings()
        initial = VoterSet({i: member(i) for i in range(1, voters + 1)})
        self.static = (
            VoterSet({i: configured(i) for i in initial.by_id})
            if kraft_version == 0
            else VoterSet({})
        )
        self.bootstrap = tuple((f"node{i}", 1) for i in range(1, voters + 1))
        self.kraft_version = kraft_version
        self.initial = initial
        self.nodes = {i: Node(member(i)) for i in range(1, voters + observers + 1)}
        self.bootstrapped = set(initial.by_id)
        self._queue: list[tuple[int, int, Callable[[], None]]] = []
        self._sequence = 0
        self._pending: dict[int, Callable[[Reply], None]] = {}
        self._token = 0
        self.persists = True
        """False plants a defect: elections are not written to the disk."""
        # Facts about the whole world.
        self.leaders: dict[int, int] = {}
        self.votes: dict[tuple[int, int], int] = {}
        self.records: dict[tuple[int, int], tuple[Any, int]] = {}
        self.committed: list[Entry] = []
        self.commit_epochs: list[int] = []
        """In which leader's epoch each became committed."""
        self.values = 0
        self.transcript: list[str] = []
        self.trace = False
        self.refusals: list[str] = []

    # -- time

    def later(self, delay_ms: int, action: Callable[[], None]) -> None:
        self._sequence += 1
        heapq.heappush(self._queue, (self.now_ms + delay_ms, self._sequence, action))

    def run(self, duration_ms: int) -> None:
        end_ms = self.now_ms + duration_ms
        while self._queue and self._queue[0][0] <= end_ms:
            self.now_ms, _, action = heapq.heappop(self._queue)
            action()
        self.now_ms = end_ms

    # -- nodes

    def start(self, node_id: int) -> None:
        node = self.nodes[node_id]
        assert node.state is None
        node.incarnation += 1
        node.log = ModelLog(node.disk)
        history = VoterHistory(static=self.static)
        if self.kraft_version and node_id in self.bootstrapped:
            history.restart(0, self.initial, self.kraft_version)
        snapshot_id = node.disk.snapshot_id
        if snapshot_id is not None:
            self._restart_history(history, snapshot_id.end_offset)
            node.high_watermark = snapshot_id.end_offset
        else:
            node.high_watermark = 0
        appended = _controls(node.log.start_offset, node.disk.entries)
        history.append(appended.voters, appended.kraft_versions)
        node.state = RaftState(
            local=node.local,
            settings=self.settings,
            log=node.log,
            election=node.disk.election,
            history=history,
            bootstrap=self.bootstrap if self.kraft_version else (),
            seed=self.random.getrandbits(62),
        )
        node.state.high_watermark = node.high_watermark
        self.step(node, Started())

    def _restart_history(self, history: VoterHistory, end_offset: int) -> None:
        controls = _controls(0, self.committed[:end_offset])
        voters = controls.voters[-1][1] if controls.voters else None
        version = controls.kraft_versions[-1][1] if controls.kraft_versions else 0
        history.restart(end_offset, voters, version)

    def crash(self, node_id: int, *, power: bool = True) -> None:
        node = self.nodes[node_id]
        assert node.log is not None
        node.state = None
        node.downloading = None
        if power:
            node.log.lose_unsynced(self.random)

    def step(self, node: Node, event: Event) -> None:
        events = [event]
        while events:
            state = node.state
            assert state is not None
            event = events.pop(0)
            role, epoch = state.role, state.epoch
            effects = step(state, event, self.now_ms)
            if self.trace:
                self.transcript.append(
                    f"{self.now_ms:6d} node {node.local.key.id} {event} -> "
                    f"{state.role.name} {state.epoch} {effects}"
                )
            if state.role is Role.LEADER and (role is not Role.LEADER or epoch != state.epoch):
                self._elected(node, state)
            results = [self._do(node, effect) for effect in effects]
            events[:0] = [result for result in results if result is not None]
        self._set_timer(node)

    def _set_timer(self, node: Node) -> None:
        assert node.state is not None
        node.timer += 1
        timer, incarnation = node.timer, node.incarnation
        if node.state.wake_at_ms >= NEVER:
            return

        def wake() -> None:
            if node.state is not None and node.timer == timer and node.incarnation == incarnation:
                self.step(node, TimePassed())

        self.later(max(0, node.state.wake_at_ms - self.now_ms), wake)

    # -- effects

    def _do(self, node: Node, effect: Effect) -> Event | None:
        match effect:
            case PersistElection(election):
                if self.persists:
                    node.disk.election = election
            case Send():
                self._send(node, effect)
            case Answer(token, reply):
                self._answer(node, token, reply)
            case AppendEpochStart(epoch, _, kraft_version, voters):
                payloads: list[Any] = [("leader", node.local.key.id)]
                if voters is not None:
                    payloads += [kraft_version, voters]
                return self._append(node, epoch, payloads)
            case AppendVoters(epoch, voters, kraft_version):
                # A batch is cut nowhere, so the two records are one here.
                both = (kraft_version, voters) if kraft_version else voters
                return self._append(node, epoch, [both])
            case AppendRecords(_, records):
                return self._append_fetched(node, records)
            case AdvanceHighWatermark(offset):
                self._committed(node, offset)
            case ReportViolation(text):
                raise RuleBrokenError(f"node {node.local.key.id}: {text}")
            case _:
                return self._do_to_disk(node, effect)
        return None

    def _do_to_disk(self, node: Node, effect: Effect) -> Event | None:
        log = node.log
        assert log is not None
        match effect:
            case TruncateLog(offset):
                log.truncate_to(offset)
                return LogTruncated()
            case FlushLog():
                self._flush(node, log)
            case BeginSnapshot(snapshot_id):
                node.downloading = snapshot_id
            case StoreSnapshot(snapshot_id):
                self._soon(node, lambda: SnapshotStored(snapshot_id))
            case InstallSnapshot(snapshot_id):
                return self._install(node, snapshot_id)
            case AbandonSnapshot():
                node.downloading = None
            case AppendSnapshot() | AnnounceLeader():
                pass
        return None

    def _soon(self, node: Node, make: Callable[[], Event]) -> None:
        incarnation = node.incarnation

        def happen() -> None:
            if node.state is not None and node.incarnation == incarnation:
                self.step(node, make())

        self.later(self.random.randint(0, 30), happen)

    def _flush(self, node: Node, log: ModelLog) -> None:
        end_offset, truncations = log.end_offset, log.truncations

        def flushed() -> Event:
            log.flushed(end_offset, truncations)
            return LogFlushed()

        self._soon(node, flushed)

    def _append(self, node: Node, epoch: int, payloads: list[Any]) -> Event:
        assert node.log is not None
        offset = node.log.end_offset
        entries = [Entry(epoch, payload) for payload in payloads]
        self._write(node, entries)
        return _controls(offset, entries)

    def _append_fetched(self, node: Node, chunk: Any) -> Event:
        assert node.log is not None
        if chunk.offset != node.log.end_offset:
            return AppendRejected()
        self._write(node, list(chunk.entries))
        return _controls(chunk.offset, list(chunk.entries))

    def _write(self, node: Node, entries: list[Entry]) -> None:
        """Log matching: an offset and epoch have one payload and one predecessor."""
        log = node.log
        assert log is not None
        for entry in entries:
            offset = log.end_offset
            known = (entry.payload, log.last_epoch)
            first = self.records.setdefault((offset, entry.epoch), known)
            if first != known:
                raise RuleBrokenError(
                    f"offset {offset} of epoch {entry.epoch} is {known} on node "
                    f"{node.local.key.id} and was {first}"
                )
            node.disk.entries.append(entry)

    def _install(self, node: Node, snapshot_id: SnapshotId) -> Event:
        disk, log = node.disk, node.log
        assert log is not None
        assert node.downloading == snapshot_id
        node.downloading = None
        log.truncations += 1
        disk.snapshot_id = snapshot_id
        disk.start_offset = disk.durable_start_offset = snapshot_id.end_offset
        disk.entries, disk.durable = [], []
        log._flushed_offset = snapshot_id.end_offset
        history = VoterHistory()
        self._restart_history(history, snapshot_id.end_offset)
        node.high_watermark = max(node.high_watermark, snapshot_id.end_offset)
        return SnapshotInstalled(
            snapshot_id,
            history.voters[-1][1] if history.voters else None,
            history.kraft_version,
        )

    # -- messages

    def _send(self, node: Node, effect: Send) -> None:
        source = node.local.key.id
        target = int(effect.host.removeprefix("node"))
        incarnation = node.incarnation

        def tell(event: Event) -> None:
            if node.state is not None and node.incarnation == incarnation:
                self.step(node, event)

        def fail(failure: Failure, delay_ms: int) -> None:
            self.later(
                delay_ms, lambda: tell(RequestFailed(effect.peer_id, effect.number, failure))
            )

        def reply_with(reply: Reply) -> None:
            if self._is_lost(target, source):
                fail(Failure.TIMED_OUT, self.settings.request_timeout_ms)
                return
            event = ReplyReceived(effect.peer_id, effect.number, reply)
            self.later(self._delay_ms(), lambda: tell(event))

        def deliver() -> None:
            peer = self.nodes[target]
            if peer.state is None:
                fail(Failure.REFUSED, 1)
            elif isinstance(effect.request, AskVersions):
                reply_with(VersionsReply(levels=(0, 1)))
            else:
                self._token += 1
                self._pending[self._token] = reply_with
                token, asked = self._token, peer.incarnation

                def give_up() -> None:
                    if self._pending.pop(token, None) is not None:
                        is_same = peer.state is not None and peer.incarnation == asked
                        fail(Failure.TIMED_OUT if is_same else Failure.LOST, 0)

                self.later(self.settings.request_timeout_ms, give_up)
                self.step(peer, RequestReceived(token, self._travelling(effect.request)))

        if self._is_lost(source, target):
            fail(Failure.TIMED_OUT, self.settings.request_timeout_ms)
        else:
            self.later(self._delay_ms(), deliver)

    def _travelling(self, request: Request) -> Request:
        return request

    def _is_lost(self, source: int, target: int) -> bool:
        return (source, target) in self.cut or self.random.random() < self.drop

    def _delay_ms(self) -> int:
        # Now and then so late that everything has changed.
        return (
            self.random.randint(1, 5)
            if self.random.random() < 0.95
            else (self.random.randint(5, 1500))
        )

    def _answer(self, node: Node, token: int, reply: Reply) -> None:
        """Let an answer go, with the data that the driver would read for it."""
        send = self._pending.pop(token, None)
        log, disk = node.log, node.disk
        assert log is not None
        if isinstance(reply, VoteReply) and reply.is_granted:
            self._note_vote(node)
        if isinstance(reply, FetchReply) and reply.error == ErrorCode.NONE:
            has_records = (
                reply.diverging is None
                and reply.snapshot_id is None
                and reply.offset < log.end_offset
            )
            if has_records:
                first = reply.offset - disk.start_offset
                count = self.random.randint(1, self.fetch_entries_max)
                entries = tuple(disk.entries[first : first + count])
                reply = replace(reply, records=cast(Any, Chunk(reply.offset, entries)))
        elif isinstance(reply, FetchSnapshotReply) and reply.error == ErrorCode.NONE:
            if reply.snapshot_id == disk.snapshot_id:
                size = min(CHUNK_SIZE_BYTES, SNAPSHOT_SIZE_BYTES - reply.position)
                reply = replace(reply, size_bytes=SNAPSHOT_SIZE_BYTES, data=bytes(size))
            else:
                reply = replace(reply, error=ErrorCode.SNAPSHOT_NOT_FOUND)
        elif hasattr(reply, "message") and reply.error != ErrorCode.NONE:
            self.refusals.append(f"{reply.error.name}: {reply.message}")
        if send is not None:
            send(reply)

    # -- what clients and operators do

    def leader(self) -> Node | None:
        """The leader of the latest epoch that is up."""
        leading = [
            node
            for node in self.nodes.values()
            if node.state is not None and node.state.role is Role.LEADER
        ]
        return max(leading, key=lambda node: node.state.epoch, default=None)  # type: ignore[union-attr]

    def append(self, node: Node) -> None:
        """A client's record."""
        assert node.state is not None
        self.values += 1
        event = self._append(node, node.state.epoch, [("value", self.values)])
        self.step(node, event)

    def ask(self, node: Node, request: AddVoter | RemoveVoter) -> None:
        """An operator's request, whose answer nobody waits for."""
        self._token += 1
        self.step(node, RequestReceived(self._token, request))

    def upgrade(self, node: Node, level: int = 1) -> bool:
        """Have kraft.version raised, if the leader `node` can; returns whether it could."""
        assert node.state is not None
        if upgrade_refusal(node.state, level) is not None:
            return False
        self.step(node, UpgradeRequested(level))
        return True

    def snapshot(self, node: Node) -> None:
        """Write a snapshot of what is committed, and drop the log it covers."""
        log, disk, state = node.log, node.disk, node.state
        assert log is not None
        assert state is not None
        end_offset = min(node.high_watermark, log.flushed_offset)
        if end_offset <= disk.start_offset:
            return
        snapshot_id = SnapshotId(end_offset, log.epoch_before(end_offset))
        del disk.entries[: end_offset - disk.start_offset]
        durable_end = disk.durable_start_offset + len(disk.durable)
        disk.durable = disk.durable[max(0, end_offset - disk.durable_start_offset) :]
        assert durable_end >= end_offset or not disk.durable
        disk.start_offset = disk.durable_start_offset = end_offset
        disk.snapshot_id = snapshot_id

    # -- the rules

    def _elected(self, node: Node, state: RaftState) -> None:
        node_id = node.local.key.id
        other = self.leaders.setdefault(state.epoch, node_id)
        if other != node_id:
            raise RuleBrokenError(f"epoch {state.epoch} has leaders {other} and {node_id}")
        log = node.log
        assert log is not None
        # A leader elected late need not have records that were committed in a later epoch.
        required = bisect_left(self.commit_epochs, state.epoch)
        if log.end_offset < required:
            raise RuleBrokenError(
                f"node {node_id} leads epoch {state.epoch} with {log.end_offset} records, "
                f"and {required} are committed"
            )
        self._compare(node, required, "leads and has lost")

    def _note_vote(self, node: Node) -> None:
        assert node.state is not None
        voted = node.state.election.voted
        if node.state.role is Role.UNATTACHED and voted is not None:
            key = (node.local.key.id, node.state.epoch)
            first = self.votes.setdefault(key, voted.id)
            if first != voted.id:
                raise RuleBrokenError(
                    f"node {key[0]} votes for {first} and {voted.id} in epoch {key[1]}"
                )

    def _committed(self, node: Node, offset: int) -> None:
        log = node.log
        assert log is not None
        if offset < node.high_watermark:
            raise RuleBrokenError(f"the high watermark of node {node.local.key.id} went back")
        node.high_watermark = offset
        if offset > log.end_offset:
            raise RuleBrokenError(f"node {node.local.key.id} commits what it does not have")
        known = len(self.committed)
        self._compare(node, min(known, offset), "commits other than")
        self.committed += node.disk.entries[max(0, known - log.start_offset) :][
            : max(0, offset - max(known, log.start_offset))
        ]
        assert len(self.committed) >= offset
        assert node.state is not None
        self.commit_epochs += [node.state.epoch] * (len(self.committed) - known)

    def _compare(self, node: Node, end_offset: int, what: str) -> None:
        log = node.log
        assert log is not None
        start = log.start_offset
        mine = node.disk.entries[: max(0, end_offset - start)]
        if mine != self.committed[start:end_offset]:
            raise RuleBrokenError(f"node {node.local.key.id} {what} what is committed")


def _controls(offset: int, entries: list[Entry]) -> LogAppended:
    voters, versions = [], []
    for at, entry in enumerate(entries, offset):
        match entry.payload:
            case VoterSet() as voter_set:
                voters.append((at, voter_set))
            case int(version):
                versions.append((at, version))
            case (int(version), VoterSet() as voter_set):
                versions.append((at, version))
                voters.append((at, voter_set))
    return LogAppended(tuple(voters), tuple(versions))
