"""The sink of Delta Lake."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from barnabas.connect.allowed_paths import local_paths
from barnabas.connect.config.definition import NO_DEFAULT, ConfigType, Importance
from barnabas.connect.connectors.base import Settings, TaskContext
from barnabas.connect.connectors.delta.tables import DeltaTables
from barnabas.connect.connectors.lake.settings import (
    LakeSettings,
    definition,
    with_prefix,
)
from barnabas.connect.connectors.lake.sink import LakeSink, Tables
from barnabas.connect.connectors.storage.settings import group


class DeltaSink(LakeSink):
    """Topics to tables of Delta Lake."""

    prefix = "delta"
    definition = definition(
        prefix,
        group(
            "Delta",
            (
                *("delta.location", ConfigType.STRING, NO_DEFAULT, Importance.HIGH),
                "The directory or bucket above the tables: /data/lake, s3://bucket/lake.",
            ),
        ),
    )

    def files(self, settings: Settings) -> Mapping[str, Sequence[str]]:
        """Return the location, where it is a directory."""
        return {"delta.location": local_paths(settings.get("delta.location", ""))}

    def tables(
        self, context: TaskContext, values: Mapping[str, Any], settings: LakeSettings
    ) -> Tables:
        """Return the tables below the location."""
        options = with_prefix("delta.storage.", context.settings)
        return DeltaTables(context.connector, values["delta.location"], options, settings)
