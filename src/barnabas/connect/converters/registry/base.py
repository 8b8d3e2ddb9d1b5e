"""What converters with a schema registry have in common: ids, subjects, and the registry itself.

Bytes begin with 0 and the schema's id in four bytes. What a schema costs is paid once per topic.
"""

from __future__ import annotations

import struct
from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from barnabas.connect.config.definition import (
    ConfigType,
    Definition,
    Importance,
    Setting,
)
from barnabas.connect.config.unsupported import Unsupported, refuse
from barnabas.connect.converters.base import Converter, RawHeaders, SchemaAndValue
from barnabas.connect.converters.registry.access import ACCESS_SETTINGS, open_registry
from barnabas.connect.converters.settings import flag
from barnabas.schemas.data.cache import Cache
from barnabas.schemas.data.errors import ConfigError, DataError, RetriableError
from barnabas.schemas.data.schema import Schema
from barnabas.sql.formats.format import FormatError, StoredSchema

_PREFIX: Final = struct.Struct(">bI")
_STRATEGIES: Final = ("TopicNameStrategy", "RecordNameStrategy", "TopicRecordNameStrategy")
_STRATEGY_PLACE: Final = "io.confluent.kafka.serializers.subject."

_Key = tuple[str, Schema | None]
"""A topic, and the schema that its values are given with."""
Write = Callable[[Any], bytes]
Read = Callable[[bytes], Any]


@dataclass(slots=True)
class Writing:
    """How values of one Connect schema are written: the text to register, and the function."""

    text: str
    record_name: str | None
    write: Write


@dataclass(slots=True)
class Reading:
    """What bytes of one registered schema stand for; None is the schema of data without one."""

    schema: Schema | None
    read: Read
    schema_of: Callable[[bytes], Schema] | None = None
    """Says the schema of data that may have another than `schema`."""


def _strategy(part: str) -> Setting:
    return Setting(
        f"{part}.subject.name.strategy",
        ConfigType.STRING,
        default=f"{_STRATEGY_PLACE}TopicNameStrategy",
        doc=f"How subjects of {part}s are named: by topic, record, or both.",
    )


REGISTRY_SETTINGS: Final = (
    *ACCESS_SETTINGS,
    flag("auto.register.schemas", "Whether new schemas are registered.", default=True),
    flag("use.latest.version", "Whether values are written with the subject's latest schema."),
    flag("normalize.schemas", "Whether the registry compares schemas in their normal form."),
    flag(
        "ignore.default.for.nullables",
        "Whether nulls stay where there is a default to replace them.",
    ),
    Setting(
        "use.schema.id", ConfigType.INT, default=-1, doc="The schema that all are written with."
    ),
    _strategy("key"),
    _strategy("value"),
    Setting(
        "schemas.cache.config",
        ConfigType.INT,
        default=1000,
        importance=Importance.LOW,
        doc="How many schemas are remembered.",
    ),
)


_IDS: Final = "io.confluent.kafka.serializers.schema.id."
_UNSUPPORTED: Final = (
    *(
        Unsupported(name.replace(".", r"\."), ("", "false"))
        for name in (
            *("generalized.sum.type.support", "generate.struct.for.nulls", "int.for.enums"),
            *("preserve.additional.properties", "propagate.schema.tags", "schema.reflection"),
        )
    ),
    Unsupported(r"wrapper\.for\.raw\.primitives|optional\.for\.proto2", ("", "true")),
    Unsupported(r"rule\.(actions|executors).*", instead="rules of schemas are not applied"),
    Unsupported(
        r"use\.latest\.with\.metadata|use\.schema\.guid|proxy\.host|context\.name\.strategy"
    ),
    Unsupported(r"(key|value)\.schema\.id\.serializer", ("", f"{_IDS}PrefixSchemaIdSerializer")),
    Unsupported(
        r"(key|value)\.schema\.id\.deserializer",
        ("", f"{_IDS}PrefixSchemaIdDeserializer", f"{_IDS}DualSchemaIdDeserializer"),
    ),
)
"""What Confluent's converters have besides, and the values that ask for nothing."""


class RegistryConverter(Converter):
    """A converter of one schema type."""

    definition: ClassVar[Definition] = Definition(REGISTRY_SETTINGS)
    schema_type: ClassVar[str]
    title: ClassVar[str]
    takes_any: ClassVar[bool] = False
    """Whether it writes data without a schema."""

    def configure(self, settings: Mapping[str, Any], *, is_key: bool) -> None:
        """Take settings, without the prefix. Raises ConfigError."""
        refuse(settings, _UNSUPPORTED, "converter")
        parsed = self.definition.parse(settings)
        self._is_key = is_key
        self._ignores_defaults: bool = parsed["ignore.default.for.nullables"]
        self._strategy = _strategy_of(parsed[f"{'key' if is_key else 'value'}.{_STRATEGY_NAME}"])
        self._registers: bool = parsed["auto.register.schemas"]
        self._uses_latest: bool = parsed["use.latest.version"]
        self._fixed_id: int = parsed["use.schema.id"]
        self._store = open_registry(settings, normalizes=parsed["normalize.schemas"])
        size = max(parsed["schemas.cache.config"], 1)
        self._writers: Cache[tuple[str, Schema | None], tuple[bytes, Write]] = Cache(
            self._writer, size
        )
        self._readers: Cache[int, Reading] = Cache(self._stored_reader, size)
        self._configure(parsed)

    def _configure(self, parsed: Mapping[str, Any]) -> None:
        """Take settings of this type."""

    @abstractmethod
    def _writing(self, schema: Schema | None, target: StoredSchema | None) -> Writing:
        """How values of a schema are written, as `target` where one is given. Raises DataError.

        The schema is None only where `takes_any`.
        """

    @abstractmethod
    def _reading(self, stored: StoredSchema) -> Reading:
        """What bytes of a registered schema stand for. Raises DataError."""

    def from_connect(self, topic: str, schema: Schema | None, value: Any) -> bytes | None:
        """Return the bytes of a value. Raises DataError, RetriableError."""
        if schema is None:
            if value is None:
                return None
            if not self.takes_any:
                raise DataError(f"{self.title} data of topic {topic} needs a schema")
        elif value is None and schema.optional and not self._has_default(schema):
            return None
        try:
            prefix, write = self._writers((topic, schema))
            return prefix + write(value)
        except FormatError as error:
            raise self._failed("serialize", topic, error) from error

    def to_connect(
        self, topic: str, data: bytes | None, headers: RawHeaders = ()
    ) -> SchemaAndValue:
        """Return what bytes stand for. Raises DataError, RetriableError."""
        if data is None:
            return None, None
        if len(data) < _PREFIX.size or data[0] != 0:
            raise DataError(
                f"Failed to deserialize data for topic {topic} to {self.title}: Unknown magic byte!"
            )
        try:
            reading = self._readers(_PREFIX.unpack_from(data)[1])
            data = data[_PREFIX.size :]
            if reading.schema_of is not None:
                return reading.schema_of(data), reading.read(data)
            return reading.schema, reading.read(data)
        except FormatError as error:
            raise self._failed("deserialize", topic, error) from error
        except (ValueError, EOFError, IndexError, TypeError, struct.error) as error:
            raise DataError(
                f"Failed to deserialize data for topic {topic} to {self.title}: {error}"
            ) from error

    def _has_default(self, schema: Schema) -> bool:
        """Whether a default is written in the place of null."""
        return schema.default is not None and not self._ignores_defaults

    def _failed(self, what: str, topic: str, error: FormatError) -> DataError | RetriableError:
        text = f"Failed to {what} {self.title} data from topic {topic}: {error}"
        return RetriableError(text) if error.retriable else DataError(text)

    def _writer(self, key: _Key) -> tuple[bytes, Write]:
        topic, schema = key
        if self._fixed_id >= 0:
            stored = self._store.by_id(self._fixed_id)
            return _PREFIX.pack(0, stored.id), self._writing(schema, stored).write
        writing = self._writing(schema, None)
        subject = self._strategy(topic, "key" if self._is_key else "value", writing.record_name)
        if self._registers:
            found = self._store.register(subject, self.schema_type, writing.text)
            return _PREFIX.pack(0, found), writing.write
        if self._uses_latest:
            latest = self._store.latest(subject)
            if latest is None:
                raise FormatError(f"Subject {subject} is not in the schema registry")
            return _PREFIX.pack(0, latest.id), self._writing(schema, latest).write
        known = self._store.find(subject, self.schema_type, writing.text)
        if known is None:
            raise FormatError(f"The schema is not registered under {subject}")
        return _PREFIX.pack(0, known), writing.write

    def _stored_reader(self, schema_id: int) -> Reading:
        stored = self._store.by_id(schema_id)
        if stored.type != self.schema_type:
            raise DataError(f"Schema {schema_id} is of type {stored.type}, not {self.schema_type}")
        return self._reading(stored)


_STRATEGY_NAME: Final = "subject.name.strategy"


def _strategy_of(name: str) -> Callable[[str, str, str | None], str]:
    short = name.rpartition(".")[2]
    if short not in _STRATEGIES:
        raise ConfigError(f"Invalid value {name} for a subject name strategy: one of {_STRATEGIES}")

    def subject(topic: str, part: str, record: str | None) -> str:
        if short == "TopicNameStrategy":
            return f"{topic}-{part}"
        if record is None:
            raise DataError(f"The {part} of topic {topic} is no record, and so has no name")
        return record if short == "RecordNameStrategy" else f"{topic}-{record}"

    return subject
