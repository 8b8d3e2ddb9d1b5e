"""S3's connectors, with the settings of Confluent's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from barnabas.connect.connectors.base import (
    Settings,
    SinkConnector,
    SinkWriter,
    SourceConnector,
    SourceReader,
    TaskContext,
)
from barnabas.connect.connectors.s3.settings import (
    CONDITIONAL,
    CUSTOMER_KEY,
    S3_SINK,
    S3_SOURCE,
    gzip_level,
    make_bucket,
)
from barnabas.connect.connectors.storage.claims import rules_of
from barnabas.connect.connectors.storage.settings import SINK, errors_of, parsed, routes_of
from barnabas.connect.connectors.storage.sink import FileSettings, FileSinkWriter
from barnabas.connect.connectors.storage.source import (
    FileSourceReader,
    source_settings,
    split_tasks,
)
from barnabas.schemas.data.errors import ConfigError


class S3Source(SourceConnector):
    """Objects of a bucket to topics."""

    definition = S3_SOURCE

    def validate(self, settings: Settings) -> Mapping[str, Sequence[str]]:
        """Return what is wrong between settings."""
        try:
            values = self.definition.parse(settings)
        except ConfigError:
            return {}  # told with the setting itself
        try:
            routes_of(values)
        except ConfigError as error:
            return {"topic.regex.list": [str(error)]}
        return {}

    def task_settings(self, tasks_max: int) -> Sequence[Mapping[str, str]]:
        """Tasks share topics' partitions or, of other files, the files."""
        return split_tasks(tasks_max)

    def reader(self, context: TaskContext) -> SourceReader:
        """Return the reader of a task. Raises ConfigError, ConnectError."""
        values = parsed(self.definition, context.settings)
        bucket = make_bucket(values)
        bucket.check()
        settings = source_settings(
            values,
            f"s3://{values['s3.bucket.name']}",
            int(values["s3.poll.interval.ms"]),
            context.settings,
        )
        return FileSourceReader(bucket, settings, context.offsets)


class S3Sink(SinkConnector):
    """Topics to objects of a bucket."""

    definition = S3_SINK

    def validate(self, settings: Settings) -> Mapping[str, Sequence[str]]:
        """Return what is wrong between settings."""
        try:
            values = self.definition.parse(settings)
        except ConfigError:
            return {}  # told with the setting itself
        errors = errors_of(values)
        try:
            make_bucket(values)
        except ConfigError as error:
            errors[CUSTOMER_KEY] = [str(error)]
        return errors

    def task_settings(self, tasks_max: int) -> Sequence[Mapping[str, str]]:
        """Tasks share the topics' partitions."""
        return [{} for _ in range(tasks_max)]

    def writer(self, context: TaskContext) -> SinkWriter:
        """Return the writer of a task. Raises ConfigError."""
        values = parsed(self.definition, context.settings)
        claims = rules_of(context.settings, SINK.settings) if values[CONDITIONAL] else None
        settings = FileSettings.of(values, gzip_level(values), claims)
        return FileSinkWriter(make_bucket(values), settings)
