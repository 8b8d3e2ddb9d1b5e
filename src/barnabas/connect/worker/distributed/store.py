"""The three topics as the worker's Store, and two of them: those of offsets and of statuses.

A connector may have its own topic of offsets (`offsets.storage.topic`). It is written beside the
worker's, which still holds what the connector had before; what is found in its own wins. Each
worker writes the statuses of what it runs, and knows those of all.

Source: org.apache.kafka.connect.storage.KafkaOffsetBackingStore, ConnectorOffsetBackingStore and
KafkaStatusBackingStore (Kafka 4.3).
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import replace
from typing import Final

from barnabas.connect.config.values import invalid
from barnabas.connect.record import JsonMap
from barnabas.connect.tasks.base import TaskId
from barnabas.connect.worker.distributed import status_log as records
from barnabas.connect.worker.distributed.clients import Clients
from barnabas.connect.worker.distributed.config_log import ConfigState, Update
from barnabas.connect.worker.distributed.config_topic import ConfigTopic
from barnabas.connect.worker.distributed.kafka_log import WorkerLog, WorkerTopic, topic_plan
from barnabas.connect.worker.distributed.offset_log import OffsetLog, Offsets
from barnabas.connect.worker.distributed.records import Pair
from barnabas.connect.worker.distributed.status_log import StatusLog
from barnabas.connect.worker.state import Properties, RestartRequest, Status, TopicStatus
from barnabas.kafka.topic_log import LogRecord

_TIMEOUT_S: Final = 30.0
_log = logging.getLogger(__name__)
EXACTLY_ONCE: Final = "exactly.once.source.support"
OFFSETS_TOPIC: Final = "offsets.storage.topic"
"""A connector's own topic of offsets (KIP-618)."""


def transactional_id_of(group_id: str) -> str:
    """Return the id that a group's leader writes configurations under."""
    return f"connect-cluster-{group_id}"


class TopicStore:
    """Reads and writes the topics that the worker's settings name. Raises ConfigError.

    `on_update` hears of configurations that change once `start` has read the topics; it may be set
    until then.
    """

    def __init__(
        self,
        clients: Clients,
        settings: Mapping[str, str],
        on_update: Callable[[Update], None] = lambda _update: None,
    ) -> None:
        support = settings.get(EXACTLY_ONCE, "disabled").lower()
        if support not in ("disabled", "preparing", "enabled"):
            text = "String must be one of (case insensitive): DISABLED, ENABLED, PREPARING"
            raise invalid(EXACTLY_ONCE, settings[EXACTLY_ONCE], text)
        self.on_update = on_update
        self._clients = clients
        self._is_exactly_once = support == "enabled"
        id_ = transactional_id_of(settings.get("group.id", "")) if support != "disabled" else None
        self._offset_plan = topic_plan(settings, "offset")
        self.config = ConfigTopic(
            clients,
            topic_plan(settings, "config"),
            lambda update: self.on_update(update),
            is_committed_only=self._is_exactly_once,
            transactional_id=id_,
        )
        self.statuses = StatusTopic(clients, topic_plan(settings, "status"))
        self.offset_topic = OffsetTopic(
            clients, self._offset_plan, is_committed_only=self._is_exactly_once
        )
        self._own_topics: dict[str, OffsetTopic] = {}
        self._lock = threading.Lock()

    def start(self) -> None:
        """Make or check the topics and read them. Raises ConfigError, ConnectError."""
        begun: list[ConfigTopic | StatusTopic | OffsetTopic] = []
        try:
            for topic in (self.offset_topic, self.statuses, self.config):
                topic.start()
                begun.append(topic)
        except BaseException:
            for topic in begun:
                topic.stop()
            raise

    def close(self) -> None:
        """Write what is not written, and end."""
        self.config.stop()
        self.statuses.stop()
        for topic in (self.offset_topic, *self._own_topics.values()):
            topic.stop()

    # --- configurations --------------------------------------------------------------------------

    def snapshot(self) -> ConfigState:
        """Return all, as it is read by now."""
        return self.config.snapshot()

    def put_connector(self, connector: str, config: Properties, target: str | None) -> None:
        """Write a configuration. None leaves the target state, which is STARTED at first."""
        self.config.put_connector(connector, config, target)

    def remove_connector(self, connector: str) -> None:
        """Delete a connector with its tasks."""
        self.config.remove_connector(connector)

    def put_tasks(self, connector: str, configs: Sequence[Properties]) -> None:
        """Write the configurations of all tasks; none stops them all."""
        self.config.put_tasks(connector, configs)

    def put_target_state(self, connector: str, target: str) -> None:
        """Write what a user wants."""
        self.config.put_target_state(connector, target)

    def put_restart(self, request: RestartRequest) -> None:
        """Tell all workers to start again what of a connector is theirs."""
        self.config.put_restart(request)

    def put_logger_level(self, namespace: str, level: str) -> None:
        """Tell all workers to log a namespace at a level."""
        self.config.put_logger_level(namespace, level)

    # --- statuses --------------------------------------------------------------------------------

    def status(self, name: str | TaskId) -> Status | None:
        """Return the status of a connector or task."""
        return self.statuses.get(name)

    def task_statuses(self, connector: str) -> Mapping[int, Status]:
        """Return the statuses of a connector's tasks."""
        return self.statuses.tasks(connector)

    def put_status(self, name: str | TaskId, status: Status, *, safely: bool = False) -> None:
        """Write a status; DESTROYED deletes it. `safely`: not over what a newer worker wrote."""
        if safely:
            self.statuses.put_safe(name, status)
        else:
            self.statuses.put(name, status)

    def topics(self, connector: str) -> Sequence[TopicStatus]:
        """Return the topics that a connector has used."""
        return list(self.statuses.topics(connector).values())

    def put_topic(self, status: TopicStatus) -> None:
        """Write that a connector uses a topic."""
        self.statuses.put_topic(status)

    def remove_topic(self, connector: str, topic: str) -> None:
        """Forget that a connector uses a topic."""
        self.statuses.remove_topic(connector, topic)

    # --- offsets ---------------------------------------------------------------------------------

    def offsets(self, connector: str, config: Properties) -> TopicOffsets:
        """Return the reader of a connector's offsets; its `config` may name its own topic."""
        own = self._own_topic(config)
        topics = [self.offset_topic] if own is None else [own, self.offset_topic]
        return TopicOffsets(connector, topics)

    def put_offsets(
        self,
        connector: str,
        config: Properties,
        offsets: Sequence[tuple[JsonMap, JsonMap | None]],
    ) -> None:
        """Write offsets, None deletes; returns when they are stored. Raises ConnectError.

        The offsets of a connector with its own topic go to both: what fails in the worker's is
        logged. Deletions go to the worker's topic first, where the offsets would be found again.
        """
        own = self._own_topic(config)
        if own is None:
            self.offset_topic.store(connector, offsets)
            return
        gone = [pair for pair in offsets if pair[1] is None]
        if gone:
            self.offset_topic.store(connector, gone)
        own.store(connector, offsets)
        kept = [pair for pair in offsets if pair[1] is not None]
        try:
            self.offset_topic.store(connector, kept)
        except Exception:  # noqa: BLE001  they are stored where they are looked for first
            _log.exception("offsets of %s are not in topic %s", connector, self.offset_topic.name)

    def _own_topic(self, config: Properties) -> OffsetTopic | None:
        name = config.get(OFFSETS_TOPIC)
        if not name or name == self.offset_topic.name:
            return None
        with self._lock:
            topic = self._own_topics.get(name)
            if topic is None:
                plan = replace(self._offset_plan, name=name, setting=OFFSETS_TOPIC)
                topic = OffsetTopic(self._clients, plan, is_committed_only=self._is_exactly_once)
                topic.start()
                self._own_topics[name] = topic
            return topic


class OffsetTopic:
    """One topic of offsets, read whole."""

    def __init__(
        self, clients: Clients, plan: WorkerTopic, *, is_committed_only: bool = False
    ) -> None:
        self.name = plan.name
        self._log = OffsetLog()
        self._lock = threading.Lock()
        self._topic = WorkerLog(clients, plan, self._apply, is_committed_only=is_committed_only)

    def start(self) -> None:
        """Read the topic. Raises ConfigError, ConnectError."""
        self._topic.start()

    def stop(self) -> None:
        """End."""
        self._topic.stop()

    def refresh(self, timeout_s: float = _TIMEOUT_S) -> None:
        """Read to the end. Raises ReadTimeoutError."""
        self._topic.refresh(timeout_s)

    def offset(self, connector: str, partition: JsonMap) -> JsonMap | None:
        """Return the offset of a source partition, as far as it is read."""
        with self._lock:
            return self._log.offset(connector, partition)

    def all(self, connector: str) -> Offsets:
        """Return all (partition, offset) of a connector, as far as it is read."""
        with self._lock:
            return self._log.all(connector)

    def store(self, connector: str, pairs: Sequence[tuple[JsonMap, JsonMap | None]]) -> None:
        """Write offsets, and wait for that; None deletes one. Raises ConnectError, DataError."""
        with self._lock:
            records = [self._log.record(connector, *pair) for pair in pairs]
        self._topic.write(records, "Timed out while writing offsets to Kafka")

    def _apply(self, record: LogRecord) -> None:
        with self._lock:
            self._log.apply(record.key, record.value)


class TopicOffsets:
    """An OffsetReader: each question first reads the topics to their end; the first one wins."""

    def __init__(self, connector: str, topics: Sequence[OffsetTopic]) -> None:
        self._connector = connector
        self._topics = topics

    def offset(self, partition: JsonMap) -> JsonMap | None:
        """Return the offset stored for a source partition; None if absent."""
        for topic in self._topics:
            topic.refresh()
            stored = topic.offset(self._connector, partition)
            if stored is not None:
                return stored
        return None

    def all(self) -> Offsets:
        """Return all (partition, offset) of the connector."""
        for topic in self._topics:
            topic.refresh()
        offsets: Offsets = []
        for topic in self._topics:
            known = [partition for partition, _ in offsets]
            offsets += [pair for pair in topic.all(self._connector) if pair[0] not in known]
        return offsets


class StatusTopic:
    """The topic of statuses, read whole."""

    def __init__(self, clients: Clients, plan: WorkerTopic) -> None:
        self._log = StatusLog()
        self._lock = threading.Lock()
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
