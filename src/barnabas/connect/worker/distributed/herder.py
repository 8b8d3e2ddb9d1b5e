"""The herder of distributed mode: one of several workers that share connectors and tasks.

Everything that changes connectors goes through the config topic, which the group's leader writes
and all workers read:

    a request ─▶ the leader writes ─▶ every worker reads ─┬─▶ its own connector or task changes
                                                          └─▶ the group deals again, if there is
                                                              more or less to run

What only the leader or an owner may do raises ElsewhereError on others, so that the REST interface
asks it. All decisions are made on one thread (`ticks`).

Source: org.apache.kafka.connect.runtime.distributed.DistributedHerder (Kafka 4.3).
"""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final

from barnabas.base.backoff import doubled
from barnabas.connect.config.validation import WorkerRules
from barnabas.connect.errors.requests import (
    AlreadyExistsError,
    BadRequestError,
    ElsewhereError,
    NotFoundError,
    RequestError,
)
from barnabas.connect.tasks.base import TaskId
from barnabas.connect.worker import offset_requests
from barnabas.connect.worker.distributed.config_log import ConfigState, LoggerLevelChanged, Update
from barnabas.connect.worker.distributed.forwarding import Forwarding
from barnabas.connect.worker.distributed.group_work import GroupWork
from barnabas.connect.worker.distributed.leader import Leader
from barnabas.connect.worker.distributed.membership import Figures, Membership, group_figures
from barnabas.connect.worker.distributed.position import Position
from barnabas.connect.worker.distributed.signatures import SigningRules
from barnabas.connect.worker.distributed.store import TopicStore
from barnabas.connect.worker.distributed.ticks import REQUEST_S, Ticks, TickTimeoutError
from barnabas.connect.worker.distributed.work import LocalWork
from barnabas.connect.worker.distributed.zombies import Fencer, Zombies
from barnabas.connect.worker.herder import (
    CLOSE_MARGIN_S,
    Herder,
    Json,
    Offsets,
    connector_type,
    info_json,
    patched,
)
from barnabas.connect.worker.running import Worker
from barnabas.connect.worker.state import (
    STARTED,
    STOPPED,
    Properties,
    RestartRequest,
    tasks_changed,
)
from barnabas.schemas.data.errors import ConnectError


@dataclass(slots=True, frozen=True)
class HerderSettings:
    """Times of a worker's settings, and how it signs."""

    signing: SigningRules
    sync_s: float = 3.0
    unsync_backoff_s: float = 300.0
    delay_s_max: float = 300.0


_log = logging.getLogger(__name__)
_TEND_S: Final = 0.5
_SET_CONFIGS: Final = "Only the leader can set connector configs."
_BACKOFF_S: Final = 0.25
_BACKOFF_S_MAX: Final = 60.0


class DistributedHerder(Herder):
    """`join` makes the member of the group that the herder listens to."""

    def __init__(
        self,
        worker: Worker,
        rules: WorkerRules,
        cluster_id: str | None,
        store: TopicStore,
        position: Position,
        settings: HerderSettings,
        join: Callable[[GroupWork], Membership],
        fencer: Fencer,
        forwarding: Forwarding,
    ) -> None:
        super().__init__(worker, rules, cluster_id)
        self.topics_store = store
        self.position = position
        self._settings = settings
        self._forwarding = forwarding
        self._became_ready = threading.Event()
        self.leader = Leader(
            position, store.config, settings.signing, lambda: self.member.protocol_version
        )
        self._algorithm = settings.signing.signature_algorithm
        self._ticks = Ticks(lambda: self.group.settle())
        self._task_configs = TaskConfigs(
            position, worker, self._ticks, write=self._write_tasks, send=self._send_tasks
        )
        self._zombies = Zombies(
            position,
            self._ticks,
            fencer,
            refresh=lambda: self.group.refresh(),
            record=lambda name, count: self.leader.write(
                lambda: store.config.put_task_count(name, count)
            ),
            ask=lambda url, name: forwarding.fence(url, name, self.leader.key(), self._algorithm),
            latest=self._latest,
        )
        self.work = LocalWork(
            worker,
            self._ticks,
            lambda: position.state,
            self.reconfigure,
            self._zombies if rules.is_exactly_once else None,
        )
        self.group = GroupWork(
            position,
            store,
            worker,
            self.work,
            self._ticks,
            sync_s=settings.sync_s,
            unsync_backoff_s=settings.unsync_backoff_s,
            delay_s_max=settings.delay_s_max,
            lead=self.leader.begin,
            ready=self._ready,
            plan=self._plan,
            reconfigure=self.reconfigure,
        )
        self._join = join
        self._member: Membership | None = None

    # --- life ------------------------------------------------------------------------------------

    def start(self) -> None:
        """Read the topics and join the group; work comes later.

        Raises ConfigError, ConnectError.
        """
        self.topics_store.on_update = self._on_update
        self.topics_store.start()
        self.position.catch_up(self.topics_store.snapshot())
        self._member = self.group.member = self._join(self.group)
        self._ticks.start()
        self._ticks.post(self._tend)
        self._member.start()

    def wait_until_ready(self, timeout_s: float) -> bool:
        """Wait until the group has given this worker its first work; whether it has."""
        return self._became_ready.wait(timeout_s)

    def close(self) -> None:
        """Stop all work, leave the group, end; what hangs is left to itself after a while.

        Source: DistributedHerder.stop and herderExecutorTimeoutMs (Kafka 4.3).
        """
        timeout_s = self._settings.sync_s + self.worker.graceful_s + CLOSE_MARGIN_S
        is_hung = False
        try:
            self._ticks.call(self.group.close, timeout_s)
        except ConnectError as error:
            _log.warning("some work was not stopped: %s", error)
            is_hung = isinstance(error, TickTimeoutError)
        if is_hung:
            self._ticks.close(0.0)  # waiters of the herder get the error
            self.worker.stop_tasks(list(self.worker.tasks))  # others run them soon
        if self._member is not None:
            self._member.close()
        if not is_hung:
            self._ticks.close()
        self._task_configs.close()
        self._zombies.close()
        self._forwarding.close()
        self.worker.close()
        self.topics_store.close()

    @property
    def member(self) -> Membership:
        """This worker in its group; once started."""
        assert self._member is not None
        return self._member

    def _ready(self) -> None:
        if not self._became_ready.is_set():
            _log.info("this worker is ready")
            self.is_ready = True
            self._became_ready.set()

    def _on_update(self, update: Update) -> None:
        if isinstance(update, LoggerLevelChanged):
            self.loggers.set_level(update.namespace, update.level)
            return
        self.position.note(update)
        self._ticks.post(lambda: None)

    def _tend(self) -> None:
        """Periodic work."""
        self._ticks.post(self._tend, _TEND_S)
        self.leader.tend()

    # --- task configurations ---------------------------------------------------------------------

    def _write_tasks(self, name: str, configs: Sequence[Properties]) -> None:
        if configs and self.position.state.target_states.get(name) == STOPPED:
            raise BadRequestError(
                f"Cannot submit non-empty set of task configs for stopped connector {name}"
            )
        self.leader.write(lambda: self.topics_store.put_tasks(name, configs))

    def _latest(self) -> ConfigState:
        """The current configuration, for threads other than the herder's. Raises ConnectError."""
        self.topics_store.config.refresh(self._settings.sync_s)
        return self.topics_store.snapshot()

    def _send_tasks(self, url: str, name: str, configs: Sequence[Properties]) -> None:
        configs = [dict(config) for config in configs]
        self._forwarding.put_tasks(url, name, configs, self.leader.key(), self._algorithm)

    # --- requests: configurations ----------------------------------------------------------------

    def put(
        self, name: str, config: Mapping[str, str | None], target: str | None, *, may_replace: bool
    ) -> tuple[bool, Json]:
        """See Herder."""
        checked = self._check(config)

        def write() -> tuple[bool, Json]:
            self.leader.need(_SET_CONFIGS)
            state = self.topics_store.snapshot()
            is_new = name not in state.connectors
            if not is_new and not may_replace:
                raise AlreadyExistsError(f"Connector {name} already exists")
            self.leader.write(lambda: self.topics_store.put_connector(name, checked, target))
            # Its tasks follow; the status of older tasks is shown until then.
            state.connectors[name] = checked
            return is_new, info_json(state, name)

        return self._ticks.call(write)

    def patch(self, name: str, changes: Mapping[str, str | None]) -> tuple[bool, Json]:
        """See Herder."""
        self.leader.need(_SET_CONFIGS)
        state = self._known(name, f"Connector {name} not found")
        return self.put(name, patched(state.connectors[name], changes), None, may_replace=True)

    def delete(self, name: str) -> None:
        """See Herder."""

        def write() -> None:
            self.leader.need("Only the leader can delete connector configs.")
            self._known(name, f"Connector {name} not found")
            self.leader.write(lambda: self.topics_store.remove_connector(name))

        self._ticks.call(write)

    def stop(self, name: str) -> None:
        """See Herder."""

        def write() -> None:
            self._known(name, f"Unknown connector {name}")
            self.leader.need("Only the leader can transition connectors to the STOPPED state.")
            # First no tasks: a stopped connector that has some would puzzle its users.
            self._write_tasks(name, ())
            self.topics_store.put_target_state(name, STOPPED)
            self.topics_store.config.refresh(self._settings.sync_s)

        self._ticks.call(write)

    def set_cluster_logger(self, namespace: str, level: str) -> None:
        """See Herder."""
        self.topics_store.put_logger_level(namespace, level)

    # --- requests: restarts ----------------------------------------------------------------------

    def restart_connector(self, name: str) -> None:
        """See Herder."""

        def restart() -> None:
            self.position.check_settled()
            self._known(name, f"Unknown connector: {name}")
            if name in self.work.running.connectors:
                self.worker.stop_connector(name)
                self.work.start_connector(name)
                return
            if self.position.is_leader:
                owners = self.member.owners
                raise ElsewhereError(
                    "Cannot restart connector since it is not assigned to this member",
                    None if owners is None else owners.connectors.get(name),
                )
            self.leader.need("Only the leader can process restart requests.")

        self._ticks.call(restart)

    def restart_task(self, task: TaskId) -> None:
        """See Herder."""

        def restart() -> None:
            self.position.check_settled()
            state = self._known(task.connector, f"Unknown connector: {task.connector}")
            if task not in state.tasks(task.connector):
                raise NotFoundError(f"Unknown task: {task}")
            text = "Cannot restart task since it is not assigned to this member"
            if task in self.work.running.tasks:
                self.work.stop_tasks([task])
                if not self.work.start_task(task):
                    raise ConnectError(f"Failed to start task: {task}")
                return
            if self.position.is_leader:
                owners = self.member.owners
                raise ElsewhereError(text, None if owners is None else owners.tasks.get(task))
            self.leader.need(text)

        self._ticks.call(restart)

    def restart(self, request: RestartRequest) -> Json:
        """See Herder."""

        def write() -> Json:
            self.position.check_settled()
            self._known(request.connector, f"Unknown connector: {request.connector}")
            self.leader.need("Only the leader can process restart requests.")
            *_, answer = self._plan(request)
            self.leader.write(lambda: self.topics_store.put_restart(request))
            return answer

        return self._ticks.call(write)

    def reconfigure(self, name: str) -> None:
        """See Herder."""
        self._task_configs.request(name)

    # --- requests: offsets -----------------------------------------------------------------------

    def modify_offsets(self, name: str, offsets: Offsets | None) -> str:
        """See Herder."""

        def check_state() -> bool:
            self.position.check_settled()
            self.leader.need("Only the leader can process external offsets modification requests")
            if not self.group.refresh():
                raise ConnectError(
                    "Failed to read to end of config topic before modifying connector offsets"
                )
            config = self._modifiable(name).connectors[name]
            return self.rules.is_exactly_once and connector_type(config) == "source"

        def modify() -> str:
            check_state()
            config = self.worker.resolve(self.position.state.connectors[name])
            return offset_requests.modify(self.store, self.worker.settings, name, config, offsets)

        if self._ticks.call(check_state):
            # Fencing goes on between; what was checked is checked again.
            try:
                self._ticks.call(lambda: self._zombies.fence(name)).result(REQUEST_S)
            except (ConnectError, TimeoutError) as error:
                raise ConnectError(
                    "Failed to perform zombie fencing for source connector prior to modifying "
                    "offsets"
                ) from error
        return self._ticks.call(modify)

    # --- requests of other workers ---------------------------------------------------------------

    def put_tasks(
        self, name: str, body: bytes, headers: Mapping[str, str], *, may_forward: bool | None
    ) -> None:
        """See Herder."""
        self.leader.check_signature(body, headers)
        try:
            configs = json.loads(body)
        except (ValueError, RecursionError) as error:
            raise BadRequestError(f"the body is not JSON: {error}") from error
        if not isinstance(configs, list) or not all(isinstance(one, dict) for one in configs):
            raise BadRequestError("the body is not an array of objects")
        if not all(isinstance(text, str | None) for one in configs for text in one.values()):
            raise BadRequestError("the settings of a task are texts")

        def write() -> None:
            self.leader.need("Only the leader may write task configurations.")
            self._known(name, f"Connector {name} not found")
            self._write_tasks(name, configs)

        self._ticks.call(write)

    def fence(self, name: str, body: bytes, headers: Mapping[str, str]) -> None:
        """See Herder."""
        self.leader.check_signature(body, headers)
        round_ = self._ticks.call(lambda: self._zombies.fence(name))
        try:
            round_.result(REQUEST_S)
        except TimeoutError as error:
            raise TickTimeoutError("Request timed out") from error

    def group_figures(self) -> Sequence[Figures]:
        """See Herder."""
        if self._member is None:
            return ()
        return group_figures(self._member, self.position, self.group.figures)

    def health(self) -> None:
        """See Herder."""
        self._ticks.call(lambda: None)


class TaskConfigs:
    """A connector's owner asks it for its tasks, and has the leader write them.

    `write` does it as the leader, `send` sends them to the leader at a URL. Source:
    DistributedHerder.reconfigureConnector and publishConnectorTaskConfigs (Kafka 4.3).
    """

    def __init__(
        self,
        position: Position,
        worker: Worker,
        ticks: Ticks,
        *,
        write: Callable[[str, Sequence[Properties]], None],
        send: Callable[[str, str, Sequence[Properties]], None],
    ) -> None:
        self._position = position
        self._worker = worker
        self._ticks = ticks
        self._write = write
        self._send = send
        self._pool = ThreadPoolExecutor(1, "connect-forward")

    def request(self, name: str) -> None:
        """Ask a connector for its tasks soon; from any thread."""
        self._ticks.post(lambda: self._reconfigure(name, 0))

    def _reconfigure(self, name: str, attempt: int) -> None:
        state = self._position.state
        if not self._worker.is_running(name) or state.target_states.get(name) != STARTED:
            return
        config = state.connectors.get(name)
        if config is None:
            return
        try:
            configs = self._worker.raw_task_configs(name, config)
            if not tasks_changed(state, name, configs):
                return
            if self._position.is_leader:
                self._write(name, configs)
                return
        except Exception as error:  # noqa: BLE001  a connector of a user's
            self._again(name, attempt, error)
            return
        self._pool.submit(self._publish, name, configs, attempt)

    def _publish(self, name: str, configs: Sequence[Properties], attempt: int) -> None:
        url = self._position.leader_url
        try:
            if url is None:
                raise RequestError("the leader's URL is not known now")
            self._send(url, name, configs)
        except ConnectError as error:
            self._again(name, attempt, error)

    def _again(self, name: str, attempt: int, error: Exception) -> None:
        tell = _log.info if attempt == 0 else _log.error
        tell("tasks of %s could not be configured, trying again: %s", name, error)
        pause_s = doubled(_BACKOFF_S, _BACKOFF_S_MAX, attempt)
        self._ticks.post(lambda: self._reconfigure(name, attempt + 1), pause_s)

    def close(self) -> None:
        """End; what is sent now is not waited for."""
        self._pool.shutdown(wait=False, cancel_futures=True)
