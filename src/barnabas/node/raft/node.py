"""One replica of the metadata log at work: disk, time, tasks and requests around the pure machine.

The log is forced to the medium before anything of it counts: appends return at once, and one
fsync serves all that were made while the one before was under way. Records that a majority has on
disk are committed, and their waiters are woken. A failure of the disk, or a quorum that
broke its promises, ends the replica: nothing is decided on what may be wrong.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from barnabas.base.clock import Clock, Timer
from barnabas.base.disk import Disk
from barnabas.base.ids import NO_NODE
from barnabas.node.log.errors import LogDirFailure
from barnabas.node.log.partition_log import PartitionLog
from barnabas.node.raft import wire_responses
from barnabas.node.raft.applier import Applier
from barnabas.node.raft.core.events import (
    Event,
    LogAppended,
    RequestReceived,
    ResignRequested,
    Started,
    StopRequested,
    TimePassed,
    UpgradeRequested,
)
from barnabas.node.raft.core.machine import step
from barnabas.node.raft.core.peers import pick_endpoint
from barnabas.node.raft.core.state import NEVER, Leader, Progress, RaftState, Resigned, Role
from barnabas.node.raft.core.upgrade import upgrade_refusal
from barnabas.node.raft.core.voter_history import EMPTY, VoterHistory
from barnabas.node.raft.describe_quorum import describe_quorum
from barnabas.node.raft.effects import EffectRunner
from barnabas.node.raft.exchange import Exchange
from barnabas.node.raft.interfaces import (
    Appended,
    NotLeaderError,
    RaftListener,
    RaftTransport,
    RandomSource,
)
from barnabas.node.raft.quorum_state import ElectionState, read_quorum_state
from barnabas.node.raft.recovery import LogBatch, MetadataLogError, check_voters, recover
from barnabas.node.raft.replica_log import ReplicaLog
from barnabas.node.raft.settings import RaftSettings
from barnabas.node.raft.snapshot_files import SnapshotId, SnapshotWriter, encode_snapshot
from barnabas.node.raft.voters import ReplicaKey, Voter, VoterSet
from barnabas.protocol.messages.voters import DescribeQuorumRequest
from barnabas.protocol.schema import Message

telemetry = logging.getLogger(__name__)

STOP_TIMEOUT_MS = 1_000
"""Time that a stopping leader waits until the other voters know."""


class RaftNode:
    """A replica. `start` before anything else, `stop` at last."""

    def __init__(
        self,
        *,
        disk: Disk,
        clock: Clock,
        random: RandomSource,
        log: PartitionLog,
        directory: str,
        cluster_id: str,
        local: Voter,
        is_controller: bool,
        static_voters: VoterSet | None,
        bootstrap: Sequence[tuple[str, int]],
        settings: RaftSettings,
        transport: RaftTransport,
        listener: RaftListener,
        on_failure: Callable[[Exception], None],
    ) -> None:
        """`on_failure` is called once, with what ended the replica: the node must then end."""
        self._disk = disk
        self._clock = clock
        self._random = random
        self._directory = directory
        self._cluster_id = cluster_id
        self._local = local
        self._is_controller = is_controller
        self._on_failure = on_failure
        self._log = ReplicaLog(disk, clock, directory, log)
        self._applier = Applier(self._log, listener, local.key.id)
        self._exchange = Exchange(transport, cluster_id, settings.request_timeout_ms, self._handle)
        self._events: deque[Event] = deque()
        self._is_handling = False
        self._timer: Timer | None = None
        self._timer_at_ms = NEVER
        self.failure: Exception | None = None
        """What ended the replica: a failure of the log, or that it was stopped."""
        self._settled: asyncio.Future[None] | None = None
        """Done when a leader that stops has told the others."""
        self._history = VoterHistory(static_voters or EMPTY)
        self._state = RaftState(
            local=local,
            settings=settings,
            log=self._log,
            election=ElectionState(),
            history=self._history,
            bootstrap=tuple(bootstrap),
            is_controller=is_controller,
        )
        self._effects = EffectRunner(
            disk=disk,
            directory=directory,
            log=self._log,
            applier=self._applier,
            exchange=self._exchange,
            history=self._history,
            settings=settings,
            local_id=local.key.id,
            happened=self._handle,
            failed=self.fail,
        )
        self.is_recovered = False
        """True once it knows what its disk holds. Before that its epoch and voters say nothing."""

    # -- what it knows

    @property
    def epoch(self) -> int:
        """The epoch this replica is in."""
        return self._state.epoch

    @property
    def leader_id(self) -> int:
        """The leader of the epoch, or -1."""
        return self._state.leader_id

    @property
    def is_leader(self) -> bool:
        """True if this replica may append."""
        return self._state.role is Role.LEADER

    @property
    def role(self) -> Role:
        """This replica's role in its epoch."""
        return self._state.role

    @property
    def leader_endpoint(self) -> tuple[str, int] | None:
        """The leader's endpoint on the controller listener, or None if it is unknown."""
        if self.leader_id == NO_NODE:
            return None
        return pick_endpoint(self._state, self._state.standing.endpoints)

    @property
    def voters(self) -> VoterSet:
        """The voters that hold now."""
        return self._state.voters

    @property
    def is_voter(self) -> bool:
        """True if this replica is one of them."""
        return self._state.is_voter

    @property
    def kraft_version(self) -> int:
        """The kraft.version that holds now."""
        return self._state.history.kraft_version

    @property
    def high_watermark(self) -> int:
        """The offset after the last record known to be committed."""
        return self._state.high_watermark

    @property
    def log_end_offset(self) -> int:
        """The offset after the last record."""
        return self._log.end_offset

    @property
    def snapshot_id(self) -> SnapshotId | None:
        """The newest snapshot on disk."""
        return self._log.snapshot_id

    @property
    def recovered_batches(self) -> Sequence[LogBatch]:
        """The batches after the snapshot at the start that are not yet known to be committed."""
        return self._applier.recovered_batches

    @property
    def progress(self) -> dict[ReplicaKey, Progress]:
        """As leader, who has what; times are the monotonic clock's. Empty for others."""
        role_state = self._state.role_state
        return role_state.progress if isinstance(role_state, Leader) else {}

    # -- life

    async def start(self) -> None:
        """Recover and take part.

        A voter that is alone leads when this returns, and everything in its log is committed and
        applied; otherwise nothing is waited for. Raises MetadataLogError where the directory
        belongs to no quorum, and OSError.
        """
        recovered = recover(self._disk, self._directory, self._log.log)
        self._log.recovered()
        self._history.append(recovered.history.voters, recovered.history.kraft_versions)
        check_voters(
            self._directory,
            self._history,
            self._local.key,
            is_controller=self._is_controller,
            may_ask=bool(self._state.bootstrap),
        )
        self._state.election = read_quorum_state(self._disk, self._directory) or ElectionState()
        self._state.seed = self._random.randrange(1 << 62)
        self._applier.recovered(
            recovered.snapshot_id, recovered.snapshot, recovered.batches, self._log.end_offset
        )
        self._state.high_watermark = self._applier.high_watermark
        damaged_at = self._log.damaged_at()
        if damaged_at is not None and self._is_controller and len(self.voters.by_id) > 1:
            telemetry.warning(
                "node %d does not vote until it has a leader's log again", self._local.key.id
            )
            self._state.lost_from = damaged_at
        self.is_recovered = True
        self._handle(Started())
        if self._state.is_voter and len(self.voters.by_id) == 1:
            await self.wait_committed(self.log_end_offset - 1)
        self._check()

    async def stop(self) -> None:
        """Resign if leading, finish the fsync under way and close the log.

        Remaining waiters get the error that the replica stopped. Raises LogDirFailure.
        """
        if not self.is_recovered:
            self._log.close(clean=False)  # what it found on its disk is left as it is
            return
        if self.failure is None:
            self._handle(StopRequested())
            await self._wait_until_told()
        await self._effects.finish()
        if self.failure is None:
            self.failure = NotLeaderError("the replica stopped")
        self._set_timer(NEVER)
        self._applier.fail_waiters(self.failure)
        await self._exchange.close(self.failure)
        self._log.close(clean=True)

    async def _wait_until_told(self) -> None:
        """A leader that resigned gives the others a moment to learn of it."""
        role_state = self._state.role_state
        if not isinstance(role_state, Resigned) or not role_state.unacked:
            return
        self._settled = asyncio.get_running_loop().create_future()
        timer = self._clock.call_later(STOP_TIMEOUT_MS, self._settle)
        await self._settled
        timer.cancel()

    def _settle(self) -> None:
        if self._settled is not None and not self._settled.done():
            self._settled.set_result(None)

    def resign(self) -> None:
        """Lead no more: the others elect someone else."""
        self._handle(ResignRequested())

    # -- appending

    def append(self, values: Sequence[bytes]) -> Appended:
        """Append records as one batch, atomically; `wait_committed` says when they hold.

        Raises NotLeaderError, also when leadership is lost in the act (the records may come to
        hold nevertheless), and the failure that stopped the log.
        """
        self._check()
        if not self.is_leader:
            raise NotLeaderError
        epoch = self.epoch
        try:
            appended = self._log.append_values(values, epoch)
        except Exception as error:
            self.fail(error)
            raise
        self._handle(LogAppended())
        self._check()
        if not self.is_leader or self.epoch != epoch:
            raise NotLeaderError
        return appended

    def upgrade_refusal(self, level: int) -> str | None:
        """As leader: why kraft.version cannot be `level` now, or None. Raises NotLeaderError."""
        if not self.is_leader:
            raise NotLeaderError
        return upgrade_refusal(self._state, level)

    def upgrade(self, level: int) -> None:
        """Append kraft.version, which `upgrade_refusal` allows, with the voters.

        Once `wait_committed` returns for the end of the log it holds. Raises as `append` does.
        """
        epoch = self.epoch
        if self.failure is None:
            self._handle(UpgradeRequested(level))
        self._check()
        if not self.is_leader or self.epoch != epoch:
            raise NotLeaderError

    async def wait_committed(self, offset: int) -> None:
        """Return once the record at `offset` is committed.

        Raises NotLeaderError when leadership is lost before, and the failure of the log.
        """
        self._check()
        if offset < self._applier.high_watermark:
            return
        if not self.is_leader:
            raise NotLeaderError
        await self._applier.wait(offset)

    # -- requests

    async def handle(self, request: Message, version: int) -> Any:
        """Answer one of the quorum's requests: votes, epochs, fetches, changes of the voters.

        Raises NotLeaderError, or the failure of the log, once the replica has stopped.
        """
        self._check()
        if isinstance(request, DescribeQuorumRequest):
            return describe_quorum(
                self._state,
                request,
                now_ms=self._clock.now_ms(),
                monotonic_ms=self._clock.monotonic_ms(),
            )
        try:
            asked = wire_responses.decode_request(request, self._cluster_id)
        except wire_responses.RefusedRequestError as refused:
            return refused.response
        token, answer = self._exchange.expect(asked)
        self._handle(RequestReceived(token, asked))
        return wire_responses.encode_reply(await answer, version)

    # -- the machine

    def _handle(self, event: Event) -> None:
        """Step the machine, and do what it says before it is stepped again."""
        assert self.is_recovered, "a vote or an epoch it forgot could be given twice"
        self._events.append(event)
        if self._is_handling:
            return
        self._is_handling = True
        try:
            while self._events and self.failure is None:
                self._step(self._events.popleft())
        except Exception as error:  # noqa: BLE001  it goes to everyone who waits, and to the node
            self.fail(error)
        finally:
            self._is_handling = False
            self._events.clear()
        if self.failure is None:
            self._set_timer(self._state.wake_at_ms)

    def _step(self, event: Event) -> None:
        state = self._state
        role, epoch = state.role, state.epoch
        effects = step(state, event, self._clock.monotonic_ms())
        if state.role is not role:
            # While there is no majority the same epoch is tried again and again.
            is_news = state.epoch != epoch or state.role in (Role.LEADER, Role.RESIGNED)
            telemetry.log(
                logging.INFO if is_news else logging.DEBUG,
                "node %d is %s in epoch %d, was %s",
                self._local.key.id,
                state.role.name,
                state.epoch,
                role.name,
            )
        # The result of an effect is handled before any other event.
        results = [self._effects.run(effect) for effect in effects]
        self._events.extendleft(result for result in reversed(results) if result is not None)
        role_state = state.role_state
        if not isinstance(role_state, Resigned) or not role_state.unacked:
            self._settle()

    def _set_timer(self, time_ms: int) -> None:
        if time_ms == self._timer_at_ms:
            return
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._timer_at_ms = time_ms
        if time_ms < NEVER:
            delay_ms = max(0, time_ms - self._clock.monotonic_ms())
            self._timer = self._clock.call_later(delay_ms, self._wake)

    def _wake(self) -> None:
        self._timer, self._timer_at_ms = None, NEVER
        self._handle(TimePassed())

    def _check(self) -> None:
        if self.failure is not None:
            raise self.failure

    def fail(self, error: Exception) -> None:
        """Nothing can be appended or committed any more; the node must not go on."""
        if self.failure is not None:
            return
        self.failure = error
        if not isinstance(error, LogDirFailure | MetadataLogError | OSError):
            telemetry.error("the quorum's replica failed", exc_info=error)
        self._set_timer(NEVER)
        self._settle()
        self._applier.fail_waiters(error)
        self._exchange.fail_answers(error)
        self._on_failure(error)

    # -- snapshots

    async def write_snapshot(
        self, snapshot_id: SnapshotId, values: Iterable[bytes], last_timestamp_ms: int
    ) -> int:
        """Write a snapshot of committed state and return its size in bytes. Raises OSError."""
        assert snapshot_id.end_offset <= self.high_watermark, "a snapshot of uncommitted records"
        kraft_version, voters = self._history.before(snapshot_id.end_offset)
        writer = SnapshotWriter(self._disk, self._directory, snapshot_id)
        try:
            for batch in encode_snapshot(
                values,
                now_ms=self._clock.now_ms(),
                epoch=snapshot_id.epoch,
                last_timestamp_ms=last_timestamp_ms,
                kraft_version=kraft_version,
                voters=voters,
            ):
                writer.append(batch)
                await asyncio.sleep(0)
            size_bytes = await writer.freeze()
        except BaseException:
            writer.abandon()
            raise
        self._log.written(snapshot_id)
        self._history.forget_before(snapshot_id.end_offset)
        return size_bytes

    def clean(self, *, retention_bytes: int, retention_ms: int) -> list[SnapshotId]:
        """Drop old snapshots, and the log that newer ones cover; returns the snapshots dropped.

        A snapshot goes while log and snapshots together exceed `retention_bytes`, or when its
        data is older than `retention_ms` (-1: no limit); the newest always stays. Raises OSError.
        """
        return self._log.clean(retention_bytes=retention_bytes, retention_ms=retention_ms)
