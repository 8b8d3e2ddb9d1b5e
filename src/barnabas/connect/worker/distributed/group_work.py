"""A worker follows its group and the config topic: the part of the herder that nobody asks.

    the group gives work   ─▶ read as far as its leader had, then start and stop
    the group takes work   ─▶ stop it, then let the group know
    configurations change  ─▶ stop, start, pause, or ask the group to deal again

Source: org.apache.kafka.connect.runtime.distributed.DistributedHerder: tick, RebalanceListener,
handleRebalanceCompleted (Kafka 4.3).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import Final

from barnabas.connect.errors.requests import NotFoundError
from barnabas.connect.tasks.base import TaskId
from barnabas.connect.worker.distributed.group_messages import EAGER_VERSION, Assignment
from barnabas.connect.worker.distributed.kafka_log import ReadTimeoutError
from barnabas.connect.worker.distributed.membership import Membership, RebalanceFigures
from barnabas.connect.worker.distributed.position import Position, Wishes
from barnabas.connect.worker.distributed.share import Share
from barnabas.connect.worker.distributed.store import TopicStore
from barnabas.connect.worker.distributed.ticks import Ticks
from barnabas.connect.worker.distributed.work import LocalWork
from barnabas.connect.worker.running import Worker
from barnabas.connect.worker.state import DESTROYED, STARTED, RestartRequest
from barnabas.schemas.data.errors import ConnectError

_log = logging.getLogger(__name__)
_FALL_BACKS: Final = 5
"""Number of times that a worker which cannot read the config topic keeps its work outside the
group."""
_REVOKE_S: Final = 600.0
Plan = Callable[[RestartRequest], tuple[bool, list[TaskId], object]]


class GroupWork:
    """A `GroupListener`. `lead` is called when this worker leads; `plan` says what to restart."""

    def __init__(
        self,
        position: Position,
        store: TopicStore,
        worker: Worker,
        work: LocalWork,
        ticks: Ticks,
        *,
        sync_s: float,
        unsync_backoff_s: float,
        delay_s_max: float,
        lead: Callable[[], None],
        ready: Callable[[], None],
        plan: Plan,
        reconfigure: Callable[[str], None],
    ) -> None:
        self.member: Membership | None = None
        self.figures = RebalanceFigures()
        self._position = position
        self._store = store
        self._worker = worker
        self._work = work
        self._ticks = ticks
        self._sync_s = sync_s
        self._unsync_backoff_s = unsync_backoff_s
        self._delay_s_max = delay_s_max
        self._lead = lead
        self._ready = ready
        self._plan = plan
        self._reconfigure = reconfigure
        self._to_restart: set[TaskId] = set()
        self._fall_backs_left = _FALL_BACKS
        self._is_closed = False

    # --- what the group says, on the member's threads --------------------------------------------

    def revoked(self, work: Share) -> None:
        """See GroupListener."""
        if not self._is_closed:
            self._ticks.call(lambda: self._revoke(work), _REVOKE_S)

    def assigned(self, assignment: Assignment, generation: int, *, is_leader: bool) -> None:
        """See GroupListener."""
        self.figures.begun()
        self._ticks.post(lambda: self._take(assignment, generation, is_leader))

    def busy_s(self) -> float:
        """See GroupListener."""
        return self._ticks.busy_s()

    def close(self) -> None:
        """Stop all work; on the herder's thread."""
        self._is_closed = True
        self._work.close()

    # --- on the herder's thread ------------------------------------------------------------------

    def _revoke(self, work: Share) -> None:
        self._work.stop(work)
        state = self._position.state
        for name in {*work.connectors, *(task.connector for task in work.tasks)}:
            if name not in state.connectors:
                for status in self._store.topics(name):
                    self._store.remove_topic(name, status.topic)
        try:
            self._store.statuses.flush()
        except ReadTimeoutError as error:
            _log.warning("states of stopped connectors and tasks are not written yet: %s", error)

    def _take(self, assignment: Assignment, generation: int, is_leader: bool) -> None:
        position = self._position
        position.assignment, position.generation = assignment, generation
        position.is_leader = is_leader
        if is_leader:
            self._forget_deleted()
            self._lead()
        if assignment.has_failed or position.state.offset < assignment.config_offset:
            if not self.refresh():
                self._fall_back()
                return
            self._fall_backs_left = _FALL_BACKS
        if assignment.has_failed:
            return  # the member joins again by itself
        if position.state.offset != assignment.config_offset:
            _log.info(
                "this worker has read the config topic up to %d, the group up to %d: rebalancing",
                position.state.offset, assignment.config_offset,
            )  # fmt: skip
            self._rejoin("this worker has read more than the group's leader had")
            return
        self._work.run(assignment.work, self._to_restart)
        self._to_restart.clear()
        self.figures.completed()
        self._ready()

    def refresh(self) -> bool:
        """Read the config topic to its end; whether that was done in time."""
        try:
            self._store.config.refresh(self._sync_s)
        except ReadTimeoutError as error:
            _log.warning("the config topic was not read to its end quickly enough: %s", error)
            return False
        self._position.catch_up(self._store.snapshot())
        return True

    def _fall_back(self) -> None:
        """Leave the group for a while: it would wait for us in each round."""
        member = self.member
        assert member is not None
        if self._version() == EAGER_VERSION:
            pause_s = self._unsync_backoff_s
        elif self._fall_backs_left > 0:
            pause_s = self._delay_s_max / 10 / self._fall_backs_left
            self._fall_backs_left -= 1
        else:
            _log.warning("this worker stops its work: it cannot read the config topic")
            self._work.stop(self._work.running)
            self._fall_backs_left = _FALL_BACKS
            pause_s = self._unsync_backoff_s
        member.leave("taking too long to read the log", pause_s, held=self._work.running)

    def _version(self) -> int:
        return EAGER_VERSION if self.member is None else self.member.protocol_version

    def _rejoin(self, reason: str) -> None:
        assert self.member is not None
        self.member.rejoin(reason)

    def _forget_deleted(self) -> None:
        """Delete states of what was deleted; the leader does, once all have stopped it."""
        state = self._store.snapshot()
        for name in self._store.statuses.connectors():
            if name not in state.connectors:
                self._worker.deleted(name)
                continue
            tasks = state.tasks(name)
            for number in self._store.task_statuses(name):
                if TaskId(name, number) not in tasks:
                    self._worker.put_status(TaskId(name, number), DESTROYED)

    # --- what the config topic says --------------------------------------------------------------

    def settle(self) -> None:
        """Do what was asked for; after each thing that the herder's thread has done."""
        if self._position.assignment is None or self._is_closed:
            return
        if not self._position.has_wishes():
            return
        wishes = self._position.take(self._store.snapshot())
        if wishes.needs_rejoin:
            self._rejoin("what is configured has changed")
            if self._version() == EAGER_VERSION:
                self._restart(wishes)
                return  # all starts again with what is configured then
        self._change_connectors(wishes.connectors)
        self._change_targets(wishes.targets)
        self._change_tasks(wishes.tasks)
        self._restart(wishes)

    def _change_connectors(self, names: Iterable[str]) -> None:
        ours = [name for name in names if name in self._work.running.connectors]
        starting = []
        for name in ours:
            _log.info("connector %s is reconfigured", name)
            self._worker.stop_connector(name)
            self._work.configured_anew(name, with_tasks=False)
            if name in self._position.state.connectors:
                starting.append(name)
        self._work.start(Share(tuple(starting)))

    def _change_targets(self, names: Iterable[str]) -> None:
        state = self._position.state
        for name in names:
            if name not in state.connectors:
                continue
            target = state.target_states.get(name, STARTED)
            try:
                self._worker.set_target_state(name, target, self._reconfigure)
            except ConnectError as error:
                _log.error("connector %s could not become %s: %s", name, target, error)
                self._work.failed(name, error)
                continue
            if target == STARTED and self._worker.is_running(name):
                self._reconfigure(name)

    def _change_tasks(self, connectors: Iterable[str]) -> None:
        """Stop tasks that were reconfigured; they start after the rebalance."""
        names = set(connectors)
        tasks = [task for task in self._work.running.tasks if task.connector in names]
        if tasks:
            _log.info("tasks are reconfigured: %s", ", ".join(map(str, tasks)))
            self._work.stop_tasks(tasks)
            self._to_restart.update(tasks)
        for name in names:
            self._work.configured_anew(name, with_tasks=True)

    def _restart(self, wishes: Wishes) -> None:
        for request in wishes.restarts.values():
            try:
                is_meant, tasks, _ = self._plan(request)
            except NotFoundError as error:
                _log.info("nothing to restart: %s", error)
                continue
            name, ours = request.connector, self._work.running
            starting = Share(
                (name,) if is_meant and name in ours.connectors else (),
                tuple(task for task in tasks if task in ours.tasks),
            )
            for connector in starting.connectors:
                self._worker.stop_connector(connector)
                self._worker.restarting(connector)
            self._work.stop_tasks(starting.tasks)
            for task in starting.tasks:
                self._worker.restarting(task)
            self._work.start(starting)
