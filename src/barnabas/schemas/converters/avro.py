"""Connect's data in Avro, as io.confluent.connect.avro.AvroConverter translates them.

Left out: Confluent's variants.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from typing import Any, Final

import fastavro
import fastavro._read_py as python_codec

from barnabas.schemas.converters import avro_any
from barnabas.schemas.converters.avro_plain import AvroNames
from barnabas.schemas.converters.avro_reading import AvroReading
from barnabas.schemas.converters.avro_schemas import (
    FIXED_SIZE,
    LOGICAL,
    AvroOptions,
    AvroSchemas,
    encoded,
    has_text_keys,
    is_union,
    scrubbed,
)
from barnabas.schemas.converters.base import Reading, SchemaFormat, Writing
from barnabas.schemas.data.errors import DataError
from barnabas.schemas.data.recursive import SchemaReference, when_needed
from barnabas.schemas.data.schema import DECIMAL, Schema, Struct, Type, validate_value
from barnabas.schemas.registry_client import StoredSchema

Convert = Callable[[Any], Any]


class AvroFormat(SchemaFormat):
    """Avro's binary data."""

    schema_type, title, takes_any = "AVRO", "Avro", True

    def __init__(self, options: AvroOptions) -> None:
        self._options = options

    def writing(self, schema: Schema | None, target: StoredSchema | None = None) -> Writing:
        name: str | None = avro_any.NAME
        made: Any = avro_any.SCHEMA
        convert: Convert = avro_any.to_any
        if schema is not None:
            schemas = AvroSchemas(self._options)
            made, name = schemas.of(schema), schemas.record_name(schema)
            convert = _Values(self._options).of(schema)
        text = json.dumps(made, ensure_ascii=False, separators=(",", ":"))
        stored = target or StoredSchema(-1, "AVRO", text, ())
        needs_defaults = target is not None or schema is None
        parsed = _parsed(AvroNames(stored).plain(has_defaults=needs_defaults))

        def write(value: Any) -> bytes:
            buffer = io.BytesIO()
            made = convert(value)
            try:
                fastavro.schemaless_writer(buffer, parsed, made)
            except (ValueError, TypeError, AttributeError, KeyError, OverflowError) as error:
                raise DataError(f"The value does not fit its Avro schema: {error}") from error
            return buffer.getvalue()

        return Writing(text, name, write)

    def reading(self, stored: StoredSchema) -> Reading:
        names = AvroNames(stored)
        plain = names.plain(has_defaults=False)
        schema: Schema | None = None
        convert: Convert = avro_any.from_any
        if plain != _ANY:
            schema, convert = AvroReading(names, self._options).of(names.root)
        parsed = _parsed(plain)
        is_recursive = names.is_recursive()

        def read(data: bytes) -> Any:
            is_deep = is_recursive and len(data) > _DEPTH_MAX
            decode = python_codec.schemaless_reader if is_deep else fastavro.schemaless_reader
            try:
                return convert(decode(io.BytesIO(data), parsed, None, return_named_type=True))
            except RecursionError:
                raise DataError("The data are nested too deeply") from None

        return Reading(schema, read)


_DEPTH_MAX: Final = 1_000
"""The depth of data, of which each level has at least a byte, that the codec in C may read: a few
thousand overrun the stack of a thread and end the process. The one in Python raises an error."""


def _parsed(plain: Any) -> Any:
    """The schema as the codec takes it. Raises DataError."""
    try:
        return fastavro.parse_schema(plain)
    except (fastavro.schema.SchemaParseException, ValueError) as error:
        raise DataError(f"The codec does not take the Avro schema: {error}") from error


_ANY: Final = AvroNames(StoredSchema(-1, "AVRO", json.dumps(avro_any.SCHEMA), ())).plain(
    has_defaults=False
)
"""The schema of data without one, as the codec has it."""


class _Values:
    """Makes what turns values of Connect into what the codec takes."""

    def __init__(self, options: AvroOptions) -> None:
        self._options = options
        self._references: dict[Schema, Convert] = {}

    def of(self, schema: Schema) -> Convert:
        """The conversion of values of a schema, null too; it raises DataError."""
        convert = self._of(schema)
        default = None
        if schema.default is not None and not self._options.ignores_defaults:
            default = convert(schema.default)

        def checked(value: Any) -> Any:
            if value is not None:
                return convert(value)
            if default is None and not schema.optional:
                validate_value(schema, None)
            return default

        return checked

    def _of(self, schema: Schema) -> Convert:
        """The conversion of values that are not null."""
        if schema.name in LOGICAL or schema.name == DECIMAL:
            return lambda value: encoded(schema, _fitting(schema, value))
        match schema.type:
            case Type.STRUCT if type(schema) is SchemaReference:
                if schema not in self._references:
                    self._references[schema] = when_needed(lambda: self._struct(schema))
                return self._references[schema]
            case Type.STRUCT:
                return self._union(schema) if is_union(schema) else self._struct(schema)
            case Type.ARRAY:
                assert schema.value_schema is not None
                item = self.of(schema.value_schema)
                return lambda value: [item(one) for one in value]
            case Type.MAP:
                return self._map(schema)
            case Type.BYTES if FIXED_SIZE not in schema.parameters:
                return lambda value: bytes(_fitting(schema, value))
        return lambda value: _fitting(schema, value)

    def _struct(self, schema: Schema) -> Convert:
        scrubs = self._options.scrubs_names
        parts = [(scrubbed(f.name) if scrubs else f.name, self.of(f.schema)) for f in schema.fields]

        def convert(value: Any) -> dict[str, Any]:
            if type(value) is not Struct or (value.schema is not schema and value.schema != schema):
                validate_value(schema, value)
            pairs = zip(parts, value.values, strict=True)
            return {name: part(item) for (name, part), item in pairs}

        return convert

    def _union(self, schema: Schema) -> Convert:
        schemas = AvroSchemas(self._options)
        parts = [(schemas.record_name(f.schema), self._of(f.schema)) for f in schema.fields]

        def convert(value: Struct) -> Any:
            for (name, part), item in zip(parts, value.values, strict=True):
                if item is not None:
                    made = part(item)
                    return made if name is None else (name, made)
            raise DataError("A union needs one field with a value")

        return convert

    def _map(self, schema: Schema) -> Convert:
        assert schema.key_schema is not None
        assert schema.value_schema is not None
        key, item = self.of(schema.key_schema), self.of(schema.value_schema)
        if has_text_keys(schema, self._options):
            return lambda value: {key(k): item(v) for k, v in value.items()}
        return lambda value: [{"key": key(k), "value": item(v)} for k, v in value.items()]


def _fitting(schema: Schema, value: Any) -> Any:
    validate_value(schema, value)
    return value
