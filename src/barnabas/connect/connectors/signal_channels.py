"""Channels that signals come from, beside the log: a topic, a file.

Source: Debezium's documentation, "Sending signals to a Debezium connector".
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Final

from confluent_kafka import OFFSET_STORED, Consumer, KafkaException, TopicPartition

from barnabas.connect.cdc.adhoc import SignalChannel
from barnabas.connect.cdc.settings import CaptureSettings
from barnabas.connect.cdc.signals import Signal, signal_of
from barnabas.connect.tasks.clients import client_settings

_log = logging.getLogger(__name__)
_READ_MAX: Final = 100
"""Signals that a topic is asked for at once."""


def channels_of(settings: CaptureSettings) -> list[SignalChannel]:
    """Return those beside the log."""
    made: list[SignalChannel] = []
    if "file" in settings.signal_channels:
        made.append(FileChannel(settings))
    if "kafka" in settings.signal_channels:
        made.append(KafkaChannel(settings))
    return made


class KafkaChannel:
    """The first partition of a topic: keys are the connector's `topic.prefix`, values as in a file.

    The group's offset is committed once what came of the signals is stored.
    """

    def __init__(self, settings: CaptureSettings) -> None:
        """Raises ConfigError."""
        self._prefix = settings.topic_prefix
        self._topic = settings["signal.kafka.topic"] or f"{self._prefix}-signal"
        self._timeout_s = settings["signal.kafka.poll.timeout.ms"] / 1000
        self._next: int | None = None
        self._consumer = Consumer(
            client_settings(
                "consumer",
                settings.signal_consumer,
                {"bootstrap.servers": settings["signal.kafka.bootstrap.servers"]},
                {
                    "group.id": settings["signal.kafka.groupId"],
                    "auto.offset.reset": "earliest",
                    "enable.auto.commit": False,
                },
            )
        )
        self._consumer.assign([TopicPartition(self._topic, 0, OFFSET_STORED)])

    def read(self) -> list[Signal]:
        """Return the signals there are."""
        signals = []
        for message in self._consumer.consume(_READ_MAX, self._timeout_s):
            if (error := message.error()) is not None:
                _log.warning("Signals of the topic %s cannot be read: %s", self._topic, error)
                continue
            self._next = (message.offset() or 0) + 1
            key, value = message.key(), message.value()
            if key is None or _text(key) != self._prefix:
                _log.info("A signal of the topic %s is for another connector", self._topic)
            elif value is not None and (signal := signal_of(_text(value))) is not None:
                signals.append(signal)
        return signals

    def stored(self) -> None:
        """The effects of the signals so far are stored."""
        if self._next is None:
            return
        place, self._next = TopicPartition(self._topic, 0, self._next), None
        try:
            self._consumer.commit(offsets=[place], asynchronous=False)
        except KafkaException as error:  # they may be read again
            _log.warning("The offset of signals of %s is not committed: %s", self._topic, error)

    def close(self) -> None:
        """Close the consumer."""
        self._consumer.close()


class FileChannel:
    """A file with a JSON object a line: id, type and data. Lines that are read are taken out."""

    def __init__(self, settings: CaptureSettings) -> None:
        self._path = Path(settings["signal.file"])

    def read(self) -> list[Signal]:
        """Return the signals there are."""
        try:
            if not self._path.is_file():
                return []
            lines = self._path.read_text().splitlines()
            if lines:
                self._path.write_text("")
        except (OSError, UnicodeDecodeError) as error:
            _log.warning("The file of signals %s cannot be read: %s", self._path, error)
            return []
        return [signal for line in lines if (signal := signal_of(line)) is not None]

    def stored(self) -> None:
        """Nothing is to be done."""

    def close(self) -> None:
        """Nothing is open."""


def _text(data: str | bytes) -> str:
    return data if isinstance(data, str) else data.decode("utf-8", "replace")
