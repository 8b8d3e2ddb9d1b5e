"""The connectors' classes."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from typing import Any

from barnabas.pipeline.connect.connectors.base import (
    Settings,
    SinkConnector,
    SinkWriter,
    TaskContext,
)
from barnabas.pipeline.connect.connectors.jdbc.definition import SINK
from barnabas.pipeline.connect.connectors.jdbc.dialects import dialect_of
from barnabas.pipeline.connect.connectors.jdbc.sink import JdbcSinkWriter, check
from barnabas.pipeline.connect.errors.kinds import ConfigError, ConnectError


class JdbcSink(SinkConnector):
    """Writes topics to tables."""

    definition = SINK

    def __init__(self) -> None:
        self._settings: Settings = {}

    def validate(self, settings: Settings) -> Mapping[str, Sequence[str]]:
        """Return what does not go together, and whether the database can be reached."""
        try:
            parsed: dict[str, Any] = SINK.parse(settings)
        except ConfigError:
            return {}  # the definition's own
        try:
            check(parsed)
        except ConfigError as error:
            return {"pk.mode": [str(error)]}
        secret = getattr(parsed["connection.password"], "value", None)
        try:
            user = parsed["connection.user"]
            dialect = dialect_of(parsed["connection.url"], user, secret, parsed["db.timezone"])
            with contextlib.closing(dialect.connect()):
                return {}
        except ConnectError as error:
            return {"connection.url": [str(error)]}

    def start(self, context: object, settings: Settings) -> None:
        """Check the settings. Raises ConfigError."""
        check(SINK.parse(settings))
        self._settings = settings

    def task_settings(self, tasks_max: int) -> Sequence[Mapping[str, str]]:
        return [dict(self._settings) for _ in range(tasks_max)]

    def writer(self, context: TaskContext) -> SinkWriter:
        return JdbcSinkWriter(context.settings)
