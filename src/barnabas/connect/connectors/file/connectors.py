"""Kafka's FileStreamSource and FileStreamSink: settings, offsets and records are theirs.

A source's partition is `{"filename": …}`, its offset `{"position": bytes}`. Lines end with `\\n`,
`\\r` or `\\r\\n`; the last one is read when its end is there. Source: org.apache.kafka.connect.file
(Kafka 4.3).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Final

from barnabas.connect.config.definition import (
    ConfigType,
    Definition,
    Importance,
    Setting,
)
from barnabas.connect.connectors.base import (
    Settings,
    SinkConnector,
    SinkWriter,
    SourceConnector,
    SourceReader,
    TaskContext,
)
from barnabas.connect.connectors.file.reader import FILENAME, POSITION, FileReader
from barnabas.connect.connectors.file.writer import FileStreamWriter
from barnabas.connect.record import JsonMap
from barnabas.schemas.data.errors import ConfigError, ConnectError

_FILE: Final = "file"


def _not_empty(name: str, value: object) -> None:
    if value is not None and not str(value):
        raise ConfigError(f"Invalid value  for configuration {name}: String must be non-empty")


class FileStreamSource(SourceConnector):
    """Reads the lines of a file."""

    definition: ClassVar[Definition] = Definition((
        Setting(_FILE, ConfigType.STRING, None, Importance.HIGH,
                "Source filename. If not specified, the standard input will be used"),
        Setting("topic", ConfigType.STRING, importance=Importance.HIGH,
                doc="The topic to publish data to", validator=_not_empty),
        Setting("batch.size", ConfigType.INT, 2000, Importance.LOW,
                "The maximum number of records the source task can read from the file each time "
                "it is polled"),
    ))  # fmt: skip

    def is_worth_distributing(self, settings: Settings) -> bool:
        """Not: the file is the worker's, and its lines stay in order."""
        return False

    def reader(self, context: TaskContext) -> SourceReader:
        """Return the reader of the file."""
        values = self.definition.parse(context.settings)
        stored = None
        if values[_FILE] and context.offsets is not None:
            stored = context.offsets.offset({FILENAME: values[_FILE]})
        return FileReader(values[_FILE] or None, values["topic"], values["batch.size"], stored)

    def exactly_once_support(self, settings: Settings) -> bool | None:
        """Of a file; standard input has no offsets."""
        return bool(settings.get(_FILE))

    def alter_offsets(
        self, settings: Settings, offsets: Sequence[tuple[JsonMap, JsonMap | None]]
    ) -> bool:
        """Check offsets that a user wants to store."""
        if not settings.get(_FILE):
            raise ConnectError(
                "Offsets cannot be modified if the 'file' configuration is unspecified. "
                "This is because stdin is used for input and offsets are not tracked."
            )
        for partition, offset in offsets:
            if offset is None:
                continue
            if POSITION not in offset:
                raise ConnectError(
                    "Offset objects should either be null or contain the key 'position'"
                )
            position = offset[POSITION]
            if not isinstance(position, int) or isinstance(position, bool):
                raise ConnectError(
                    "The value for the 'position' key in the offset is expected to be a Long value"
                )
            if position < 0:
                raise ConnectError(
                    "The value for the 'position' key in the offset should be a non-negative value"
                )
            if FILENAME not in (partition or {}):
                raise ConnectError("Partition objects should contain the key 'filename'")
        return True


class FileStreamSink(SinkConnector):
    """Writes records as lines."""

    definition: ClassVar[Definition] = Definition(
        (
            Setting(
                _FILE,
                ConfigType.STRING,
                None,
                Importance.HIGH,
                "Destination filename. If not specified, the standard output will be used",
            ),
        )
    )

    def is_worth_distributing(self, settings: Settings) -> bool:
        """Not: the file is the worker's, and one task at a time appends to it."""
        return False

    def writer(self, context: TaskContext) -> SinkWriter:
        """Return the writer of the file."""
        return FileStreamWriter(context.settings.get(_FILE) or None)
