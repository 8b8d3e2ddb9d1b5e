"""Moving replicas between this node's log directories while they are used (KIP-113, KIP-858).

A request names the directory; a future log there is filled from the log, one partition after the
other, a read at a time, with a pause after each that leaves the node at least half of its time and
keeps to `replica.alter.log.dirs.io.max.bytes.per.second`. Once a copy is complete, the node reports
the replica's new directory to the controller. When it has agreed, what has been appended since
is copied, and the two change places in one step on the event loop.

    COPYING ──caught up──▶ TELLING ──the controller agrees──▶ AGREED ──▶ replaced
       ▲                      │ it does not, or cannot be asked: again, after a rest
       └──────────────────────┘

If a move is cancelled after that report, the node reports the old directory again. Moves
go on after a restart: the future log is found with its content. There is one task while
anything moves, and none otherwise.
Source: Kafka's ReplicaManager.alterReplicaLogDirs, ReplicaAlterLogDirsThread, AssignmentsManager.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from enum import Enum, auto

from barnabas.base.clock import Clock
from barnabas.base.ids import Uuid
from barnabas.node.config.definitions import MOVE_RATE_KEY
from barnabas.node.config.node_config import NodeConfig
from barnabas.node.log.copying import CopyError, copy_some, is_caught_up
from barnabas.node.log.errors import LogDirFailure
from barnabas.node.log.manager import LogManager
from barnabas.node.log.partition_log import PartitionLog
from barnabas.node.loop.pauses import pause
from barnabas.node.replication.partition import Partition
from barnabas.node.replication.throttle import ReplicationQuota
from barnabas.protocol.errors import ErrorCode

READ_MAX_BYTES = 1 << 20
"""Copied in one step of the event loop: some milliseconds."""
REST_MS = 50
"""Until a log that is caught up with is looked at again."""
ROUNDS_MAX = 5
"""The number of times a copy is flushed again if more than one read's bytes were appended
during the flush.
"""
RETRY_MS = 1_000
"""After the controller could not be told."""
TRANSIENT = frozenset({ErrorCode.REQUEST_TIMED_OUT, ErrorCode.NOT_CONTROLLER})

AssignReplica = Callable[[Uuid, Uuid, int], Awaitable[ErrorCode]]
"""Tells the controller the directory of a replica, by topic id and index; what it said."""

telemetry = logging.getLogger(__name__)


class Stage(Enum):
    """The stage of a move."""

    COPYING = auto()
    TELLING = auto()
    AGREED = auto()


class Move:
    """One replica on its way to another directory."""

    __slots__ = ("future", "partition", "retry_at_ms", "rounds", "stage", "telling")

    def __init__(self, partition: Partition, future: PartitionLog) -> None:
        self.partition = partition
        self.future = future
        self.stage = Stage.COPYING
        self.retry_at_ms = 0
        """When the controller may be told (again)."""
        self.rounds = 0
        """Number of flushes of the whole copy that did not catch up."""
        self.telling: asyncio.Task[None] | None = None


class ReplicaMoves:
    """The moves of one node."""

    def __init__(self, logs: LogManager, clock: Clock, rate: ReplicationQuota) -> None:
        self._logs = logs
        self._clock = clock
        self.rate = rate
        """The bytes that may be copied per second."""
        self.assign: AssignReplica | None = None
        """None: nobody need be told."""
        self._moves: dict[Partition, Move] = {}
        self._task: asyncio.Task[None] | None = None
        self._wake: asyncio.Future[None] | None = None
        self._reverting: set[asyncio.Task[None]] = set()
        self._is_closed = False

    def __len__(self) -> int:
        return len(self._moves)

    def configure(self, config: NodeConfig) -> None:
        """Follow `MOVE_RATE_KEY`."""
        self.rate.rate_max = config.get_int(MOVE_RATE_KEY)
        self._ring()

    # -- what is to move

    def request(self, partition: Partition, path: str) -> None:
        """Move `partition` to the directory `path`, which is online.

        A move to another directory is cancelled. Does nothing else if the replica is in `path`
        already, or moves there. Raises LogDirFailure.
        """
        move = self._moves.get(partition)
        if move is not None and move.future.log_dir != path:
            self.cancel(partition)
            move = None
        if move is None and partition.log.log_dir != path:
            offline = self._logs.offline_dirs
            if offline:
                # A copy may lie in one of them, and there must not be two.
                raise LogDirFailure(min(offline))
            partition.log.check_online()
            directory = self._logs.directory(path)
            future = self._logs.futures.create(partition.log, directory)
            telemetry.info("%s moves to %s", partition.topic_partition, path)
            self._begin(partition, future)

    def resume(self, partition: Partition) -> None:
        """Go on with a move that an earlier incarnation of this node began, if there is one."""
        future = self._logs.futures.get(partition.topic_partition)
        if future is None or partition in self._moves or partition.log.is_offline:
            return
        if future.topic_id != partition.topic_id or future.log_dir == partition.log.log_dir:
            telemetry.warning("removing %s: no move to it was requested", future.directory)
            self._delete_future(partition)
            return
        telemetry.info("%s continues to move to %s", partition.topic_partition, future.log_dir)
        if future.cleaned_offset is None:
            future.cleaned_offset = partition.log.cleaned_offset
        self._begin(partition, future)

    def _begin(self, partition: Partition, future: PartitionLog) -> None:
        partition.log.is_moving = True
        self._moves[partition] = Move(partition, future)
        self._start()
        self._ring()

    def _start(self) -> None:
        if self._task is None and not self._is_closed:
            self._task = asyncio.ensure_future(self._run())
            self._task.add_done_callback(self._ended)

    def cancel(self, partition: Partition, *, is_leaving: bool = False) -> None:
        """Call a move off, if there is one: its copy is removed. Raises LogDirFailure.

        `is_leaving`: the replica leaves this node altogether.
        """
        move = self._drop(partition)
        if move is not None:
            telemetry.info(
                "the move of %s to %s is cancelled", partition.topic_partition, move.future.log_dir
            )
            if not is_leaving:
                self._revert(move)
            self._logs.futures.delete(partition.topic_partition)

    def directory_failed(self, path: str) -> None:
        """A log directory went offline: what moves from or to it does not any more.

        The copy is left alone, and found when the directory is back.
        """
        for partition, move in list(self._moves.items()):
            if path in (partition.log.log_dir, move.future.log_dir):
                self._drop(partition)
                self._logs.futures.forget(partition.topic_partition)
                self._revert(move)  # who leads from a directory that failed leads no more

    def _drop(self, partition: Partition) -> Move | None:
        move = self._moves.pop(partition, None)
        if move is not None:
            partition.log.is_moving = False
        return move

    def _delete_future(self, partition: Partition) -> None:
        try:
            self._logs.futures.delete(partition.topic_partition)
        except LogDirFailure as failure:
            telemetry.error("%s: %s", partition.topic_partition, failure)

    # -- what is known of it

    def directory_of(self, partition: Partition) -> str:
        """The directory of a replica to report to the controller."""
        move = self._moves.get(partition)
        if move is None or move.stage is Stage.COPYING:
            return partition.log.log_dir
        return move.future.log_dir

    # -- the work

    async def _run(self) -> None:
        while self._moves:
            for move in list(self._moves.values()):
                if self._moves.get(move.partition) is not move or not self._is_due(move):
                    continue
                started_ms = self._clock.monotonic_ms()
                copied = await self._guard(move)
                if copied:
                    self.rate.record(copied)
                    await pause(self._clock, max(1, self._clock.monotonic_ms() - started_ms))
                if self._moves.get(move.partition) is move and not self._is_caught_up(move):
                    break  # one after the other: each that is through frees a disk
            await self._rest()

    def _is_due(self, move: Move) -> bool:
        return not self.rate.is_exceeded() or self._is_caught_up(move)

    def _is_caught_up(self, move: Move) -> bool:
        return is_caught_up(move.partition.log, move.future)

    async def _rest(self) -> None:
        """Wait while nothing can be copied."""
        if self._can_copy():
            return
        wake = self._wake = asyncio.get_running_loop().create_future()
        timer = self._clock.call_later(REST_MS, self._ring)
        try:
            await wake
        finally:
            timer.cancel()
            self._wake = None

    def _can_copy(self) -> bool:
        if self.rate.is_exceeded():
            return False
        return any(
            move.stage is Stage.AGREED or not self._is_caught_up(move)
            for move in self._moves.values()
        )

    def _ring(self) -> None:
        if self._wake is not None and not self._wake.done():
            self._wake.set_result(None)

    def _ended(self, task: "asyncio.Task[None]") -> None:
        self._task = None
        if not task.cancelled() and task.exception() is not None:
            telemetry.error("moving replicas failed", exc_info=task.exception())
        elif self._moves:
            self._start()  # begun after the task had nothing left, before this was called

    async def _guard(self, move: Move) -> int:
        """One step; a move that cannot go on is over. Returns the bytes that were copied."""
        partition = move.partition
        try:
            return await self._step(move)
        except CopyError as error:
            telemetry.error(
                "cannot move %s to %s: %s", partition.topic_partition, move.future.log_dir, error
            )
        except LogDirFailure as failure:
            # `directory_failed` has seen to it, unless the log was closed.
            telemetry.error("cannot move %s: %s", partition.topic_partition, failure)
        if self._moves.get(partition) is move:
            self._drop(partition)
            self._revert(move)
            self._delete_future(partition)
        return 0

    async def _step(self, move: Move) -> int:
        current, future = move.partition.log, move.future
        copied = copy_some(current, future, min(READ_MAX_BYTES, max(self.rate.rate_max, 1)))
        if not is_caught_up(current, future):
            return copied
        if move.stage is Stage.COPYING:
            if self._clock.monotonic_ms() >= move.retry_at_ms:
                self._tell(move)
        elif move.stage is Stage.AGREED:
            # Most is forced to the medium beside the event loop, so that little is left to do in
            # the step in which nothing can be appended.
            await future.flush()
            if self._moves.get(move.partition) is not move:
                return copied
            if move.rounds < ROUNDS_MAX and current.size_bytes - future.size_bytes > READ_MAX_BYTES:
                move.rounds += 1
                return copied
            self._logs.futures.prepare(current, future)
            self._finish(move)
        return copied

    def _finish(self, move: Move) -> None:
        """Copy what is left and let the copy take the place of its log, all in one step."""
        partition = move.partition
        current = partition.log
        copy_some(current, move.future, READ_MAX_BYTES)  # it may start later, or end
        while not is_caught_up(current, move.future):
            copy_some(current, move.future, READ_MAX_BYTES)
        source = current.log_dir
        partition.log = self._logs.futures.replace(partition.topic_partition)
        del self._moves[partition]
        telemetry.info(
            "%s has moved from %s to %s", partition.topic_partition, source, partition.log.log_dir
        )

    # -- reports to the controller

    def _tell(self, move: Move) -> None:
        move.stage = Stage.TELLING
        move.telling = asyncio.ensure_future(self._tell_controller(move))
        move.telling.add_done_callback(self._told)

    async def _tell_controller(self, move: Move) -> None:
        code = await self._assign(move.partition, move.future.log_dir)
        if code is ErrorCode.NONE:
            move.stage = Stage.AGREED
        else:
            telemetry.warning(
                "%s: the controller did not accept directory %s: %s",
                move.partition.topic_partition,
                move.future.log_dir,
                code.name,
            )
            move.stage = Stage.COPYING
            move.retry_at_ms = self._clock.monotonic_ms() + RETRY_MS
        self._ring()

    async def _assign(self, partition: Partition, path: str) -> ErrorCode:
        directory_id = self._logs.directory_ids.get(path)
        if self.assign is None or directory_id is None:
            return ErrorCode.NONE
        code = await self.assign(
            directory_id, partition.topic_id, partition.topic_partition.partition
        )
        # A cluster whose metadata knows of no directories need not be told.
        return ErrorCode.NONE if code is ErrorCode.UNSUPPORTED_VERSION else code

    def _revert(self, move: Move) -> None:
        """Tell the controller that the replica stays where it is, if it was told otherwise."""
        if move.telling is None or self._is_closed:
            return
        task = asyncio.ensure_future(self._tell_back(move))
        self._reverting.add(task)
        task.add_done_callback(self._reverting.discard)
        task.add_done_callback(self._told)

    def _told(self, task: "asyncio.Task[None]") -> None:
        if not task.cancelled() and task.exception() is not None:
            telemetry.error(
                "cannot report a directory to the controller", exc_info=task.exception()
            )

    async def _tell_back(self, move: Move) -> None:
        if move.telling is not None:
            await asyncio.wait([move.telling])
        partition = move.partition
        while True:
            path = self.directory_of(partition)  # perhaps it moves elsewhere by now
            code = await self._assign(partition, path)
            if code not in TRANSIENT:
                break
            await pause(self._clock, RETRY_MS)
        if code is not ErrorCode.NONE:
            telemetry.warning(
                "%s: cannot report to the controller that it stays in %s: %s",
                partition.topic_partition,
                path,
                code.name,
            )

    async def close(self) -> None:
        """End all work; copies stay as they are, for the next start to go on with."""
        self._is_closed = True
        tasks = [
            task
            for task in (
                self._task,
                *self._reverting,
                *(move.telling for move in self._moves.values()),
            )
            if task is not None and not task.done()
        ]
        self._moves.clear()
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
