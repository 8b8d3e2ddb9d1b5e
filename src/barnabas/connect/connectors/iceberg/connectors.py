"""The sink of Iceberg, with the settings of Iceberg's own connector."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from barnabas.connect.config.definition import ConfigType, Importance
from barnabas.connect.connectors.base import (
    Settings,
    SinkConnector,
    SinkWriter,
    TaskContext,
)
from barnabas.connect.connectors.iceberg.tables import IcebergTables
from barnabas.connect.connectors.lake.settings import (
    LakeSettings,
    definition,
    with_prefix,
)
from barnabas.connect.connectors.lake.sink import LakeWriter
from barnabas.connect.connectors.storage.settings import group
from barnabas.connect.errors.kinds import ConfigError, ConnectError

PREFIX: Final = "iceberg"
_T = ConfigType
_LOW = Importance.LOW


class IcebergSink(SinkConnector):
    """Topics to tables of Iceberg."""

    definition = definition(
        PREFIX,
        group(
            "Iceberg",
            (
                *("iceberg.catalog", _T.STRING, "iceberg", Importance.MEDIUM),
                "The catalog's name; its settings are iceberg.catalog.*, as Spark's catalogs have.",
            ),
            ("iceberg.control.topic", _T.STRING, "control-iceberg", _LOW, "Taken: not needed."),
            ("iceberg.control.group-id-prefix", _T.STRING, None, _LOW, "Taken: not needed."),
            ("iceberg.control.commit.timeout-ms", _T.LONG, 30_000, _LOW, "Taken: not needed."),
            ("iceberg.control.commit.threads", _T.INT, None, _LOW, "Taken: not needed."),
            ("iceberg.hadoop-conf-dir", _T.STRING, None, _LOW, "Taken; use iceberg.hadoop.*."),
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
        """Return the writer of a task. Raises ConfigError, ConnectError."""
        values = self.definition.parse(context.settings)
        settings = LakeSettings.of(PREFIX, values, context.settings)
        if context.spark is None:
            raise ConnectError(
                "Iceberg's sink needs Spark: start the worker with barnabas.connect.engine=spark"
            )
        return LakeWriter(
            settings,
            IcebergTables(
                context.spark,
                context.connector,
                str(values["iceberg.catalog"]),
                with_prefix("iceberg.catalog.", context.settings),
                with_prefix("iceberg.hadoop.", context.settings),
                settings,
            ),
        )
