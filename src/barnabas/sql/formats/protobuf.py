"""The formats PROTOBUF, with schemas in a registry, and PROTOBUF_NOSR, with the columns' own.

A row is a message, `ConnectDefault1` unless the statement names it; messages of nested structs are
numbered on in the order in which they are met. A struct's or map's message is declared where it is
used. Without more a null field reads back as its type's default; with `nullableRepresentation`
fields are `optional`, or messages of google.protobuf's wrappers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from google.protobuf.descriptor import Descriptor
from google.protobuf.message import DecodeError

from barnabas.schemas.converters.protobuf_reading import ProtobufReading
from barnabas.schemas.converters.protobuf_writing import (
    MESSAGES,
    SCALARS,
    WRAPPER,
    ProtobufOptions,
    ProtobufText,
)
from barnabas.schemas.data.errors import DataError
from barnabas.schemas.data.schema import Schema, Type
from barnabas.schemas.errors import FormatError
from barnabas.schemas.protobuf.messages import MessageSchema, indexes_of, load, message_class
from barnabas.schemas.registry_client import SchemaStore, StoredSchema
from barnabas.schemas.schema import SchemaFault
from barnabas.schemas.wire_format import decode_indexes, encode_indexes
from barnabas.sql.errors import AnalysisError
from barnabas.sql.formats.connect_data import Writing, row_reader, row_writer
from barnabas.sql.formats.connect_schema import finite, of_columns
from barnabas.sql.formats.format import (
    Deserializer,
    Format,
    RecordPart,
    SchemaTranslator,
    Serializer,
    check_count,
    check_properties,
    has_other_than_string_keys,
    topic_of,
)
from barnabas.sql.formats.protobuf_data import from_message, to_message
from barnabas.sql.formats.registry_wire import (
    FULL_SCHEMA_NAME,
    READ_ERRORS,
    SCHEMA_ID,
    SUBJECT_NAME,
    RowReader,
    RowWriter,
    asked_id,
    of_kind,
    store_of,
    wire_deserializer,
    wire_serializer,
)
from barnabas.sql.runtime.records import Row
from barnabas.sql.schema import Column

UNWRAP_PRIMITIVES = "unwrapPrimitives"
NULLABLES = "nullableRepresentation"
WRAPPER_TEXT = 'syntax = "proto3"; import "google/protobuf/wrappers.proto";'
"""A file with nothing but the import of the wrappers."""


class ProtobufTranslator(SchemaTranslator):
    """Columns and Protobuf schemas."""

    schema_type = "PROTOBUF"

    def text(self, columns: Sequence[Column], properties: Mapping[str, str], *, wraps: bool) -> str:
        connect = of_columns(columns, wraps=True)
        return to_text(connect, Nullables.of(properties), _asked_name(properties))

    def connect_schema(self, schema: StoredSchema, properties: Mapping[str, str]) -> Schema:
        try:
            loaded = load(schema.text, dict(schema.references))
            message = loaded.message(_asked_name(properties))
        except SchemaFault as fault:
            raise AnalysisError(str(fault)) from fault
        return schema_of(loaded, message, Nullables.of(properties))


def _asked_name(properties: Mapping[str, str]) -> str | None:
    """The message's full name that a statement asks for; default names do not count."""
    name = properties.get(FULL_SCHEMA_NAME, "").strip()
    return None if not name or name.startswith("ConnectDefault") else name


class ProtobufFormat(Format):
    """Protobuf with schemas in a registry."""

    name = "PROTOBUF"
    can_wrap = True
    can_unwrap = False
    properties = frozenset(
        {FULL_SCHEMA_NAME, SCHEMA_ID, UNWRAP_PRIMITIVES, NULLABLES, SUBJECT_NAME}
    )
    inherited_properties = frozenset({FULL_SCHEMA_NAME})
    schemas = ProtobufTranslator()

    def check(self, columns: Sequence[Column], properties: Mapping[str, str]) -> None:
        check_properties(self.name, properties, self.properties)
        check_protobuf(columns, properties)

    def serializer(self, part: RecordPart) -> Serializer:
        store = store_of(part.schemas, self.name)
        columns, properties = part.columns, part.properties
        nullables = Nullables.of(properties)

        def prepare() -> tuple[int, RowWriter]:
            stored = _asked_schema(store, properties)
            if stored is None:
                text = ProtobufTranslator().text(columns, properties, wraps=True)
                schema_id = store.register(part.subject, "PROTOBUF", text)
                loaded = load(text, {})
                message = loaded.message(None)
            else:
                schema_id = stored.id
                loaded = load(stored.text, dict(stored.references))
                message = loaded.message(_asked_name(properties))
            connect = schema_of(loaded, message, nullables)
            encode = message_writer(columns, connect, message, wraps=True)
            prefix = encode_indexes(indexes_of(message))
            return schema_id, lambda row: prefix + encode(row)

        return wire_serializer(part._replace(wraps=True), prepare)

    def deserializer(self, part: RecordPart) -> Deserializer:
        columns, nullables = part.columns, Nullables.of(part.properties)

        def prepare(stored: StoredSchema) -> RowReader:
            loaded = load(stored.text, dict(stored.references))
            readers: dict[bytes, RowReader] = {}

            def read(data: bytes) -> Row | None:
                indexes, place = decode_indexes(data)
                reader = readers.get(data[:place])
                if reader is None:
                    reader = message_reader(columns, loaded, loaded.message_at(indexes), nullables)
                    readers[data[:place]] = reader
                return reader(data[place:])

            return read

        store = store_of(part.schemas, self.name)
        return wire_deserializer(part.subject, store, "PROTOBUF", prepare)


class ProtobufNoSrFormat(Format):
    """Protobuf whose readers and writers agree on the columns by other means."""

    name = "PROTOBUF_NOSR"
    can_wrap = True
    can_unwrap = True
    properties = frozenset({UNWRAP_PRIMITIVES, NULLABLES})
    inherited_properties = properties

    def check(self, columns: Sequence[Column], properties: Mapping[str, str]) -> None:
        check_properties(self.name, properties, self.properties)
        check_protobuf(columns, properties)

    def serializer(self, part: RecordPart) -> Serializer:
        loaded, message, nullables = own_schema(part)
        connect = schema_of(loaded, message, nullables)
        encode = message_writer(part.columns, connect, message, wraps=part.wraps)
        subject, count, bare = part.subject, len(part.columns), part.is_bare

        def serialize(row: Row | None) -> bytes | None:
            if row is None:
                return None
            check_count(count, row, subject)
            if bare and row[0] is None:
                return None
            try:
                return encode(row)
            except (FormatError, *READ_ERRORS) as error:
                raise FormatError(
                    f"Error serializing message to topic: {topic_of(subject)}. {error}"
                ) from error

        return serialize

    def deserializer(self, part: RecordPart) -> Deserializer:
        loaded, message, nullables = own_schema(part)
        read = message_reader(part.columns, loaded, message, nullables, wraps=part.wraps)

        def deserialize(data: bytes | None) -> Row | None:
            if data is None:
                return None
            try:
                return read(data)
            except (FormatError, *READ_ERRORS) as error:
                raise FormatError(
                    f"Error deserializing message from topic: {topic_of(part.subject)}: {error}"
                ) from error

        return deserialize


def check_protobuf(columns: Sequence[Column], properties: Mapping[str, str]) -> None:
    """Raise AnalysisError for columns that Protobuf cannot have."""
    if has_other_than_string_keys(columns):
        raise AnalysisError(
            "PROTOBUF format only supports MAP types with STRING keys. "
            "See https://github.com/confluentinc/ksql/issues/6177."
        )
    text = ProtobufTranslator().text(columns, properties, wraps=True)
    try:
        load(text, {})
    except SchemaFault as fault:
        raise AnalysisError(str(fault)) from fault


def _asked_schema(store: SchemaStore, properties: Mapping[str, str]) -> StoredSchema | None:
    """The schema that must be written with, where a statement names one."""
    schema_id = asked_id(properties)
    if schema_id is not None:
        return of_kind(store.by_id(schema_id), "PROTOBUF")
    if SUBJECT_NAME not in properties:
        return None
    stored = store.latest(properties[SUBJECT_NAME])
    if stored is None:
        raise FormatError(
            "Failed to fetch schema for serialization from Schema Registry "
            f"using schema subject: {properties[SUBJECT_NAME]}"
        )
    return of_kind(stored, "PROTOBUF")


def own_schema(part: RecordPart) -> tuple[MessageSchema, Descriptor, Nullables]:
    """The schema of the columns, their message in it, and how it tells null."""
    nullables = Nullables.of(part.properties)
    connect = of_columns(part.columns, wraps=part.wraps)
    if connect.type is Type.STRUCT:
        loaded = load(to_text(connect, nullables, None), {})
        return loaded, loaded.message(None), nullables
    loaded = load(WRAPPER_TEXT, {})
    bare = Nullables(nullables.optional, nullables.wrapper, unwraps=True)
    return loaded, loaded.message(wrapper_file(connect)), bare


def message_writer(
    columns: Sequence[Column], connect: Schema, message: Descriptor, *, wraps: bool
) -> RowWriter:
    """Rows to a message's bytes."""
    convert = row_writer(columns, connect, Writing(to_message), wraps=wraps)
    build = message_class(message)

    def write(row: Row) -> bytes:
        return bytes(build(**convert(row)).SerializeToString())

    return write


def message_reader(
    columns: Sequence[Column],
    loaded: MessageSchema,
    message: Descriptor,
    nullables: Nullables,
    *,
    wraps: bool = True,
) -> RowReader:
    """Rows from a message's bytes."""
    connect = schema_of(loaded, message, nullables)
    if WRAPPER in connect.parameters and wraps:
        connect = Schema(connect.type)
    convert = row_reader(columns, connect, from_message, wraps=wraps)
    parse = message_class(message).FromString

    def read(data: bytes) -> Row | None:
        try:
            return convert(parse(data))
        except DecodeError as error:
            raise ValueError(str(error)) from error

    return read


# -- schemas: from Connect's and back, as Connect's ProtobufData translates them


@dataclass(frozen=True, slots=True)
class Nullables:
    """A schema's distinction of null from a default, and whether wrappers read as simple values."""

    optional: bool = False
    wrapper: bool = False
    unwraps: bool = False

    @classmethod
    def of(cls, properties: Mapping[str, str]) -> Nullables:
        """Return what a format's properties ask for."""
        asked = properties.get(NULLABLES)
        unwraps = properties.get(UNWRAP_PRIMITIVES, "").lower() == "true"
        return cls(asked == "optional", asked == "wrapper", unwraps)


def to_text(schema: Schema, nullables: Nullables, full_name: str | None) -> str:
    """The text of a row's schema. Raises AnalysisError for what Protobuf cannot have."""
    options = ProtobufOptions(has_optional=nullables.optional, has_wrappers=nullables.wrapper)
    try:
        return ProtobufText(options).of(replace(schema, name=full_name))
    except DataError as error:
        raise AnalysisError(str(error)) from error


def wrapper_file(schema: Schema) -> str:
    """The name of the message that holds a bare value. Raises AnalysisError."""
    if schema.type not in SCALARS or schema.name in MESSAGES:
        raise AnalysisError(f"Unsupported root schema of type {schema.type.name}")
    return f"google.protobuf.{SCALARS[schema.type][1]}"


def schema_of(loaded: MessageSchema, message: Descriptor, nullables: Nullables) -> Schema:
    """The schema of a record's value. Raises AnalysisError."""
    options = ProtobufOptions(
        has_optional=nullables.optional,
        has_wrappers=nullables.wrapper,
        unwraps_roots=nullables.unwraps,
        unwraps_fields=nullables.unwraps,
        marks_messages=True,
    )
    try:
        return finite(ProtobufReading(loaded, options).root(message)[0])
    except DataError as error:
        raise AnalysisError(str(error)) from error
