"""Kafka's topics as the place where a task's records are."""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from barnabas.connect.connectors.base import SinkRange
from barnabas.connect.errors.tolerance import ErrorPolicy
from barnabas.connect.plugins import load
from barnabas.connect.record import RawColumn, RawRecord
from barnabas.connect.tasks import topics
from barnabas.connect.tasks.base import TaskPlan
from barnabas.connect.tasks.chain import Settings
from barnabas.connect.tasks.clients import (
    admin_settings,
    consumer_settings,
    producer_settings,
)
from barnabas.connect.tasks.kafka_group import KafkaGroup
from barnabas.connect.tasks.kafka_output import KafkaOutput, KafkaTransactions, transactional_id
from barnabas.connect.tasks.kafka_ranges import close_readers, read_columns, read_range
from barnabas.connect.tasks.source_transactions import open_ms
from barnabas.connect.tasks.transport import GroupListener
from barnabas.kafka.admin import Admin
from barnabas.schemas.data.errors import ConfigError

OUTPUTS_MAX: Final = 16
_OUTPUTS: Final[OrderedDict[tuple[int, str, str], KafkaOutput]] = OrderedDict()
"""Of this process, by task and kind; the one used last is last."""


@dataclass(slots=True, frozen=True)
class KafkaTransport:
    """The clients of one task. `run` is different for each start of a task."""

    connector_name: str
    task: int
    settings: Settings = field(repr=False)
    worker: Settings = field(repr=False)
    offsets_topic: str | None
    run: str
    has_receipts: bool = False

    @staticmethod
    def of(plan: TaskPlan, settings: Settings, run: str) -> KafkaTransport:
        """Return the transport of a task."""
        return KafkaTransport(
            plan.id.connector,
            plan.id.task,
            settings,
            plan.worker_settings,
            plan.offsets_topic,
            run,
            getattr(load(settings["connector.class"]), "has_receipts", False),
        )

    @property
    def transactional_id(self) -> str:
        """Return the id of the task's transactions, as Kafka's worker names it."""
        group_id = self.worker.get("group.id", "connect-cluster")
        return transactional_id(group_id, self.connector_name, self.task)

    def output(self) -> KafkaOutput:
        """Return this process's output of the task."""
        return self._output("records", f"connector-producer-{self._id}")

    def dead_letters(self) -> KafkaOutput:
        """Return the output of dead letters, whose topic is there then."""
        key = self._key("dead-letters")
        if key not in _OUTPUTS:
            self._ensure_dead_letter_topic(ErrorPolicy.read(self.settings))
        return self._output("dead-letters", f"connector-dlq-producer-{self._id}")

    def _ensure_dead_letter_topic(self, policy: ErrorPolicy) -> None:
        """Create the topic of dead letters, with one partition. Raises ConnectError."""
        admin = self.admin()
        if not topics.exists(admin, policy.dead_letter_topic):
            topics.create(admin, policy.dead_letter_topic, 1, policy.dead_letter_replicas, {})

    def transactional_output(self) -> KafkaTransactions:
        """Return the task's output for exactly once; it ends what an earlier one left open."""
        if self.offsets_topic is None:
            raise ConfigError("exactly once needs a topic of offsets: run the worker distributed")
        own = producer_settings(
            f"connector-producer-{self._id}",
            self.settings,
            self.worker,
            transactional_id=self.transactional_id,
            open_ms=open_ms(self.settings, self.worker),
        )
        return KafkaTransactions(
            own, self._creation(), self.offsets_topic, has_receipts=self.has_receipts
        )

    def read(self, where: SinkRange) -> Iterator[RawRecord]:
        """Yield the records of a range."""
        return read_range(f"{self._id} {self.run}", self._consumer(), where)

    def read_columns(self, where: SinkRange) -> Iterator[RawColumn]:
        """Yield the records of a range, many at once."""
        return read_columns(f"{self._id} {self.run}", self._consumer(), where)

    def group(self, listener: GroupListener) -> KafkaGroup:
        """Join the group of the connector."""
        own = {**self._consumer(), "client.id": f"connector-consumer-{self._id}"}
        return KafkaGroup(own, self.settings, listener)

    def admin(self) -> Admin:
        """Return a client for administration."""
        return Admin(admin_settings(self.settings, self.worker), topics.CALL_TIMEOUT_SECONDS)

    def close(self) -> None:
        """Close what this process holds open for the task."""
        close_readers(f"{self._id} {self.run}")
        for kind in ("records", "dead-letters"):
            output = _OUTPUTS.pop(self._key(kind), None)
            if output is not None:
                output.close()

    @property
    def _id(self) -> str:
        return f"{self.connector_name}-{self.task}"

    def _key(self, kind: str) -> tuple[int, str, str]:
        return os.getpid(), kind, f"{self._id} {self.run}"

    def _output(self, kind: str, client_id: str) -> KafkaOutput:
        key = self._key(kind)
        if key not in _OUTPUTS:
            own = producer_settings(client_id, self.settings, self.worker)
            creation = self._creation() if kind == "records" else topics.TopicCreation()
            has_receipts = self.has_receipts and kind == "records"
            _OUTPUTS[key] = KafkaOutput(own, creation, has_receipts=has_receipts)
        _OUTPUTS.move_to_end(key)
        return _OUTPUTS[key]

    def _creation(self) -> topics.TopicCreation:
        return topics.TopicCreation(topics.read_groups(self.settings, self.worker), self.admin)

    def _consumer(self) -> dict[str, Any]:
        return consumer_settings(self.connector_name, self.settings, self.worker)


def trim_outputs() -> None:
    """Close outputs that were not used for long, in a process that runs one job at a time.

    On an executor nobody tells that a task has ended. Waiting records of an output were flushed by
    then.
    """
    while len(_OUTPUTS) > OUTPUTS_MAX:
        _OUTPUTS.popitem(last=False)[1].close()
