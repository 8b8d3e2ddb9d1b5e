"""Converters whose schemas are in a schema registry: Avro, JSON Schema and Protobuf.

The formats are in `schemas/converters`; here are their settings, ids and subjects. The cost of a
schema is paid once per topic.

Source: io.confluent.connect.avro.AvroConverter, json.JsonSchemaConverter and
protobuf.ProtobufConverter (Confluent 8).
"""

from __future__ import annotations

import struct
from abc import abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Final
from uuid import UUID

from barnabas.connect.config.definition import ConfigType, Definition, Importance, Setting, refuse
from barnabas.connect.config.validators import one_of_any_case
from barnabas.connect.converters.base import Converter, RawHeaders, SchemaAndValue, flag
from barnabas.connect.converters.registry_settings import (
    REGISTRY_SETTINGS,
    UNSUPPORTED,
    registry_of,
)
from barnabas.schemas import wire_format
from barnabas.schemas.converters.avro import AvroFormat
from barnabas.schemas.converters.avro_schemas import AvroOptions
from barnabas.schemas.converters.base import Reading, SchemaFormat, Write
from barnabas.schemas.converters.json_schema import JsonSchemaFormat, JsonSchemaOptions
from barnabas.schemas.converters.protobuf import ProtobufFormat
from barnabas.schemas.converters.protobuf_writing import ProtobufOptions
from barnabas.schemas.data.cache import Cache
from barnabas.schemas.data.errors import ConfigError, DataError, RetriableError
from barnabas.schemas.data.schema import Schema
from barnabas.schemas.errors import FormatError

_STRATEGIES: Final = ("TopicNameStrategy", "RecordNameStrategy", "TopicRecordNameStrategy")

_Key = tuple[str, Schema | None]
"""A topic, and the schema that its values are given with."""


class RegistryConverter(Converter):
    """A converter of one schema type."""

    definition: ClassVar[Definition] = Definition(REGISTRY_SETTINGS)

    def configure(self, settings: Mapping[str, Any], *, is_key: bool) -> None:
        """Take settings, without the prefix. Raises ConfigError."""
        refuse(settings, UNSUPPORTED, "converter")
        parsed = self.definition.parse(settings)
        self._is_key = is_key
        by = str(settings.get(f"{'key' if is_key else 'value'}.schema.id.deserializer", ""))
        self._reads_headers = not by.endswith("PrefixSchemaIdDeserializer")
        self._ignores_defaults: bool = parsed["ignore.default.for.nullables"]
        self._strategy = _strategy_of(parsed[f"{'key' if is_key else 'value'}.{_STRATEGY_NAME}"])
        self._registers: bool = parsed["auto.register.schemas"]
        self._uses_latest: bool = parsed["use.latest.version"]
        self._fixed_id: int = parsed["use.schema.id"]
        self._store = registry_of(settings, normalizes=parsed["normalize.schemas"])
        size = max(parsed["schemas.cache.config"], 1)
        self._writers: Cache[tuple[str, Schema | None], tuple[bytes, Write]] = Cache(
            self._writer, size
        )
        self._readers: Cache[int | UUID, Reading] = Cache(self._stored_reader, size)
        self._format = self._format_of(parsed)

    @abstractmethod
    def _format_of(self, parsed: Mapping[str, Any]) -> SchemaFormat:
        """The format with the settings."""

    def from_connect(self, topic: str, schema: Schema | None, value: Any) -> bytes | None:
        """Return the bytes of a value. Raises DataError, RetriableError."""
        if schema is None:
            if value is None:
                return None
            if not self._format.takes_any:
                raise DataError(f"{self._format.title} data of topic {topic} needs a schema")
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
        try:
            named, data = wire_format.taken_apart(
                data, headers if self._reads_headers else (), is_key=self._is_key
            )
            reading = self._readers(named)
            if reading.schema_of is not None:
                return reading.schema_of(data), reading.read(data)
            return reading.schema, reading.read(data)
        except FormatError as error:
            raise self._failed("deserialize", topic, error) from error
        except (ValueError, EOFError, IndexError, TypeError, struct.error) as error:
            raise DataError(
                f"Failed to deserialize data for topic {topic} to {self._format.title}: {error}"
            ) from error

    def _has_default(self, schema: Schema) -> bool:
        """Return whether a default is written in the place of null."""
        return schema.default is not None and not self._ignores_defaults

    def _failed(self, what: str, topic: str, error: FormatError) -> DataError | RetriableError:
        text = f"Failed to {what} {self._format.title} data from topic {topic}: {error}"
        return RetriableError(text) if error.retriable else DataError(text)

    def _writer(self, key: _Key) -> tuple[bytes, Write]:
        topic, schema = key
        if self._fixed_id >= 0:
            stored = self._store.by_id(self._fixed_id)
            return wire_format.prefix_of(stored.id), self._format.writing(schema, stored).write
        writing = self._format.writing(schema, None)
        subject = self._strategy(topic, "key" if self._is_key else "value", writing.record_name)
        if self._registers:
            schema_id = self._store.register(subject, self._format.schema_type, writing.text)
            return wire_format.prefix_of(schema_id), writing.write
        if self._uses_latest:
            latest = self._store.latest(subject)
            if latest is None:
                raise FormatError(f"Subject {subject} is not in the schema registry")
            return wire_format.prefix_of(latest.id), self._format.writing(schema, latest).write
        known = self._store.find(subject, self._format.schema_type, writing.text)
        if known is None:
            raise FormatError(f"The schema is not registered under {subject}")
        return wire_format.prefix_of(known), writing.write

    def _stored_reader(self, named: int | UUID) -> Reading:
        stored = self._store.by_guid(named) if isinstance(named, UUID) else self._store.by_id(named)
        wanted = self._format.schema_type
        if stored.type != wanted:
            raise DataError(f"Schema {named} is of type {stored.type}, not {wanted}")
        return self._format.reading(stored)


_STRATEGY_NAME: Final = "subject.name.strategy"


def _strategy_of(name: str) -> Callable[[str, str, str | None], str]:
    short = name.rpartition(".")[2]
    if short not in _STRATEGIES:
        raise ConfigError(f"Invalid value {name} for a subject name strategy: one of {_STRATEGIES}")

    def subject(topic: str, part: str, record: str | None) -> str:
        if short == "TopicNameStrategy":
            return f"{topic}-{part}"
        if record is None:
            raise DataError(f"The {part} of topic {topic} is not a record, so it has no name")
        return record if short == "RecordNameStrategy" else f"{topic}-{record}"

    return subject


class AvroConverter(RegistryConverter):
    """Avro's binary data."""

    definition: ClassVar[Definition] = Definition(
        (
            *REGISTRY_SETTINGS,
            flag(
                "enhanced.avro.schema.support",
                "Write enums as enums, and name branches of unions in full.",
            ),
            flag("connect.meta.data", "Keep names, versions and docs.", default=True),
            flag(
                "scrub.invalid.names",
                "Replace characters that are invalid in Avro names.",
            ),
            flag(
                "allow.optional.map.keys",
                "Write maps with optional string keys as Avro maps.",
            ),
            flag("flatten.singleton.unions", "Read a union of one type as it.", default=True),
        )
    )

    def _format_of(self, parsed: Mapping[str, Any]) -> AvroFormat:
        return AvroFormat(
            AvroOptions(
                is_enhanced=parsed["enhanced.avro.schema.support"],
                scrubs_names=parsed["scrub.invalid.names"],
                has_meta_data=parsed["connect.meta.data"],
                allows_optional_map_keys=parsed["allow.optional.map.keys"],
                flattens_singletons=parsed["flatten.singleton.unions"],
                ignores_defaults=self._ignores_defaults,
            )
        )


class JsonSchemaConverter(RegistryConverter):
    """JSON whose schemas are JSON Schema."""

    definition: ClassVar[Definition] = Definition(
        (
            *REGISTRY_SETTINGS,
            Setting(
                "decimal.format",
                ConfigType.STRING,
                default="BASE64",
                importance=Importance.LOW,
                doc="Format of decimals: BASE64, the bytes of their digits, or NUMERIC.",
                validator=one_of_any_case("BASE64", "NUMERIC"),
            ),
            flag(
                "use.optional.for.nonrequired",
                "Read properties that are not required as optional fields.",
            ),
            flag(
                "object.additional.properties",
                "Allow additional properties in written schemas.",
                default=True,
            ),
        )
    )

    def _format_of(self, parsed: Mapping[str, Any]) -> JsonSchemaFormat:
        return JsonSchemaFormat(
            JsonSchemaOptions(
                is_decimal_numeric=parsed["decimal.format"].upper() == "NUMERIC",
                makes_optional=parsed["use.optional.for.nonrequired"],
                allows_more=parsed["object.additional.properties"],
                ignores_defaults=self._ignores_defaults,
            )
        )


class ProtobufConverter(RegistryConverter):
    """Protobuf's messages.

    Left out: plain values written without a struct, Confluent's variants, and the sum types that
    all formats have in common.
    """

    definition: ClassVar[Definition] = Definition(
        (
            *REGISTRY_SETTINGS,
            flag("enhanced.protobuf.schema.support", "Qualify names with their packages."),
            flag("optional.for.nullables", "Write optional fields as optional in Protobuf."),
            flag("wrapper.for.nullables", "Write optional numbers and strings as wrappers."),
            flag("flatten.unions", "Put a oneof's fields beside the others."),
            flag("generate.index.for.unions", "Add an index to the name of a oneof.", default=True),
        )
    )

    def _format_of(self, parsed: Mapping[str, Any]) -> ProtobufFormat:
        return ProtobufFormat(
            ProtobufOptions(
                is_enhanced=parsed["enhanced.protobuf.schema.support"],
                has_optional=parsed["optional.for.nullables"],
                has_wrappers=parsed["wrapper.for.nullables"],
                flattens_unions=parsed["flatten.unions"],
                indexes_unions=parsed["generate.index.for.unions"],
                ignores_defaults=self._ignores_defaults,
            )
        )
