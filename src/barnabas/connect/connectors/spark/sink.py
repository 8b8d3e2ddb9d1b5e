"""`barnabas.connect.SparkSink`: records as rows of a data source, or of any format of Spark.

`format` is a class on the Python Data Source API (`package.module:Class`), which executors write
to, or the name of one of Spark's own formats, which the driver writes micro-batches to (engine on
Spark only; each holds up to `barnabas.connect.batch.records.max` records of each partition).
`option.*` are its options. Records are written at least once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

from barnabas.connect.config.definition import (
    ConfigType,
    Definition,
    Importance,
    Setting,
)
from barnabas.connect.config.values import missing
from barnabas.connect.connectors.base import (
    ConnectorContext,
    EngineKind,
    Settings,
    SinkConnector,
    SinkRange,
    SinkWriter,
    TaskContext,
)
from barnabas.connect.connectors.spark.formats import files_of, options_of
from barnabas.connect.connectors.spark.rows import row_of, struct_type
from barnabas.connect.connectors.spark.source import class_errors, data_source, engines_of, is_class
from barnabas.connect.errors.spark import is_lasting, spark_errors, spark_failure
from barnabas.connect.record import SinkRecord
from barnabas.schemas.data.errors import ConfigError, ConnectError, RetriableError


class SparkSink(SinkConnector):
    """Writes a data source."""

    definition: ClassVar[Definition] = Definition(
        (
            Setting(
                "format",
                ConfigType.STRING,
                importance=Importance.HIGH,
                doc="The data source: package.module:Class, or the name of a format of Spark",
            ),
            Setting(
                "schema",
                ConfigType.STRING,
                None,
                Importance.HIGH,
                "Columns and their types, as in `id int, name string`; a class has its own",
            ),
        )
    )

    def validate(self, settings: Settings) -> Mapping[str, Sequence[str]]:
        """Return what is wrong between settings."""
        if not is_class(settings) and settings.get("format") and not settings.get("schema"):
            return {"schema": [str(missing("schema"))]}
        return class_errors(settings)

    def engines(self, settings: Settings) -> frozenset[EngineKind]:
        """Formats of Spark need it."""
        return engines_of(settings)

    def files(self, settings: Settings) -> Mapping[str, Sequence[str]]:
        """Return the paths that a format of Spark is given."""
        return {} if is_class(settings) else files_of(settings)

    def start(self, context: ConnectorContext, settings: Settings) -> None:
        """Take the settings."""
        self.definition.parse(settings)
        self._settings = settings

    def writer(self, context: TaskContext) -> SinkWriter:
        """Return the writer."""
        values = self.definition.parse(context.settings)
        if is_class(context.settings):
            source = data_source(context.settings)
            kind = struct_type(values["schema"] or source.schema())
            return ClassWriter(source.writer(kind, False), kind.names)
        if context.spark is None:
            raise ConfigError(f"format {values['format']} needs the engine on Spark")
        if not values["schema"]:
            raise missing("schema")
        return FormatWriter(context.spark, context.settings, struct_type(values["schema"]))


class ClassWriter(SinkWriter):
    """Hands rows to a DataSourceWriter, range by range."""

    def __init__(self, writer: Any, names: Sequence[str]) -> None:
        self._writer = writer
        self._names = list(names)

    def write(self, records: Iterator[SinkRecord], where: SinkRange) -> Any:
        """Write a range."""
        return self._writer.write(row_of(record.value, self._names) for record in records)

    def commit(self, ranges: Sequence[SinkRange], messages: Sequence[Any]) -> None:
        """Commit a micro-batch."""
        self._writer.commit(list(messages))

    def abort(self, ranges: Sequence[SinkRange], messages: Sequence[Any]) -> None:
        """Take a micro-batch back."""
        self._writer.abort(list(messages))


class FormatWriter(SinkWriter):
    """Appends micro-batches as DataFrames."""

    def __init__(self, spark: Any, settings: Settings, schema: Any) -> None:
        self._spark = spark
        self._settings = dict(settings)
        self._schema = schema

    def __getstate__(self) -> dict[str, Any]:
        """Leave the session behind."""
        return {**self.__dict__, "_spark": None}

    def write(self, records: Iterator[SinkRecord], where: SinkRange) -> Any:
        """Return the rows of a range."""
        names = self._schema.names
        return [tuple(row_of(record.value, names)) for record in records]

    def commit(self, ranges: Sequence[SinkRange], messages: Sequence[Any]) -> None:
        """Append the rows."""
        rows = [row for message in messages for row in message]
        if not rows:
            return
        name = self._settings["format"]
        try:
            frame = self._spark.createDataFrame(rows, self._schema)
            writer = frame.write.format(name).options(**options_of(self._settings))
            writer.mode("append").save()
        except spark_errors() as error:
            text = spark_failure(f"cannot write the format {name}", error)
            kind = ConnectError if is_lasting(error) else RetriableError
            raise kind(text) from error
