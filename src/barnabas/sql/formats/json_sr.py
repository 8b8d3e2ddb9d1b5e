"""The format JSON_SR: rows as JSON, their schemas, JSON Schemas, in a registry."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from decimal import Decimal as Number
from typing import Any

from barnabas.java.numbers import low_bits, scaled
from barnabas.schemas.converters.json_schema import reader
from barnabas.schemas.converters.json_schema_documents import (
    JsonSchemaReader,
    JsonSchemaWriter,
    has_text_keys,
    is_union,
)
from barnabas.schemas.data.errors import DataError
from barnabas.schemas.data.schema import Schema, Type
from barnabas.schemas.errors import FormatError
from barnabas.schemas.registry_client import StoredSchema
from barnabas.sql.errors import AnalysisError
from barnabas.sql.formats.connect_data import OMITTED, Convert, Writing, row_reader, row_writer
from barnabas.sql.formats.connect_schema import (
    finite,
    is_decimal,
    of_columns,
    plain_default,
    scale_of,
)
from barnabas.sql.formats.format import (
    Deserializer,
    Format,
    RecordPart,
    SchemaTranslator,
    Serializer,
    check_properties,
    has_other_than_string_keys,
)
from barnabas.sql.formats.json import parse
from barnabas.sql.formats.json_reading import MismatchError, compact_json, json_scanner
from barnabas.sql.formats.json_writing import row_writer as text_row_writer
from barnabas.sql.formats.json_writing import writer as text_writer
from barnabas.sql.formats.registry_wire import (
    FULL_SCHEMA_NAME,
    SCHEMA_ID,
    RowReader,
    RowWriter,
    asked_id,
    of_kind,
    store_of,
    wire_deserializer,
    wire_serializer,
)
from barnabas.sql.java_text import decode_bytes, encode_bytes
from barnabas.sql.runtime.records import Row
from barnabas.sql.schema import Column


class JsonSchemaTranslator(SchemaTranslator):
    """Columns and JSON Schemas."""

    schema_type = "JSON"

    def text(self, columns: Sequence[Column], properties: Mapping[str, str], *, wraps: bool) -> str:
        return to_text(of_columns(columns, wraps=wraps))

    def connect_schema(self, schema: StoredSchema, properties: Mapping[str, str]) -> Schema:
        return parsed(schema)


class JsonSchemaFormat(Format):
    """JSON with schemas in a registry."""

    name = "JSON_SR"
    can_wrap = True
    can_unwrap = True
    properties = frozenset({FULL_SCHEMA_NAME, SCHEMA_ID})
    schemas = JsonSchemaTranslator()

    def check(self, columns: Sequence[Column], properties: Mapping[str, str]) -> None:
        check_properties(self.name, properties, self.properties)
        if has_other_than_string_keys(columns):
            raise AnalysisError("JSON only supports MAP types with STRING keys")

    def serializer(self, part: RecordPart) -> Serializer:
        store = store_of(part.schemas, self.name)
        schema_id = asked_id(part.properties)
        columns, wraps = part.columns, part.wraps

        def prepare() -> tuple[int, RowWriter]:
            if schema_id is not None:
                connect = parsed(of_kind(store.by_id(schema_id), "JSON"))
                convert = row_writer(columns, connect, _WRITING, wraps=wraps)
                return schema_id, lambda row: compact_json(convert(row)).encode()
            return registered_id(part), _text_writer(columns, wraps=wraps)

        return wire_serializer(part, prepare)

    def deserializer(self, part: RecordPart) -> Deserializer:
        scan = json_scanner(exact=True)

        def prepare(schema: StoredSchema) -> RowReader:
            convert = row_reader(part.columns, parsed(schema), from_json, wraps=part.wraps)

            def read(data: bytes) -> Row | None:
                try:
                    return convert(parse(data, scan))
                except MismatchError as error:
                    raise FormatError(error.message) from error

            return read

        return wire_deserializer(part.subject, store_of(part.schemas, self.name), "JSON", prepare)


def registered_id(part: RecordPart) -> int:
    """Register the schema made from the columns; its id. Raises AnalysisError, FormatError."""
    text = to_text(of_columns(part.columns, wraps=part.wraps))
    return store_of(part.schemas, "JSON_SR").register(part.subject, "JSON", text)


def _text_writer(columns: Sequence[Column], *, wraps: bool) -> RowWriter:
    """Rows to JSON as the schema made from the columns has it."""
    writers = [text_writer(column.type, maps_as_entries=True) for column in columns]
    if len(columns) == 1 and not wraps:
        return lambda row: writers[0](row[0]).encode()
    write = text_row_writer([column.name for column in columns], writers)
    return lambda row: write(row).encode()


def _has_entries(schema: Schema) -> bool:
    return schema.type is Type.MAP and not has_text_keys(schema)


def _to_json(schema: Schema) -> Convert | None:
    """Return what a value becomes before it is written by a schema that the registry had."""
    if schema.type is Type.BYTES and not is_decimal(schema):
        return encode_bytes
    if _has_entries(schema):
        return lambda pairs: [{"key": key, "value": value} for key, value in pairs]
    if schema.type is Type.STRUCT:
        return lambda values: {n: value for n, value in values.items() if value is not OMITTED}
    return None


_WRITING = Writing(_to_json, omits_required=True)


def from_json(schema: Schema) -> Convert | None:
    """The hook for reading: what is of another kind than the schema says is 0 or null, as Connect
    has it."""
    match schema.type:
        case Type.BOOLEAN:
            return lambda value: value is True
        case Type.INT8 | Type.INT16 | Type.INT32 | Type.INT64:
            return _whole(int(schema.type[3:]))
        case Type.FLOAT32 | Type.FLOAT64:
            return _float
        case Type.STRING:
            return lambda value: value if isinstance(value, str) else None
        case Type.BYTES:
            return _decimal(scale_of(schema)) if is_decimal(schema) else decode_bytes
        case Type.ARRAY:
            return _checked_list
        case Type.MAP:
            return _entries if _has_entries(schema) else _checked_object
    return _branches(schema) if is_union(schema) else _members(schema)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | Number | float) and not isinstance(value, bool)


def _whole(bits: int) -> Convert:
    return lambda value: low_bits(value, bits) if _is_number(value) else 0


def _float(value: Any) -> float:
    return float(value) if _is_number(value) else 0.0


def _decimal(scale: int) -> Convert:
    def convert(value: Any) -> Number:
        if isinstance(value, str):
            return scaled(int.from_bytes(decode_bytes(value), "big", signed=True), scale)
        if not _is_number(value):
            raise FormatError("Invalid type for a decimal number")
        return Number(value)

    return convert


def _checked_list(value: Any) -> Any:
    if not isinstance(value, list):
        raise FormatError("Arrays should be encoded as JSON arrays")
    return value


def _checked_object(value: Any) -> Any:
    if not isinstance(value, dict):
        raise FormatError("Maps with string fields should be encoded as JSON objects")
    return value


def _entries(value: Any) -> Any:
    if not isinstance(value, list):
        raise FormatError("Maps with non-string fields should be encoded as JSON array of objects")
    return [(entry["key"], entry["value"]) for entry in value]


def _members(schema: Schema) -> Convert:
    plan = [
        (
            field.name,
            plain_default(field.schema, _WRITING.decimal),
            field.schema.optional,
            field.schema.type.name,
        )
        for field in schema.fields
    ]

    def convert(value: Any) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise FormatError("Structs should be encoded as JSON objects")
        result = {}
        for name, default, optional, type_name in plan:
            member = value.get(name)
            if member is None:
                if default is None and not optional and name in value:
                    raise FormatError(f"Invalid null value for required {type_name} field")
                member = default
            result[name] = member
        return result

    return convert


def _branches(schema: Schema) -> Convert:
    def fits(branch: Schema, value: Any) -> bool:
        match branch.type:
            case Type.BOOLEAN:
                return isinstance(value, bool)
            case Type.STRING:
                return isinstance(value, str)
            case Type.ARRAY:
                return isinstance(value, list)
            case Type.STRUCT:
                names = {field.name for field in branch.fields}
                return isinstance(value, dict) and not names.isdisjoint(value)
            case Type.MAP:
                return isinstance(value, list | dict)
            case Type.FLOAT32 | Type.FLOAT64 | Type.BYTES:
                return _is_number(value)
        return isinstance(value, int) and not isinstance(value, bool)

    def convert(value: Any) -> dict[str, Any]:
        result: dict[str, Any] = {field.name: None for field in schema.fields}
        for field in schema.fields:
            if fits(field.schema, value):
                result[field.name] = value
                return result
        raise FormatError("Did not find matching oneof field for data")

    return convert


def to_text(schema: Schema) -> str:
    """The JSON Schema as text; decimals are numbers."""
    writer = JsonSchemaWriter(lambda part: part.default, is_decimal_numeric=True, allows_more=True)
    made = _arranged(writer.whole(schema))
    return json.dumps(made, ensure_ascii=False, separators=(",", ":"))


_KEYWORDS = (
    *("connect.index", "oneOf", "type", "properties", "items"),
    *("title", "connect.version", "connect.type", "connect.parameters"),
)
"""The order of a schema's keywords. A registry compares texts: any other order is a new version."""


def _arranged(node: dict[str, Any]) -> dict[str, Any]:
    """A JSON Schema of columns with its keywords in order."""
    made = {keyword: node[keyword] for keyword in _KEYWORDS if keyword in node}
    assert len(made) == len(node), node
    if "oneOf" in made:
        made["oneOf"] = [_arranged(branch) for branch in made["oneOf"]]
    if "properties" in made:
        made["properties"] = {name: _arranged(one) for name, one in made["properties"].items()}
    if "items" in made:
        made["items"] = _arranged(made["items"])
    return made


def parsed(stored: StoredSchema) -> Schema:
    """Connect's schema of one in the registry. Raises AnalysisError."""
    try:
        made = JsonSchemaReader(
            stored,
            lambda part, node: reader(part)(node),
            makes_optional=False,
            takes_first=True,
        ).schema()
        return finite(made)
    except DataError as error:
        raise AnalysisError(str(error)) from error
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise AnalysisError(f"Schema {stored.id} is not a JSON Schema: {error}") from error
