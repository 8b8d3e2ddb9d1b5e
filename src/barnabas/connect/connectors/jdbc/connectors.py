"""The connectors' classes."""

from __future__ import annotations

import contextlib
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from barnabas.connect.allowed_paths import database_paths
from barnabas.connect.config.definition import Unsupported, refuse
from barnabas.connect.connectors.base import (
    Connector,
    Settings,
    SinkConnector,
    SinkWriter,
    SourceConnector,
    SourceReader,
    TaskContext,
)
from barnabas.connect.connectors.jdbc import sink, source
from barnabas.connect.connectors.jdbc.definition import (
    SINK,
    SINK_UNSUPPORTED,
    SOURCE,
    SOURCE_UNSUPPORTED,
)
from barnabas.connect.connectors.jdbc.dialects import dialect_of
from barnabas.schemas.data.errors import ConfigError, ConnectError


class JdbcConnector(Connector):
    """A connector of one database."""

    unsupported: ClassVar[Sequence[Unsupported]]
    mode: ClassVar[str]
    """The setting that errors between settings are shown with."""

    @abstractmethod
    def _check(self, values: Mapping[str, Any]) -> None:
        """Raises ConfigError for what does not go together."""

    def conflicts(
        self, values: Mapping[str, Any], settings: Settings
    ) -> Mapping[str, Sequence[str]]:
        """Return what does not go together, and whether the database can be reached."""
        try:
            self._check(values)
            refuse(settings, self.unsupported)
        except ConfigError as error:
            return {self.mode: [str(error)]}
        try:
            with contextlib.closing(dialect_of(values).connect()):
                return {}
        except ConnectError as error:
            return {"connection.url": [str(error)]}

    def files(self, settings: Settings) -> Mapping[str, Sequence[str]]:
        """Return the file of an embedded database."""
        return {"connection.url": database_paths(settings.get("connection.url", ""))}

    def start(self, context: object, settings: Settings) -> None:
        """Check the settings. Raises ConfigError."""
        self._check(self.definition.parse(settings))
        refuse(settings, self.unsupported)
        self._settings = settings


class JdbcSink(JdbcConnector, SinkConnector):
    """Writes topics to tables."""

    definition = SINK
    unsupported = SINK_UNSUPPORTED
    mode = "pk.mode"

    def _check(self, values: Mapping[str, Any]) -> None:
        sink.check(values)

    def writer(self, context: TaskContext) -> SinkWriter:
        return sink.JdbcSinkWriter(context.settings)


class JdbcSource(JdbcConnector, SourceConnector):
    """Reads tables into topics."""

    definition = SOURCE
    unsupported = SOURCE_UNSUPPORTED
    mode = "mode"

    def _check(self, values: Mapping[str, Any]) -> None:
        source.check(values)

    def is_worth_distributing(self, settings: Settings) -> bool:
        """Not: the worker has the rows of a query already."""
        return False

    def task_settings(self, tasks_max: int) -> Sequence[Mapping[str, str]]:
        """Distribute the tables that exist now to tasks. Raises ConnectError if none exists."""
        parsed = SOURCE.parse(self._settings)
        if parsed["query"]:
            return [dict(self._settings)]
        tables = parsed["table.whitelist"]
        if not tables:
            dialect = dialect_of(parsed)
            with contextlib.closing(dialect.connect()) as connection:
                present = dialect.tables(connection)
            tables = [name for name in present if name not in parsed["table.blacklist"]]
        if not tables:
            raise ConnectError("There is no table to read")
        count = min(tasks_max, len(tables))
        return [
            {**self._settings, source.TABLES: ",".join(tables[task::count])}
            for task in range(count)
        ]

    def reader(self, context: TaskContext) -> SourceReader:
        return source.JdbcSourceReader(context)

    def exactly_once_support(self, settings: Settings) -> bool | None:
        """Rows that share a time may come again after a restart."""
        return settings.get("mode", "").lower().endswith("incrementing")
