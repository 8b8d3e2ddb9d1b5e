"""`barnabas.connect.SparkSource`: the rows of a data source, or of any format of Spark.

`format` names a class on PySpark's Python Data Source API (`package.module:Class`), or one of
Spark's own formats (`jdbc`, `parquet`, `rate`; engine on Spark only), `option.*` are its options.
The reader of a class is what `streamReader` returns, or `simpleStreamReader`, or `reader`, which is
read once; so is a format of Spark, unless `stream` is set. Where reading goes on is the reader's
own offset, under the partition `{"format": …}`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, tzinfo
from typing import Any, ClassVar, Final

from pyspark.sql.datasource import DataSource, DataSourceReader

from barnabas.connect.config.definition import (
    ConfigType,
    Definition,
    Importance,
    Setting,
)
from barnabas.connect.config.values import missing
from barnabas.connect.connectors.base import (
    ALL_ENGINES,
    ConnectorContext,
    EngineKind,
    Settings,
    SourceConnector,
    SourceReader,
    TaskContext,
)
from barnabas.connect.connectors.spark.formats import (
    FormatStream,
    FormatTable,
    files_of,
    load_frame,
    options_of,
    stream_starter,
)
from barnabas.connect.connectors.spark.rows import (
    connect_schema,
    struct_of_row,
    struct_type,
)
from barnabas.connect.plugins import load
from barnabas.connect.record import SourceRecord
from barnabas.schemas.data.errors import ConfigError
from barnabas.schemas.data.schema import Schema, Struct

FORMAT: Final = Setting(
    "format",
    ConfigType.STRING,
    importance=Importance.HIGH,
    doc="The data source: package.module:Class, a subclass of pyspark.sql.datasource.DataSource, "
    "or the name of a format of Spark",
)


def data_source(settings: Settings) -> DataSource:
    """Return the data source that settings name. Raises ConfigError."""
    from pyspark.sql.datasource import CaseInsensitiveDict

    kind = _source_class(settings.get("format", ""))
    given: Any = CaseInsensitiveDict(options_of(settings))
    return kind(given)  # as Spark makes it


def _source_class(name: str) -> type[DataSource]:
    kind = load(name)
    if not issubclass(kind, DataSource):
        raise ConfigError(f"{name} is not a subclass of pyspark.sql.datasource.DataSource")
    source_class: type[DataSource] = kind
    return source_class


_OF_FORMATS: Final = ("schema", "stream", "checkpoint.location")


class SparkSource(SourceConnector):
    """Reads a data source."""

    definition: ClassVar[Definition] = Definition((
        FORMAT,
        Setting("topic", ConfigType.STRING, importance=Importance.HIGH,
                doc="The topic to write to"),
        Setting("key.column", ConfigType.STRING, None, doc="The column that is the record's key"),
        Setting("schema", ConfigType.STRING, None,
                doc="Columns and their types, as in `id int, name string`, where a format of Spark "
                    "does not find them itself"),
        Setting("stream", ConfigType.BOOLEAN, False,
                doc="Read one of Spark's formats continuously, as a stream, not once"),
        Setting("checkpoint.location", ConfigType.STRING, None,
                doc="With stream=true: the directory where Spark keeps how far it has read"),
    ))  # fmt: skip

    def conflicts(
        self, values: Mapping[str, Any], settings: Settings
    ) -> Mapping[str, Sequence[str]]:
        """Return what is wrong between settings, and those that would have no effect."""
        if is_class(settings):
            text = "{} is for formats of Spark: a class says it itself"
            given = {name: [text.format(name)] for name in _OF_FORMATS if values[name]}
            return given or class_errors(settings)
        if bool(values["checkpoint.location"]) == values["stream"]:
            return {}
        if values["stream"]:
            return {"checkpoint.location": [str(missing("checkpoint.location"))]}
        return {"checkpoint.location": ["checkpoint.location is for stream=true"]}

    def files(self, settings: Settings) -> Mapping[str, Sequence[str]]:
        """Return the paths that a format of Spark is given."""
        return {} if is_class(settings) else files_of(settings)

    def start(self, context: ConnectorContext, settings: Settings) -> None:
        """Take the settings."""
        values = self.definition.parse(settings)
        for texts in self.conflicts(values, settings).values():
            raise ConfigError(texts[0])
        if is_class(settings):
            data_source(settings)
        self._settings = settings

    def reader(self, context: TaskContext) -> SourceReader:
        """Return the reader."""
        values = self.definition.parse(context.settings)
        partition = {"format": values["format"]}
        stored = None if context.offsets is None else context.offsets.offset(partition)
        start = None if stored is None else dict(stored)
        if is_class(context.settings):
            source = data_source(context.settings)
            kind = struct_type(source.schema())
            own = _reader(source, kind)
        else:
            own, kind = _format_reader(context, values, start)
            start = None
        schema = connect_schema(kind)
        names = [field.name for field in schema.fields]
        key = values["key.column"]
        if key is not None and key not in names:
            raise ConfigError(f"key.column: there is no column {key}; there are {', '.join(names)}")
        key_at = None if key is None else names.index(key)
        # Spark's timestamps without a zone are this machine's, but for the type that has none.
        zone = UTC if "timestamp_ntz" in kind.simpleString() else None
        return RowReader(own, schema, values["topic"], key_at, partition, start, zone)

    def engines(self, settings: Settings) -> frozenset[EngineKind]:
        """Formats of Spark need it, and streams of them its driver."""
        return engines_of(settings, is_stream=settings.get("stream", "").strip().lower() == "true")

    def exactly_once_support(self, settings: Settings) -> bool | None:
        """A format of Spark that was read in part is read from its beginning again."""
        return is_class(settings)


def engines_of(settings: Settings, *, is_stream: bool = False) -> frozenset[EngineKind]:
    """Return which engines can read or write a format."""
    if is_class(settings):
        return ALL_ENGINES
    return frozenset({"spark"}) if is_stream else frozenset({"spark", "spark connect"})


def class_errors(settings: Settings) -> dict[str, list[str]]:
    """Return what is wrong with the class that a configuration names as its format."""
    try:
        if is_class(settings):
            _source_class(settings["format"])
    except ConfigError as error:
        return {"format": [str(error)]}
    return {}


def is_class(settings: Settings) -> bool:
    """Return whether `format` is a class on the Python Data Source API."""
    return ":" in settings.get("format", "")


def _format_reader(
    context: TaskContext, values: Mapping[str, Any], stored: dict[str, Any] | None
) -> tuple[Any, Any]:
    """Return the reader of a format of Spark, and the schema. Raises ConfigError, ConnectError."""
    spark, name = context.spark, values["format"]
    if spark is None:
        raise ConfigError(f"format {name} needs the engine on Spark")
    schema = None if values["schema"] is None else struct_type(values["schema"])
    if not values["stream"]:
        frame = load_frame(spark.read, context.settings, schema)
        return FormatTable(frame, stored), frame.schema
    if type(spark).__module__.startswith("pyspark.sql.connect"):
        raise ConfigError(f"format {name} cannot be read as a stream through Spark Connect")
    frame = load_frame(spark.readStream, context.settings, schema)
    start = stream_starter(frame, f"connect-{context.connector}", values["checkpoint.location"])
    return FormatStream(start, stored), frame.schema


def _reader(source: DataSource, schema: Any) -> Any:
    """Return what has a DataSourceStreamReader's methods. Raises ConfigError."""
    kind = type(source)
    if kind.streamReader is not DataSource.streamReader:
        return source.streamReader(schema)
    if kind.simpleStreamReader is not DataSource.simpleStreamReader:
        return _Simple(source.simpleStreamReader(schema))
    if kind.reader is not DataSource.reader:
        return _Once(source.reader(schema))
    raise ConfigError(f"{kind.__name__} has no reader")


class _Simple:
    """A SimpleDataSourceStreamReader, whose splits are read again on executors."""

    def __init__(self, reader: Any) -> None:
        self._reader = reader
        self.initialOffset = reader.initialOffset
        self._at: Any = None

    def begin(self, start: Any) -> None:
        self._at = start

    def latestOffset(self) -> Any:  # noqa: N802  # Spark's
        _, self._at = self._reader.read(self._at)
        return self._at

    def partitions(self, start: Any, end: Any) -> Sequence[Any]:
        return [(start, end)]

    def read(self, partition: Any) -> Iterator[Any]:
        rows: Iterator[Any] = self._reader.readBetweenOffsets(*partition)
        return rows

    def commit(self, end: Any) -> None:
        self._reader.commit(end)

    def stop(self) -> None:
        pass


class _Once:
    """A DataSourceReader: all there is, once."""

    def __init__(self, reader: Any) -> None:
        self._reader = reader

    def initialOffset(self) -> Any:  # noqa: N802  # Spark's
        return {"isRead": False}

    def latestOffset(self) -> Any:  # noqa: N802  # Spark's
        return {"isRead": True}

    def partitions(self, start: Any, end: Any) -> Sequence[Any]:
        if type(self._reader).partitions is DataSourceReader.partitions:
            return [None]
        return list(self._reader.partitions())

    def read(self, partition: Any) -> Iterator[Any]:
        rows: Iterator[Any] = self._reader.read(partition)
        return rows

    def commit(self, end: Any) -> None:
        pass

    def stop(self) -> None:
        pass


class RowReader(SourceReader):
    """Makes records of the rows."""

    def __init__(
        self,
        reader: Any,
        schema: Schema,
        topic: str,
        key_at: int | None,
        partition: dict[str, Any],
        start: dict[str, Any] | None,
        zone: tzinfo | None,
    ) -> None:
        self._reader = reader
        self._schema = schema
        self._topic = topic
        self._key_at = key_at
        self._partition = partition
        self._start = start
        self._zone = zone

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802  # Spark's
        """Return what is stored, else where the reader begins."""
        start: dict[str, Any] = self._start or self._reader.initialOffset()
        if isinstance(self._reader, _Simple):
            self._reader.begin(start)
        return start

    def latestOffset(self) -> dict[str, Any]:  # noqa: N802  # Spark's
        """Return where the reader is."""
        end: dict[str, Any] = self._reader.latestOffset()
        return end

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[Any]:
        """Return the reader's, with their end."""
        return [(one, end) for one in self._reader.partitions(start, end)]

    def read(self, partition: Any) -> Iterator[SourceRecord]:
        """Yield the rows as records."""
        own, end = partition
        key_schema = None
        if self._key_at is not None:
            key_schema = self._schema.fields[self._key_at].schema
        for row in _rows(self._reader.read(own)):
            value: Struct = struct_of_row(self._schema, row, self._zone)
            yield SourceRecord(
                source_partition=self._partition,
                source_offset=end,
                topic=self._topic,
                key_schema=key_schema,
                key=None if self._key_at is None else value.values[self._key_at],
                value_schema=self._schema,
                value=value,
            )

    def offsets(self, end: dict[str, Any]) -> Sequence[tuple[Any, Any]]:
        """Return the reader's offset: it counts though there may be no row."""
        return [(self._partition, end)]

    def sent(self, end: dict[str, Any]) -> bool:
        """Spark too asks a class for the next micro-batch before it commits one."""
        return getattr(self._reader, "goes_on", True)

    def commit(self, end: dict[str, Any]) -> None:
        """Tell the reader."""
        self._reader.commit(end)

    def stop(self) -> None:
        """Stop the reader."""
        self._reader.stop()


def _rows(rows: Any) -> Iterator[Any]:
    """Readers give rows one by one, or in Arrow's batches."""
    for one in rows:
        if hasattr(one, "to_pylist"):
            yield from one.to_pylist()
        else:
            yield one
