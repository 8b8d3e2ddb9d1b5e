"""The connectors' classes."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from typing import Any

from barnabas.connect.allowed_paths import database_paths
from barnabas.connect.config.definition import refuse
from barnabas.connect.connectors.base import (
    Settings,
    SinkConnector,
    SinkWriter,
    SourceConnector,
    SourceReader,
    TaskContext,
)
from barnabas.connect.connectors.jdbc import source
from barnabas.connect.connectors.jdbc.definition import (
    SINK,
    SINK_UNSUPPORTED,
    SOURCE,
    SOURCE_UNSUPPORTED,
)
from barnabas.connect.connectors.jdbc.dialects import dialect_of
from barnabas.connect.connectors.jdbc.sink import JdbcSinkWriter, check
from barnabas.schemas.data.errors import ConfigError, ConnectError


class JdbcSink(SinkConnector):
    """Writes topics to tables."""

    definition = SINK

    def conflicts(
        self, values: Mapping[str, Any], settings: Settings
    ) -> Mapping[str, Sequence[str]]:
        """Return what does not go together, and whether the database can be reached."""
        try:
            check(values)
            refuse(settings, SINK_UNSUPPORTED)
        except ConfigError as error:
            return {"pk.mode": [str(error)]}
        secret = getattr(values["connection.password"], "value", None)
        try:
            user = values["connection.user"]
            dialect = dialect_of(values["connection.url"], user, secret, values["db.timezone"])
            with contextlib.closing(dialect.connect()):
                return {}
        except ConnectError as error:
            return {"connection.url": [str(error)]}

    def files(self, settings: Settings) -> Mapping[str, Sequence[str]]:
        """Return the file of an embedded database."""
        return {"connection.url": database_paths(settings.get("connection.url", ""))}

    def start(self, context: object, settings: Settings) -> None:
        """Check the settings. Raises ConfigError."""
        check(SINK.parse(settings))
        refuse(settings, SINK_UNSUPPORTED)
        self._settings = settings

    def task_settings(self, tasks_max: int) -> Sequence[Mapping[str, str]]:
        return [dict(self._settings) for _ in range(tasks_max)]

    def writer(self, context: TaskContext) -> SinkWriter:
        return JdbcSinkWriter(context.settings)


class JdbcSource(SourceConnector):
    """Reads tables into topics."""

    definition = SOURCE

    def conflicts(
        self, values: Mapping[str, Any], settings: Settings
    ) -> Mapping[str, Sequence[str]]:
        """Return what does not go together, and whether the database can be reached."""
        try:
            source.check(values)
            refuse(settings, SOURCE_UNSUPPORTED)
        except ConfigError as error:
            return {"mode": [str(error)]}
        try:
            with contextlib.closing(source.dialect(values).connect()):
                return {}
        except ConnectError as error:
            return {"connection.url": [str(error)]}

    def files(self, settings: Settings) -> Mapping[str, Sequence[str]]:
        """Return the file of an embedded database."""
        return {"connection.url": database_paths(settings.get("connection.url", ""))}

    def start(self, context: object, settings: Settings) -> None:
        """Check the settings. Raises ConfigError."""
        source.check(SOURCE.parse(settings))
        refuse(settings, SOURCE_UNSUPPORTED)
        self._settings = settings

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
            dialect = source.dialect(parsed)
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
