"""S3's connectors, with the settings of Confluent's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from barnabas.pipeline.connect.connectors.base import (
    Settings,
    SinkConnector,
    SinkWriter,
    TaskContext,
)
from barnabas.pipeline.connect.connectors.s3.settings import S3_SINK, gzip_level, make_bucket
from barnabas.pipeline.connect.connectors.storage.settings import errors_of
from barnabas.pipeline.connect.connectors.storage.sink import FileSettings, FileSinkWriter
from barnabas.pipeline.connect.errors.kinds import ConfigError


class S3Sink(SinkConnector):
    """Topics to objects of a bucket."""

    definition = S3_SINK

    def validate(self, settings: Settings) -> Mapping[str, Sequence[str]]:
        """Return what is wrong between settings."""
        try:
            values = self.definition.parse(settings)
        except ConfigError:
            return {}  # told with the setting itself
        return errors_of(values)

    def task_settings(self, tasks_max: int) -> Sequence[Mapping[str, str]]:
        """Tasks share the topics' partitions."""
        return [{} for _ in range(tasks_max)]

    def writer(self, context: TaskContext) -> SinkWriter:
        """Return the writer of a task. Raises ConfigError."""
        values = self.definition.parse(context.settings)
        return FileSinkWriter(make_bucket(values), FileSettings.of(values, gzip_level(values)))
