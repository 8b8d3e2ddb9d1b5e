"""The sink of Delta Lake."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from barnabas.connect.config.definition import NO_DEFAULT, ConfigType, Importance
from barnabas.connect.connectors.base import (
    Settings,
    SinkConnector,
    SinkWriter,
    TaskContext,
)
from barnabas.connect.connectors.delta.tables import DeltaTables
from barnabas.connect.connectors.lake.settings import (
    LakeSettings,
    definition,
    with_prefix,
)
from barnabas.connect.connectors.lake.sink import LakeWriter
from barnabas.connect.connectors.storage.settings import group
from barnabas.connect.errors.kinds import ConfigError

PREFIX: Final = "delta"


class DeltaSink(SinkConnector):
    """Topics to tables of Delta Lake."""

    definition = definition(
        PREFIX,
        group(
            "Delta",
            (
                *("delta.location", ConfigType.STRING, NO_DEFAULT, Importance.HIGH),
                "The directory or bucket above the tables: /data/lake, s3://bucket/lake.",
            ),
        ),
    )

    def validate(self, settings: Settings) -> Mapping[str, Sequence[str]]:
        """Return what is wrong between settings."""
        try:
            values = self.definition.parse(settings)
        except ConfigError:
            return {}  # told with the setting itself
        try:
            LakeSettings.of(PREFIX, values, settings)
        except ConfigError as error:
            return {f"{PREFIX}.tables": [str(error)]}
        return {}

    def task_settings(self, tasks_max: int) -> Sequence[Mapping[str, str]]:
        """Tasks share the topics' partitions."""
        return [{} for _ in range(tasks_max)]

    def writer(self, context: TaskContext) -> SinkWriter:
        """Return the writer of a task. Raises ConfigError."""
        values = self.definition.parse(context.settings)
        settings = LakeSettings.of(PREFIX, values, context.settings)
        options = with_prefix("delta.storage.", context.settings)
        tables = DeltaTables(context.connector, values["delta.location"], options, settings)
        return LakeWriter(settings, tables)
