"""MongoDB's source and sink, with the settings, records and offsets of MongoDB's own connector."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from barnabas.connect.config.definition import Definition, refuse
from barnabas.connect.connectors.base import (
    Settings,
    SinkConnector,
    SinkWriter,
    SourceConnector,
    SourceReader,
    TaskContext,
)
from barnabas.connect.connectors.mongodb.documents import json_formatter
from barnabas.connect.connectors.mongodb.reader import (
    COPY,
    TOKEN,
    ChangeReader,
    is_token,
    operation_time,
    partition_name,
)
from barnabas.connect.connectors.mongodb.settings import (
    SINK,
    SINK_UNSUPPORTED,
    SOURCE,
    SOURCE_UNSUPPORTED,
    for_topic,
    overridden,
)
from barnabas.connect.connectors.mongodb.sink.writer import MongoWriter, Topic
from barnabas.connect.record import JsonMap
from barnabas.schemas.data.errors import ConfigError, ConnectError

_AT = "startup.mode.timestamp.start.at.operation.time"


class MongoSource(SourceConnector):
    """Change streams to topics."""

    definition: ClassVar[Definition] = SOURCE

    def conflicts(
        self, values: Mapping[str, Any], settings: Settings
    ) -> Mapping[str, Sequence[str]]:
        """Return what is wrong between settings."""
        errors: dict[str, list[str]] = {}
        try:
            refuse(settings, SOURCE_UNSUPPORTED)
        except ConfigError as error:
            errors["connection.uri"] = [str(error)]
        if values["collection"] and not values["database"]:
            errors["collection"] = ["Missing configuration database, which collection needs"]
        for name, check in (
            ("output.json.formatter", lambda: json_formatter(values["output.json.formatter"])),
            (_AT, lambda: operation_time(str(values[_AT] or ""))),
            ("connection.uri", lambda: partition_name(values)),
        ):
            try:
                check()
            except ConfigError as error:
                errors[name] = [str(error)]
        return errors

    def is_worth_distributing(self, settings: Settings) -> bool:
        """Not: a task has one change stream, which the worker reads."""
        return False

    def reader(self, context: TaskContext) -> SourceReader:
        """Return the reader. Raises ConfigError."""
        refuse(context.settings, SOURCE_UNSUPPORTED)
        return ChangeReader(self.definition.parse(context.settings), context.offsets)

    def alter_offsets(
        self, settings: Settings, offsets: Sequence[tuple[JsonMap, JsonMap | None]]
    ) -> bool:
        """Check offsets that a user wants to store."""
        for partition, offset in offsets:
            if "ns" not in (partition or {}):
                raise ConnectError("Partition objects should contain the key 'ns'")
            if offset is not None and COPY not in offset and not is_token(offset.get(TOKEN)):
                raise ConnectError("The value of '_id' must be a resume token as JSON")
        return True


class MongoSink(SinkConnector):
    """Topics to collections."""

    definition: ClassVar[Definition] = SINK

    def conflicts(
        self, values: Mapping[str, Any], settings: Settings
    ) -> Mapping[str, Sequence[str]]:
        """Return what is wrong between settings."""
        try:
            refuse(settings, SINK_UNSUPPORTED)
            Topic(values)
            for topic in overridden(settings):
                Topic(self.definition.parse(for_topic(settings, topic)))
        except ConfigError as error:
            name = next((one for one in self.definition.settings if f" {one}" in str(error)), "")
            return {name or "connection.uri": [str(error)]}
        return {}

    def writer(self, context: TaskContext) -> SinkWriter:
        """Return the writer of a task. Raises ConfigError."""
        refuse(context.settings, SINK_UNSUPPORTED)
        return MongoWriter(context.settings)
