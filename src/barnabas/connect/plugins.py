"""The built-in plugins, under the class names that configurations use.

Configurations name Java's classes: each is listed here with the Python class that implements it.
Custom plugins are named `package.module:Class` or `package.module.Class`, if the worker allows them
(`allowed_plugins.py`); a data source of PySpark by its format, through the
connector `barnabas.connect.SparkSource`.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Any, Final, Literal

from barnabas.base.errors import install_hint
from barnabas.connect.allowed_plugins import check_on, check_own, not_found, why_absent
from barnabas.schemas.data.errors import ConfigError

Kind = Literal[
    "source", "sink", "converter", "header_converter", "transformation", "predicate", "class"
]
"""`class` is a class that a connector's setting names, such as a format; it is not listed."""


@dataclass(slots=True, frozen=True)
class Plugin:
    """One plugin: `class_name` is what users write, `target` is `module:Class` below connect."""

    class_name: str
    kind: Kind
    target: str


class MissingPackageError(ConfigError):
    """A plugin is there, and what it imports is not."""


PLUGINS: Final[dict[str, Plugin]] = {}
HEADER_CONVERTERS: Final[dict[str, Plugin]] = {}
"""By the same names as converters of values."""
_ROOT: Final = "barnabas.connect."


def register(kind: Kind, target_module: str, **classes: str) -> None:
    """Add plugins of one module; each keyword is a Python class, its value Java's name."""
    for target, class_name in classes.items():
        plugin = Plugin(class_name, kind, f"{_ROOT}{target_module}:{target}")
        if kind == "header_converter":
            HEADER_CONVERTERS[class_name] = plugin
            PLUGINS.setdefault(class_name, plugin)
        else:
            PLUGINS[class_name] = plugin


def load(class_name: str, kind: Kind | None = None) -> Any:
    """Return the class of a plugin.

    One name may stand for a converter and for a header converter: `kind` then says which is meant.
    Raises ConfigError if none exists, NotAllowedError, MissingPackageError.
    """
    plugin = PLUGINS.get(class_name) or _by_short_name(class_name)
    if plugin is not None and kind == "header_converter":
        plugin = HEADER_CONVERTERS.get(plugin.class_name, plugin)
    module, _, name = (plugin.target if plugin else _python_name(class_name)).partition(":")
    if plugin is None:
        check_own(class_name, module, name)
    else:
        check_on(plugin.class_name)
    try:
        loaded = getattr(import_module(module), name)
        if not isinstance(loaded, type):
            raise ConfigError(f"{class_name} is not a class")
        return loaded
    except ModuleNotFoundError as error:
        missing = error.name or ""
        if f"{module}.".startswith(f"{missing}."):
            raise ConfigError(not_found(class_name)) from error
        text = f"{class_name} needs the Python package {missing}, which is not installed"
        if plugin is not None:
            text += f": {install_hint('connect')}"
        raise MissingPackageError(text) from error
    except (ImportError, AttributeError) as error:
        raise ConfigError(not_found(class_name)) from error
    except SystemExit as error:  # a script; nobody's plugin ends the worker
        raise ConfigError(f"{class_name}: its module ends the process when imported") from error


def is_built_in(class_name: str) -> bool:
    """Return whether a name, in full or short, is a built-in plugin's."""
    return class_name in PLUGINS or _by_short_name(class_name) is not None


def full_name(class_name: str) -> str:
    """Return the name of a plugin in full, where it was shortened. Raises ConfigError if none."""
    plugin = PLUGINS.get(class_name) or _by_short_name(class_name)
    if plugin is None:
        load(class_name)
    return plugin.class_name if plugin else class_name


def absence(class_name: str) -> str:
    """Return why a class is missing, in ConfigDef's words if nothing more is known."""
    return why_absent(class_name) or f"Class {class_name} could not be found."


def _by_short_name(class_name: str) -> Plugin | None:
    """Kafka's worker also takes `FileStreamSource` for the only class of that short name."""
    for plugin in PLUGINS.values():
        short = plugin.class_name.rpartition(".")[2]
        if class_name in (short, short.removesuffix("Connector")):
            return plugin
    return None


def _python_name(class_name: str) -> str:
    if ":" in class_name:
        return class_name
    module, _, name = class_name.rpartition(".")
    return f"{module}:{name}"


# One call per module, in the order of its name: converters, transforms, predicates, connectors.
register(
    "converter",
    "converters.json",
    JsonConverter="org.apache.kafka.connect.json.JsonConverter",
)
register(
    "converter",
    "converters.primitives",
    StringConverter="org.apache.kafka.connect.storage.StringConverter",
    ByteArrayConverter="org.apache.kafka.connect.converters.ByteArrayConverter",
    BooleanConverter="org.apache.kafka.connect.converters.BooleanConverter",
    ShortConverter="org.apache.kafka.connect.converters.ShortConverter",
    IntegerConverter="org.apache.kafka.connect.converters.IntegerConverter",
    LongConverter="org.apache.kafka.connect.converters.LongConverter",
    FloatConverter="org.apache.kafka.connect.converters.FloatConverter",
    DoubleConverter="org.apache.kafka.connect.converters.DoubleConverter",
)
register(
    "converter",
    "converters.registry",
    AvroConverter="io.confluent.connect.avro.AvroConverter",
    JsonSchemaConverter="io.confluent.connect.json.JsonSchemaConverter",
    ProtobufConverter="io.confluent.connect.protobuf.ProtobufConverter",
)
register(
    "header_converter",
    "converters.headers",
    JsonHeaderConverter="org.apache.kafka.connect.json.JsonConverter",
    StringHeaderConverter="org.apache.kafka.connect.storage.StringConverter",
    ByteArrayHeaderConverter="org.apache.kafka.connect.converters.ByteArrayConverter",
    BooleanHeaderConverter="org.apache.kafka.connect.converters.BooleanConverter",
    ShortHeaderConverter="org.apache.kafka.connect.converters.ShortConverter",
    IntegerHeaderConverter="org.apache.kafka.connect.converters.IntegerConverter",
    LongHeaderConverter="org.apache.kafka.connect.converters.LongConverter",
    FloatHeaderConverter="org.apache.kafka.connect.converters.FloatConverter",
    DoubleHeaderConverter="org.apache.kafka.connect.converters.DoubleConverter",
    SimpleHeaderConverter="org.apache.kafka.connect.storage.SimpleHeaderConverter",
)
register(
    "transformation",
    "transforms.cast",
    CastKey="org.apache.kafka.connect.transforms.Cast$Key",
    CastValue="org.apache.kafka.connect.transforms.Cast$Value",
)
register(
    "transformation",
    "transforms.fields",
    ExtractFieldKey="org.apache.kafka.connect.transforms.ExtractField$Key",
    ExtractFieldValue="org.apache.kafka.connect.transforms.ExtractField$Value",
    HoistFieldKey="org.apache.kafka.connect.transforms.HoistField$Key",
    HoistFieldValue="org.apache.kafka.connect.transforms.HoistField$Value",
    ReplaceFieldKey="org.apache.kafka.connect.transforms.ReplaceField$Key",
    ReplaceFieldValue="org.apache.kafka.connect.transforms.ReplaceField$Value",
    ValueToKey="org.apache.kafka.connect.transforms.ValueToKey",
)
register(
    "transformation",
    "transforms.filters",
    Filter="org.apache.kafka.connect.transforms.Filter",
)
register(
    "transformation",
    "transforms.headers",
    HeaderFromKey="org.apache.kafka.connect.transforms.HeaderFrom$Key",
    HeaderFromValue="org.apache.kafka.connect.transforms.HeaderFrom$Value",
    DropHeaders="org.apache.kafka.connect.transforms.DropHeaders",
    InsertHeader="org.apache.kafka.connect.transforms.InsertHeader",
)
register(
    "transformation",
    "transforms.values",
    InsertFieldKey="org.apache.kafka.connect.transforms.InsertField$Key",
    InsertFieldValue="org.apache.kafka.connect.transforms.InsertField$Value",
    MaskFieldKey="org.apache.kafka.connect.transforms.MaskField$Key",
    MaskFieldValue="org.apache.kafka.connect.transforms.MaskField$Value",
)
register(
    "transformation",
    "transforms.shape",
    FlattenKey="org.apache.kafka.connect.transforms.Flatten$Key",
    FlattenValue="org.apache.kafka.connect.transforms.Flatten$Value",
    SetSchemaMetadataKey="org.apache.kafka.connect.transforms.SetSchemaMetadata$Key",
    SetSchemaMetadataValue="org.apache.kafka.connect.transforms.SetSchemaMetadata$Value",
)
register(
    "transformation",
    "transforms.timestamps",
    TimestampConverterKey="org.apache.kafka.connect.transforms.TimestampConverter$Key",
    TimestampConverterValue="org.apache.kafka.connect.transforms.TimestampConverter$Value",
)
register(
    "transformation",
    "transforms.topics",
    RegexRouter="org.apache.kafka.connect.transforms.RegexRouter",
    TimestampRouter="org.apache.kafka.connect.transforms.TimestampRouter",
)
register(
    "transformation",
    "transforms.debezium.unwrap",
    ExtractNewRecordState="io.debezium.transforms.ExtractNewRecordState",
)
register(
    "transformation",
    "transforms.debezium.outbox",
    EventRouter="io.debezium.transforms.outbox.EventRouter",
)
register(
    "transformation",
    "transforms.debezium.additions",
    ExtractChangedRecordState="io.debezium.transforms.ExtractChangedRecordState",
    HeaderToValue="io.debezium.transforms.HeaderToValue",
    ExtractSchemaToNewRecord="io.debezium.transforms.ExtractSchemaToNewRecord",
)
register(
    "transformation",
    "transforms.debezium.timezone",
    TimezoneConverter="io.debezium.transforms.TimezoneConverter",
)
register(
    "transformation",
    "transforms.debezium.logical_table",
    ByLogicalTableRouter="io.debezium.transforms.ByLogicalTableRouter",
)
register(
    "transformation",
    "transforms.debezium.partitions",
    PartitionRouting="io.debezium.transforms.partitions.PartitionRouting",
)
register(
    "transformation",
    "transforms.debezium.vectors",
    VectorToJsonConverter="io.debezium.transforms.VectorToJsonConverter",
)
register(
    "transformation",
    "transforms.debezium.messages",
    SchemaChangeEventFilter="io.debezium.transforms.SchemaChangeEventFilter",
    DecodeLogicalDecodingMessageContent=(
        "io.debezium.connector.postgresql.transforms.DecodeLogicalDecodingMessageContent"
    ),
)
register(
    "predicate",
    "transforms.filters",
    HasHeaderKey="org.apache.kafka.connect.transforms.predicates.HasHeaderKey",
    RecordIsTombstone="org.apache.kafka.connect.transforms.predicates.RecordIsTombstone",
    TopicNameMatches="org.apache.kafka.connect.transforms.predicates.TopicNameMatches",
)
register(
    "source",
    "connectors.file.connectors",
    FileStreamSource="org.apache.kafka.connect.file.FileStreamSourceConnector",
)
register(
    "sink",
    "connectors.file.connectors",
    FileStreamSink="org.apache.kafka.connect.file.FileStreamSinkConnector",
)
register(
    "source",
    "connectors.jdbc.connectors",
    JdbcSource="io.confluent.connect.jdbc.JdbcSourceConnector",
)
register(
    "sink",
    "connectors.jdbc.connectors",
    JdbcSink="io.confluent.connect.jdbc.JdbcSinkConnector",
)
register(
    "source",
    "connectors.postgres.connector",
    PostgresConnector="io.debezium.connector.postgresql.PostgresConnector",
)
register(
    "class",
    "connectors.signal_channels",
    FileChannel="io.debezium.pipeline.signal.channels.FileSignalChannel",
)
register(
    "source",
    "connectors.s3.connectors",
    S3Source="io.confluent.connect.s3.source.S3SourceConnector",
)
register("source", "connectors.files.connectors", FilesSource="barnabas.connect.FilesSource")
register("sink", "connectors.files.connectors", FilesSink="barnabas.connect.FilesSink")
register(
    "sink",
    "connectors.s3.connectors",
    S3Sink="io.confluent.connect.s3.S3SinkConnector",
)
register(
    "source",
    "connectors.datagen.connector",
    Datagen="io.confluent.kafka.connect.datagen.DatagenConnector",
)
register(
    "sink",
    "connectors.iceberg.connectors",
    IcebergSink="org.apache.iceberg.connect.IcebergSinkConnector",
)
register("sink", "connectors.delta.connectors", DeltaSink="barnabas.connect.DeltaSink")
register("source", "connectors.spark.source", SparkSource="barnabas.connect.SparkSource")
register("sink", "connectors.spark.sink", SparkSink="barnabas.connect.SparkSink")
register("source", "connectors.http.source", HttpSource="barnabas.connect.HttpSource")
register("sink", "connectors.http.sink", HttpSink="io.aiven.kafka.connect.http.HttpSinkConnector")
register(
    "source",
    "connectors.mirror.source",
    MirrorSource="org.apache.kafka.connect.mirror.MirrorSourceConnector",
)
register(
    "source",
    "connectors.mirror.checkpoint",
    MirrorCheckpoint="org.apache.kafka.connect.mirror.MirrorCheckpointConnector",
)
register(
    "source",
    "connectors.mirror.heartbeat",
    MirrorHeartbeat="org.apache.kafka.connect.mirror.MirrorHeartbeatConnector",
)
register(
    "class",
    "connectors.mirror.policy",
    DefaultReplicationPolicy="org.apache.kafka.connect.mirror.DefaultReplicationPolicy",
    IdentityReplicationPolicy="org.apache.kafka.connect.mirror.IdentityReplicationPolicy",
)
register(
    "class",
    "connectors.mirror.filters",
    DefaultTopicFilter="org.apache.kafka.connect.mirror.DefaultTopicFilter",
    DefaultGroupFilter="org.apache.kafka.connect.mirror.DefaultGroupFilter",
    DefaultConfigPropertyFilter="org.apache.kafka.connect.mirror.DefaultConfigPropertyFilter",
)
register(
    "source",
    "connectors.mongodb.connectors",
    MongoSource="com.mongodb.kafka.connect.MongoSourceConnector",
)
register(
    "sink",
    "connectors.mongodb.connectors",
    MongoSink="com.mongodb.kafka.connect.MongoSinkConnector",
)
