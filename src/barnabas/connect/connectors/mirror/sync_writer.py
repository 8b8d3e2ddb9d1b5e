"""Writes offset syncs into their topic, partition 0, in the source or the target."""

from __future__ import annotations

import logging
from functools import partial
from typing import Final

from confluent_kafka import KafkaError, Message, Producer

from barnabas.connect.connectors.mirror.flow import Flow
from barnabas.connect.connectors.mirror.records import OffsetSync
from barnabas.kafka.partitioners import JAVA_PARTITIONER

_CLOSE_SECONDS: Final = 5.0
_WAIT_SECONDS: Final = 0.1
_log = logging.getLogger(__name__)


class SyncWriter:
    """A producer. What is lost is logged: a later sync of the partition takes its place."""

    def __init__(self, flow: Flow) -> None:
        side = flow.syncs_side
        self._topic = flow.syncs_topic
        role = f"offset-syncs-{side}-producer"
        self._producer = Producer(
            {
                **JAVA_PARTITIONER,
                **flow.client(side, "producer", role, **{"enable.idempotence": True}),
                "delivery.report.only.error": True,
                # No method of this object: the producer would last until garbage is collected.
                "on_delivery": partial(_tell, self._topic),
            }
        )

    def send(self, sync: OffsetSync) -> None:
        """Queue a sync."""
        while True:
            try:
                self._producer.produce(self._topic, sync.value, sync.key, partition=0)
                break
            except BufferError:
                self._producer.poll(_WAIT_SECONDS)
        self._producer.poll(0)

    def close(self) -> None:
        """Send what is queued, or give up after a while."""
        self._producer.flush(_CLOSE_SECONDS)
        self._producer.purge()


def _tell(topic: str, error: KafkaError | None, _message: Message) -> None:
    if error is not None and error.code() != KafkaError._PURGE_QUEUE:
        _log.error("cannot write an offset sync to %s: %s", topic, error.str())
