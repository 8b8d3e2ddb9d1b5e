"""The status topic: each worker tells the states of what it runs, and knows those of all.

Source: org.apache.kafka.connect.storage.KafkaStatusBackingStore (Kafka 4.3).
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future

from barnabas.connect.tasks.base import TaskId
from barnabas.connect.worker.distributed import status_log as records
from barnabas.connect.worker.distributed.clients import Clients
from barnabas.connect.worker.distributed.config_records import Pair
from barnabas.connect.worker.distributed.kafka_log import WorkerLog
from barnabas.connect.worker.distributed.status_log import StatusLog
from barnabas.connect.worker.distributed.topics import WorkerTopic
from barnabas.connect.worker.state import Status, TopicStatus
from barnabas.kafka.topic_log import LogRecord

_log = logging.getLogger(__name__)


class StatusTopic:
    """`on_change` hears of each record that is read, on the log's thread."""

    def __init__(
        self, clients: Clients, plan: WorkerTopic, on_change: Callable[[], None] = lambda: None
    ) -> None:
        self._log = StatusLog()
        self._lock = threading.Lock()
        self._on_change = on_change
        self._topic = WorkerLog(clients, plan, self._apply)

    def start(self) -> None:
        """Read the topic. Raises ConfigError, ConnectError."""
        self._topic.start()

    def stop(self) -> None:
        """Write what was told and end."""
        self._topic.stop()

    def get(self, name: str | TaskId) -> Status | None:
        """Return the state of a connector or task."""
        with self._lock:
            return self._log.get(name)

    def tasks(self, connector: str) -> dict[int, Status]:
        """Return the states of a connector's tasks."""
        with self._lock:
            return dict(self._log.tasks.get(connector, {}))

    def connectors(self) -> list[str]:
        """Return the connectors that have a state."""
        with self._lock:
            return list(self._log.connectors)

    def topics(self, connector: str) -> dict[str, TopicStatus]:
        """Return the topics that a connector has used."""
        with self._lock:
            return dict(self._log.topics_of(connector))

    def put(self, name: str | TaskId, status: Status) -> None:
        """Tell a state."""
        self._send(records.status_record(name, status))

    def put_safe(self, name: str | TaskId, status: Status) -> None:
        """Tell a state unless a newer worker has told one."""
        with self._lock:
            may = self._log.can_write_safely(name, status)
        if may:
            self.put(name, status)

    def put_topic(self, status: TopicStatus) -> None:
        """Tell that a connector uses a topic."""
        self._send(records.topic_record(status))

    def remove_topic(self, connector: str, topic: str) -> None:
        """Forget that a connector has used a topic."""
        self._send(records.topic_removal(connector, topic))

    def flush(self) -> None:
        """Wait until what was told is written. Raises ReadTimeoutError."""
        self._topic.flush()

    def refresh(self, timeout_s: float) -> None:
        """Read to the end. Raises ReadTimeoutError."""
        self._topic.refresh(timeout_s)

    def _send(self, pair: Pair) -> None:
        key, value = pair

        def check(sent: Future[None]) -> None:
            error = sent.exception()
            if error is not None:
                _log.error("the state %s is not written: %s", key, error)

        self._topic.send(key, value).add_done_callback(check)

    def _apply(self, record: LogRecord) -> None:
        key = None if record.key is None else record.key.decode(errors="replace")
        with self._lock:
            self._log.apply(key, record.value)
        self._on_change()
