"""The config topic: written by the group's leader, read by every worker.

Where exactly-once sources are on, or made ready, the leader writes in transactions of one id, so
that an older leader is fenced (KIP-618). Target states and log levels may be written by any worker.

Source: org.apache.kafka.connect.storage.KafkaConfigBackingStore (Kafka 4.3).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Final

from barnabas.connect.tasks.base import TaskId
from barnabas.connect.worker.distributed import records
from barnabas.connect.worker.distributed.clients import Clients
from barnabas.connect.worker.distributed.config_log import ConfigLog, ConfigState, Update
from barnabas.connect.worker.distributed.kafka_log import WorkerLog, WorkerTopic
from barnabas.connect.worker.distributed.records import Pair, SessionKey
from barnabas.connect.worker.state import Properties, RestartRequest
from barnabas.kafka.planned_topics import TopicLogError
from barnabas.kafka.topic_log import LogRecord
from barnabas.schemas.data.errors import ConfigError, ConnectError

_TIMEOUT_S: Final = 30.0


class FencedError(ConnectError):
    """The config topic refused a write of the leader: another worker may lead by now."""

    java_name = "org.apache.kafka.connect.storage.PrivilegedWriteException"


class ConfigTopic:
    """`on_update` hears what changes once `start` has read the topic, on the log's thread.

    `transactional_id` None: the leader writes without transactions.
    """

    def __init__(
        self,
        clients: Clients,
        plan: WorkerTopic,
        on_update: Callable[[Update], None],
        *,
        is_committed_only: bool = False,
        transactional_id: str | None = None,
    ) -> None:
        self._on_update = on_update
        self._transactional_id = transactional_id
        self._lock = threading.Lock()
        self._log = ConfigLog()
        self._has_started = False
        self._topic = WorkerLog(clients, plan, self._apply, is_committed_only=is_committed_only)

    def start(self) -> None:
        """Read the topic. Raises ConfigError, ConnectError."""
        self._topic.start()
        self._has_started = True
        if self._topic.partitions > 1:
            self.stop()
            raise ConfigError(
                f"Topic '{self._topic.name}' supplied via the 'config.storage.topic' property is "
                "required to have a single partition in order to guarantee consistency of "
                f"connector configurations, but found {self._topic.partitions} partitions."
            )

    def stop(self) -> None:
        """End reading and writing."""
        self._topic.stop()

    def snapshot(self) -> ConfigState:
        """Return what is configured, as far as it is read."""
        with self._lock:
            return self._log.state.copy()

    def refresh(self, timeout_s: float) -> None:
        """Read to the end. Raises ReadTimeoutError."""
        self._topic.refresh(timeout_s)

    def claim_writes(self) -> None:
        """Fence older leaders; who leads calls it first. Raises ConnectError."""
        if self._transactional_id is None or self._topic.leads:
            return
        try:
            self._topic.lead(self._transactional_id)
        except TopicLogError as error:
            raise ConnectError(
                "Failed to create and initialize fencable producer for config topic"
            ) from error

    # --- writing ---------------------------------------------------------------------------------

    def put_connector(self, name: str, config: Properties, state: str | None = None) -> None:
        """Store a connector's configuration, and its target state where one is given."""
        pairs = [records.target_state(name, state)] if state is not None else []
        self._send([*pairs, records.connector_config(name, config)])

    def remove_connector(self, name: str) -> None:
        """Delete a connector."""
        self._send(records.removal(name))

    def put_tasks(self, connector: str, configs: Sequence[Properties]) -> None:
        """Store the configurations of a connector's tasks; they are in force together or not."""
        deadline = time.monotonic() + _TIMEOUT_S
        self.refresh(_TIMEOUT_S)
        tasks = [
            records.task_config(TaskId(connector, number), config)
            for number, config in enumerate(configs)
        ]
        if tasks:
            self._send(tasks, deadline)
        self._send([records.tasks_commit(connector, len(configs))], deadline)

    def put_task_count(self, connector: str, count: int) -> None:
        """Store that producers of older tasks are fenced."""
        self._send([records.task_count(connector, count)])

    def put_session_key(self, key: SessionKey) -> None:
        """Store what workers sign requests with."""
        self._send([records.session_key(key)])

    def put_restart(self, request: RestartRequest) -> None:
        """Store a wish to restart."""
        self._send([records.restart_request(request)])

    def put_target_state(self, connector: str, state: str) -> None:
        """Store what a user wants; any worker may."""
        self._send_plain([records.target_state(connector, state)], time.monotonic() + _TIMEOUT_S)

    def put_logger_level(self, namespace: str, level: str) -> None:
        """Store a log level for all workers; any worker may."""
        self._send_plain([records.logger_level(namespace, level)], time.monotonic() + _TIMEOUT_S)

    def _send(self, pairs: Sequence[Pair], deadline: float | None = None) -> None:
        """Write and read back. Raises FencedError, ConnectError."""
        deadline = deadline or time.monotonic() + _TIMEOUT_S
        if self._transactional_id is None:
            self._send_plain(pairs, deadline)
        else:
            self._send_fenced(pairs)
        self.refresh(max(0.1, deadline - time.monotonic()))

    def _send_plain(self, pairs: Sequence[Pair], deadline: float) -> None:
        left_s = max(0.1, deadline - time.monotonic())
        self._topic.write(pairs, "Error writing configuration to Kafka", left_s)

    def _send_fenced(self, pairs: Sequence[Pair]) -> None:
        if not self._topic.leads:
            raise FencedError(
                "Cannot produce to config topic without claiming write privileges first"
            )
        try:
            self._topic.append(pairs)
        except TopicLogError as error:
            raise FencedError("Failed to perform fencable send to config topic") from error

    # --- reading ---------------------------------------------------------------------------------

    def _apply(self, record: LogRecord) -> None:
        key = None if record.key is None else record.key.decode(errors="replace")
        with self._lock:
            update = self._log.apply(record.offset, key, record.value)
        if update is not None and self._has_started:
            self._on_update(update)
