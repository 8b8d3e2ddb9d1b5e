"""Fencing of an exactly-once source's older tasks, before new ones write (KIP-618).

The config topic says how many tasks may have written (`tasks-fencing-<connector>`); when their
configurations have changed since, the producers of all of them are fenced, and the new number is
written. Only then may new tasks begin. One task after one task needs no round: it takes the same
transactional id. The leader fences; other workers ask it to.

Source: DistributedHerder.doFenceZombieSourceTasks, DistributedHerder.ZombieFencing and
Worker.fenceZombies (Kafka 4.3).
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

from barnabas.connect.errors.requests import (
    BadRequestError,
    ElsewhereError,
    NotFoundError,
    RequestError,
    ShuttingDownError,
)
from barnabas.connect.tasks.base import TaskId
from barnabas.connect.tasks.kafka_output import fenced_ids
from barnabas.connect.worker.distributed.clients import Clients
from barnabas.connect.worker.distributed.config_log import ConfigState
from barnabas.connect.worker.distributed.position import Position
from barnabas.connect.worker.distributed.ticks import Ticks
from barnabas.connect.worker.herder import connector_type
from barnabas.kafka.transactions import TransactionControl
from barnabas.kafka.wire import CoordinatorError
from barnabas.schemas.data.errors import ConnectError

_log = logging.getLogger(__name__)


class Zombies:
    """`refresh` reads the config topic to its end, `record` writes how many tasks may write now,
    `ask` asks the leader; `latest` returns what is configured by now, on any thread."""

    def __init__(
        self,
        position: Position,
        ticks: Ticks,
        fencer: Fencer,
        *,
        refresh: Callable[[], bool],
        record: Callable[[str, int], None],
        ask: Callable[[str, str], None],
        latest: Callable[[], ConfigState],
    ) -> None:
        self._position = position
        self._ticks = ticks
        self._fencer = fencer
        self._refresh = refresh
        self._record = record
        self._ask = ask
        self._latest = latest
        self._rounds: dict[str, Future[None]] = {}
        self._pool = ThreadPoolExecutor(4, "connect-fence")

    def before_task(self, connector: str) -> Future[None]:
        """Fence a connector's older tasks, here or at the leader."""
        answer: Future[None] = Future()

        def begin() -> None:
            try:
                self.fence(connector).add_done_callback(lambda done: _copy(done, answer))
            except ElsewhereError as elsewhere:
                url = elsewhere.url
                if url is None:
                    answer.set_exception(RequestError("the leader is not known now", 409))
                else:
                    asked = self._pool.submit(self._ask, url, connector)
                    asked.add_done_callback(lambda done: _copy(done, answer))
            except Exception as error:  # noqa: BLE001  told to who waits
                answer.set_exception(error)

        self._ticks.post(begin)
        return answer

    def after_task(self, task: TaskId, generation: int | None, is_ours: Callable[[], bool]) -> None:
        """Check a task that has taken its transactional id, on the task's thread.

        `generation` is that of its configuration. Raises ConnectError if newer tasks may have
        fenced others, so that this one must not write.
        """
        if self._latest().generations.get(task.connector) != generation:
            raise ConnectError(
                f"Cannot start source task {task} with exactly-once support as the connector has "
                "already generated a new set of task configs"
            )
        if not is_ours():
            raise ConnectError(
                f"Cannot start source task {task} as it has already been revoked from this worker"
            )

    def fence(self, connector: str) -> Future[None]:
        """Begin a round, as the leader, on the herder's thread. Raises ConnectError."""
        position = self._position
        if not position.is_leader:
            raise ElsewhereError("Only the leader may perform zombie fencing.", position.leader_url)
        if not self._refresh():
            raise ConnectError(
                "Failed to read to end of config topic before performing zombie fencing"
            )
        state = position.state
        config = state.connectors.get(connector)
        if config is None:
            raise NotFoundError(f"Connector {connector} not found")
        if connector_type(config) != "source":
            raise BadRequestError(f"Connector {connector} is not a source connector")
        count = tasks_to_fence(state, connector)
        if count is not None:
            running = self._rounds.get(connector)
            return running if running is not None else self._begin(connector, count)
        if connector in state.pending_fencing:
            self._record(connector, state.task_counts.get(connector, 0))
        done: Future[None] = Future()
        done.set_result(None)
        return done

    def _begin(self, connector: str, count: int) -> Future[None]:
        state = self._position.state
        generation, new_count = state.generations.get(connector), state.task_counts[connector]
        answer = self._rounds[connector] = Future()
        _log.info("the producers of %d older tasks of %s are fenced", count, connector)

        def finish(done: Future[None]) -> None:
            self._rounds.pop(connector, None)
            try:
                done.result()
                if not self._refresh():
                    raise ConnectError("Failed to read to end of config topic")
                if self._position.state.generations.get(connector) != generation:
                    raise RequestError(
                        "Fencing failed because new task configurations were generated for the "
                        "connector",
                        409,
                    )
                self._record(connector, new_count)
            except Exception as error:  # noqa: BLE001  told to who waits
                answer.set_exception(error)
            else:
                answer.set_result(None)

        fenced = self._pool.submit(self._fencer.fence, connector, count, lambda: True)
        fenced.add_done_callback(lambda done: self._ticks.post(lambda: finish(done)))
        return answer

    def close(self) -> None:
        """End; rounds that run are not waited for."""
        self._pool.shutdown(wait=False, cancel_futures=True)


def _copy(done: Future[None], answer: Future[None]) -> None:
    if done.cancelled():
        answer.set_exception(ShuttingDownError())
        return
    error = done.exception()
    if error is None:
        answer.set_result(None)
    else:
        answer.set_exception(error)


def tasks_to_fence(state: ConfigState, connector: str) -> int | None:
    """Return how many older tasks' producers are to be fenced; None where the number is enough."""
    recorded = state.fenced_task_counts.get(connector)
    count = state.task_counts.get(connector, 0)
    if connector not in state.pending_fencing or recorded is None or recorded == count == 1:
        return None
    return recorded


class Fencer:
    """Fences producers by their ids."""

    def __init__(self, clients: Clients, group_id: str) -> None:
        self._clients = clients
        self._group_id = group_id

    def fence(self, connector: str, count: int, is_wanted: Callable[[], bool]) -> None:
        """Fence the producers of a connector's first `count` tasks. Raises ConnectError."""
        control = TransactionControl(self._clients.access)
        try:
            for number in range(count):
                if not is_wanted():
                    return
                for one in fenced_ids(self._group_id, connector, number):
                    control.abort(one)
        except CoordinatorError as error:
            raise ConnectError(f"Failed to perform zombie fencing: {error}") from error
        finally:
            control.close()
