"""The base of the sinks of all lakes: a prefix of settings, and the tables of one lake."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from barnabas.connect.connectors.base import Settings, SinkConnector, SinkWriter, TaskContext
from barnabas.connect.connectors.lake.settings import LakeSettings
from barnabas.connect.connectors.lake.sink import LakeWriter, Tables
from barnabas.schemas.data.errors import ConfigError


class LakeSink(SinkConnector):
    """Topics to the tables of a lake. A subclass says the settings' prefix and makes the tables."""

    prefix: ClassVar[str]

    def validate(self, settings: Settings) -> Mapping[str, Sequence[str]]:
        """Return what is wrong between settings."""
        try:
            values = self.definition.parse(settings)
        except ConfigError:
            return {}  # told with the setting itself
        try:
            LakeSettings.of(self.prefix, values, settings)
        except ConfigError as error:
            return {f"{self.prefix}.tables": [str(error)]}
        return {}

    def task_settings(self, tasks_max: int) -> Sequence[Mapping[str, str]]:
        """Tasks share the topics' partitions."""
        return [{} for _ in range(tasks_max)]

    def writer(self, context: TaskContext) -> SinkWriter:
        """Return the writer of a task. Raises ConfigError, ConnectError."""
        values = self.definition.parse(context.settings)
        settings = LakeSettings.of(self.prefix, values, context.settings)
        return LakeWriter(settings, self.tables(context, values, settings))

    @abstractmethod
    def tables(
        self, context: TaskContext, values: Mapping[str, Any], settings: LakeSettings
    ) -> Tables:
        """Return the tables, for a task. Raises ConnectError."""
