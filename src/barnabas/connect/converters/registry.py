"""Converters whose schemas are in a schema registry: Avro, JSON Schema and Protobuf.

The formats are in `schemas/converters`; here are their settings, ids and subjects. The cost of a
schema is paid once per topic. `schema.registry.basic.auth.user.info` is the same as
`basic.auth.user.info`, and so with each setting of the client; where both are given, the one with
the prefix wins.

Source: io.confluent.connect.avro.AvroConverter, json.JsonSchemaConverter and
protobuf.ProtobufConverter (Confluent 8).
"""

from __future__ import annotations

import struct
from abc import abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Final
from uuid import UUID

from barnabas.connect.config.definition import (
    ConfigType,
    Definition,
    Importance,
    Setting,
    Unsupported,
    refuse,
)
from barnabas.connect.config.validators import at_least, one_of_any_case
from barnabas.connect.config.values import Password
from barnabas.connect.converters.base import Converter, RawHeaders, SchemaAndValue, flag
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
from barnabas.schemas.registry_access import (
    BASIC,
    BEARER,
    NAME_CHECK,
    PREFIX,
    open_registry,
)
from barnabas.schemas.registry_client import RegistryClient

_STRATEGIES: Final = ("TopicNameStrategy", "RecordNameStrategy", "TopicRecordNameStrategy")

_Key = tuple[str, Schema | None]
"""A topic, and the schema that its values are given with."""
_STRATEGY_PLACE: Final = "io.confluent.kafka.serializers.subject."


_STRATEGY_NAME: Final = "subject.name.strategy"


def _text(name: str, doc: str, default: str | None = None) -> Setting:
    return Setting(name, ConfigType.STRING, default=default, doc=doc)


def _secret(name: str, doc: str) -> Setting:
    return Setting(name, ConfigType.PASSWORD, default=None, doc=doc)


def _count(name: str, default: int, doc: str) -> Setting:
    return Setting(name, ConfigType.INT, default, Importance.LOW, doc, validator=at_least(0))


ACCESS_SETTINGS: Final = (
    Setting("schema.registry.url", ConfigType.LIST, importance=Importance.HIGH,
            doc="The registry's URLs; the next is asked where one does not answer."),
    _text(BASIC, "Source of user and password: URL, USER_INFO or SASL_INHERIT.", "URL"),
    _secret("basic.auth.user.info", "user:password for USER_INFO."),
    _secret("schema.registry.basic.auth.user.info", "Older name of basic.auth.user.info."),
    _secret("sasl.jaas.config", "The login that SASL_INHERIT takes user and password of."),
    _text(BEARER, "Source of tokens: STATIC_TOKEN or OAUTHBEARER."),
    _secret("bearer.auth.token", "The token of STATIC_TOKEN."),
    _text("bearer.auth.issuer.endpoint.url", "Token endpoint of OAUTHBEARER."),
    _text("bearer.auth.client.id", "The client that asks for tokens."),
    _secret("bearer.auth.client.secret", "The client's secret."),
    _text("bearer.auth.scope", "The scope of the tokens."),
    Setting("bearer.auth.cache.expiry.buffer.seconds", ConfigType.SHORT, 300, Importance.LOW,
            "So long before its end a token is not used any more.", validator=at_least(0)),
    _text("bearer.auth.logical.cluster", "The registry behind a proxy that is meant."),
    _text("bearer.auth.identity.pool.id", "The pool of identities that the token is of."),
    _count("max.retries", 3, "Maximum number of retries of a request."),
    _count("retries.wait.ms", 1000, "First pause between retries; it doubles each time."),
    _count("retries.max.wait.ms", 20_000, "The longest wait."),
    _text(f"{PREFIX}ssl.truststore.type", "JKS, PKCS12 or PEM.", "JKS"),
    _text(f"{PREFIX}ssl.truststore.location", "A file with the authorities to trust."),
    _secret(f"{PREFIX}ssl.truststore.password", "The file's password."),
    _secret(f"{PREFIX}ssl.truststore.certificates", "The authorities to trust, in PEM."),
    _text(f"{PREFIX}ssl.keystore.type", "JKS, PKCS12 or PEM.", "JKS"),
    _text(f"{PREFIX}ssl.keystore.location", "A file with the key and certificate to show."),
    _secret(f"{PREFIX}ssl.keystore.password", "The file's password."),
    _secret(f"{PREFIX}ssl.keystore.key", "The key to show, in PEM."),
    _secret(f"{PREFIX}ssl.keystore.certificate.chain", "The certificates to show, in PEM."),
    _secret(f"{PREFIX}ssl.key.password", "The password of the key."),
    _text(f"{PREFIX}{NAME_CHECK}",
          "Check of host names in certificates; empty or none disables it.", "https"),
)  # fmt: skip


def _strategy(part: str) -> Setting:
    return Setting(
        f"{part}.subject.name.strategy",
        ConfigType.STRING,
        default=f"{_STRATEGY_PLACE}TopicNameStrategy",
        doc=f"Naming of {part} subjects: by topic, record, or both.",
    )


_ACCESS: Final = Definition(ACCESS_SETTINGS)
REGISTRY_SETTINGS: Final = (
    *ACCESS_SETTINGS,
    flag("auto.register.schemas", "Register new schemas.", default=True),
    flag("use.latest.version", "Write values with the subject's latest schema."),
    flag("normalize.schemas", "Have the registry compare schemas in their normal form."),
    flag("ignore.default.for.nullables", "Keep nulls of fields that have a default."),
    Setting("use.schema.id", ConfigType.INT, default=-1,
            doc="The schema that all are written with."),
    _strategy("key"),
    _strategy("value"),
    Setting("schemas.cache.config", ConfigType.INT, default=1000, importance=Importance.LOW,
            doc="Number of schemas in the cache."),
)  # fmt: skip


_IDS: Final = "io.confluent.kafka.serializers.schema.id."
UNSUPPORTED: Final = (
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
"""Further settings of Confluent's converters, with the values that have no effect."""


def registry_of(settings: Mapping[str, Any], *, normalizes: bool) -> RegistryClient:
    """Return the registry that a converter's settings name. Raises ConfigError."""
    given = dict(settings)
    for name in _ACCESS.settings:
        if PREFIX + name in settings:
            given[name] = settings[PREFIX + name]
    if given.get(BASIC) and given.get(BEARER):
        raise ConfigError(f"Only one of '{BASIC}' and '{BEARER}' may be specified")
    values = {
        name: value.value if isinstance(value, Password) else value
        for name, value in _ACCESS.parse(given).items()
    }
    return open_registry(values, normalizes=normalizes)


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

    definition: ClassVar[Definition] = Definition((
        *REGISTRY_SETTINGS,
        flag("enhanced.avro.schema.support",
             "Write enums as enums, and name branches of unions in full."),
        flag("connect.meta.data", "Keep names, versions and docs.", default=True),
        flag("scrub.invalid.names", "Replace characters that are invalid in Avro names."),
        flag("allow.optional.map.keys", "Write maps with optional string keys as Avro maps."),
        flag("flatten.singleton.unions", "Read a union of one type as it.", default=True),
    ))  # fmt: skip

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

    definition: ClassVar[Definition] = Definition((
        *REGISTRY_SETTINGS,
        Setting("decimal.format", ConfigType.STRING, default="BASE64", importance=Importance.LOW,
                doc="Format of decimals: BASE64, the bytes of their digits, or NUMERIC.",
                validator=one_of_any_case("BASE64", "NUMERIC")),
        flag("use.optional.for.nonrequired",
             "Read properties that are not required as optional fields."),
        flag("object.additional.properties", "Allow additional properties in written schemas.",
             default=True),
    ))  # fmt: skip

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
