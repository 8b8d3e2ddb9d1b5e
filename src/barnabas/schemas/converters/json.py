"""Connect's data in JSON, with the schema in an envelope or without.

The work for a schema is done once: texts of schemas and the functions that write and read their
values are cached. If a message's envelope begins with the same text as an earlier one, its schema
is not parsed again.

Source: org.apache.kafka.connect.json.JsonConverter (Kafka 4.3).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from decimal import Decimal
from json.decoder import JSONDecoder
from json.scanner import make_scanner
from typing import Any, Final, NoReturn, cast

from barnabas.java.numbers import low_bits
from barnabas.schemas.converters.base import SchemaAndValue
from barnabas.schemas.converters.json_nodes import Read, read_without_schema, reader
from barnabas.schemas.converters.json_text import (
    JsonText,
    Write,
    encode_json,
    quoted,
    write_without_schema,
)
from barnabas.schemas.data.builder import array_of, map_of, struct_of, with_default
from barnabas.schemas.data.cache import ENTRIES_MAX, Cache
from barnabas.schemas.data.errors import DataError
from barnabas.schemas.data.recursive import refuse_recursion
from barnabas.schemas.data.schema import DECIMAL, Schema, Type

_SPACE: Final = re.compile(r"[ \t\r\n]*")
_ENVELOPE: Final = re.compile(r'[ \t\r\n]*\{[ \t\r\n]*"schema"[ \t\r\n]*:[ \t\r\n]*')
_PAYLOAD: Final = re.compile(r'[ \t\r\n]*,[ \t\r\n]*"payload"[ \t\r\n]*:[ \t\r\n]*')
_LONG_NUMBER: Final = re.compile(r"\d{19}")
_LEADING_ZEROS: Final = re.compile(r'("(?:[^"\\]|\\.)*")|(?<![\w.+])0+(?=[0-9])')
_END: Final = re.compile(r"[ \t\r\n]*\}")
_BEGINNINGS_MAX: Final = 8
"""Beginnings of envelopes that are tried before a message is parsed whole."""
_NO_ENVELOPE: Final = (
    'JsonConverter with schemas.enable requires "schema" and "payload" fields and may not contain '
    "additional fields. If you are trying to deserialize plain JSON data, set schemas.enable=false "
    "in your converter configuration."
)
_UNREADABLE: Final = "Converting byte[] to Kafka Connect data failed due to serialization error: "


@dataclass(slots=True, frozen=True)
class JsonOptions:
    """Settings of JsonConverter. `fixed_schema`: the text of the schema of all messages, if any."""

    has_schemas: bool = True
    replaces_null: bool = True
    is_decimal_numeric: bool = False
    entries_max: int = ENTRIES_MAX
    fixed_schema: str | None = None


class JsonFormat:
    """JSON, with or without schemas."""

    def __init__(self, options: JsonOptions) -> None:
        self._has_schemas = options.has_schemas
        self._replaces_null = options.replaces_null
        text = JsonText(
            is_decimal_numeric=options.is_decimal_numeric, replaces_null=options.replaces_null
        )
        self._writers: Cache[Schema, tuple[str, Write]] = Cache(
            lambda schema: (self._told(schema, text), text.writer(schema)), options.entries_max
        )
        self._readers: Cache[Schema, tuple[Schema, Read]] = Cache(
            lambda schema: (schema, self._reader(schema)), options.entries_max
        )
        self._fixed = self._fixed_schema(options.fixed_schema)
        self._beginnings: list[tuple[str, Schema | None, Read, _Scan]] = []

    def _told(self, schema: Schema, text: JsonText) -> str:
        """The schema as it is written beside values, if it is."""
        return schema_text(schema, text.writer) if self._has_schemas else ""

    def _fixed_schema(self, content: str | None) -> tuple[Schema, Read] | None:
        if not content:
            return None
        try:
            schema = schema_of(_parse(_WITH_DECIMALS, content), self._reader)
        except DataError as error:
            if str(error) == _UNREADABLE:
                raise DataError(
                    "Failed to parse schema in converter config due to serialization error: "
                ) from error
            raise
        return None if schema is None else self._readers(schema)

    def write(self, schema: Schema | None, value: Any) -> bytes | None:
        """Return the JSON of a value. Raises DataError."""
        if schema is None:
            if value is None:
                return None
            text, write = _NO_SCHEMA
        else:
            text, write = self._writers(schema)
        payload = write(value)
        if self._has_schemas:
            payload = f'{{"schema":{text},"payload":{payload}}}'
        return encode_json(payload)

    def write_all(self, schema: Schema | None, values: Iterable[Any]) -> list[bytes | None]:
        """Return the JSON of each value. Raises DataError."""
        if schema is None:
            return [self.write(None, value) for value in values]
        text, write = self._writers(schema)
        if not self._has_schemas:
            return [encode_json(write(value)) for value in values]
        before = f'{{"schema":{text},"payload":'
        return [encode_json(f"{before}{write(value)}}}") for value in values]

    def read(self, data: bytes | None) -> SchemaAndValue:
        """Return the value that JSON stands for. Raises DataError."""
        if data is None:
            return None, None
        try:
            text = data.decode()
        except UnicodeDecodeError as error:
            raise DataError(_UNREADABLE) from error
        if not self._has_schemas:
            node = _parse(_WITH_FLOATS, text)
            # Only long numbers are not yet what they should be.
            return None, read_without_schema(node) if _LONG_NUMBER.search(text) else node
        if self._fixed is not None:
            fixed, read = self._fixed
            return fixed, read(_parse(_WITH_DECIMALS, text))
        for known in self._beginnings:
            beginning, schema, read, scan = known
            if text.startswith(beginning):
                node = _payload(scan, text, len(beginning))
                if node is not _OTHERWISE:
                    return schema, read(node)
                break
        return self._read_whole(text)

    def _read_whole(self, text: str) -> SchemaAndValue:
        has_decimals = "Decimal" in text
        scan = _WITH_DECIMALS if has_decimals else _WITH_FLOATS
        node = _parse(scan, text)
        if type(node) is not dict or node.keys() != {"schema", "payload"}:
            raise DataError(_NO_ENVELOPE)
        schema = schema_of(node["schema"], self._reader)
        read: Read = read_without_schema
        if schema is not None:
            schema, read = self._readers(schema)
        self._remember(text, schema, read)
        return schema, read(node["payload"])

    def _remember(self, text: str, schema: Schema | None, read: Read) -> None:
        start = _ENVELOPE.match(text)
        if start is None:
            return
        _, end = _WITH_FLOATS(text, start.end())
        then = _PAYLOAD.match(text, end)
        if then is None:
            return
        beginning = text[: then.end()]
        if any(beginning == known[0] for known in self._beginnings):
            return
        scan = _WITH_DECIMALS if DECIMAL in beginning else _WITH_FLOATS
        self._beginnings = [
            (beginning, schema, read, scan),
            *self._beginnings[: _BEGINNINGS_MAX - 1],
        ]

    def _reader(self, schema: Schema) -> Read:
        return reader(schema, replaces_null=self._replaces_null)


_Scan = Callable[[str, int], tuple[Any, int]]
"""Reads one JSON value from a place on; returns it and where it ends."""


def _refuse(name: str) -> NoReturn:
    raise ValueError(f"Non-standard token '{name}'")


_NO_SCHEMA: Final[tuple[str, Write]] = ("null", write_without_schema)
# Its type is not that of the function that C puts in its place.
_scanner: Final[Callable[[JSONDecoder], _Scan]] = cast("Any", make_scanner)
_WITH_FLOATS: Final = _scanner(JSONDecoder(parse_constant=_refuse))
_WITH_DECIMALS: Final = _scanner(JSONDecoder(parse_constant=_refuse, parse_float=Decimal))
_OTHERWISE: Final = object()


def _parse(scan: _Scan, text: str) -> Any:
    """The first value; what follows it does not matter. Nothing at all stands for null."""
    start = _SPACE.match(text)
    assert start is not None
    if start.end() == len(text):
        return None
    try:
        node, end = scan(text, start.end())
        if end == len(text):
            return node
    except (ValueError, StopIteration, RecursionError) as error:
        without_zeros = _without_leading_zeros(text)
        if without_zeros == text:
            raise DataError(_UNREADABLE) from error
        return _parse(scan, without_zeros)
    without_zeros = _without_leading_zeros(text)
    return node if without_zeros == text else _parse(scan, without_zeros)


def _without_leading_zeros(text: str) -> str:
    """Kafka's JSON may have numbers such as 007."""
    return _LEADING_ZEROS.sub(lambda match: match[1] or "", text)


def _payload(scan: _Scan, text: str, start: int) -> Any:
    """The payload that begins there, if the envelope ends with it."""
    try:
        node, end = scan(text, start)
    except (ValueError, StopIteration, RecursionError):
        return _OTHERWISE
    return node if text[end:] == "}" or _END.match(text, end) else _OTHERWISE


# -- schemas as JsonConverter writes them into its envelope, and back


def schema_text(
    schema: Schema | None, writer: Callable[[Schema], Write], field: str | None = None
) -> str:
    """The JSON of a schema; `writer` makes what writes its default. Raises DataError."""
    if schema is None:
        return "null"
    refuse_recursion(schema, "a schema of JsonConverter")
    parts = [f'"type":"{schema.type.value}"']
    match schema.type:
        case Type.ARRAY:
            parts.append(f'"items":{schema_text(schema.value_schema, writer)}')
        case Type.MAP:
            parts.append(f'"keys":{schema_text(schema.key_schema, writer)}')
            parts.append(f'"values":{schema_text(schema.value_schema, writer)}')
        case Type.STRUCT:
            fields = ",".join(schema_text(f.schema, writer, f.name) for f in schema.fields)
            parts.append(f'"fields":[{fields}]')
    parts.append(f'"optional":{"true" if schema.optional else "false"}')
    if schema.name is not None:
        parts.append(f'"name":{quoted(schema.name)}')
    if schema.version is not None:
        parts.append(f'"version":{schema.version}')
    if schema.doc is not None:
        parts.append(f'"doc":{quoted(schema.doc)}')
    if schema.parameters:
        pairs = [f"{quoted(name)}:{quoted(text)}" for name, text in schema.parameters.items()]
        parts.append(f'"parameters":{{{",".join(pairs)}}}')
    if schema.default is not None:
        parts.append(f'"default":{writer(schema)(schema.default)}')
    if field is not None:
        parts.append(f'"field":{quoted(field)}')
    return f"{{{','.join(parts)}}}"


def schema_of(node: Any, reader: Callable[[Schema], Read]) -> Schema | None:
    """The schema that parsed JSON describes; `reader` makes what reads its default.

    Raises DataError.
    """
    if node is None:
        return None
    kind = node.get("type") if isinstance(node, dict) else None
    if not isinstance(kind, str):
        raise DataError("Schema must contain 'type' field")
    schema = _typed(kind, node, reader)
    if "default" in node:
        return with_default(schema, reader(schema)(node["default"]))
    return schema


def _typed(kind: str, node: dict[str, Any], reader: Callable[[Schema], Read]) -> Schema:
    rest = _rest
    match kind:
        case "array":
            items = schema_of(node.get("items"), reader)
            if items is None:
                raise DataError("Array schema did not specify the element type")
            return array_of(items, **rest(node))
        case "map":
            if "keys" not in node:
                raise DataError("Map schema did not specify the key type")
            if "values" not in node:
                raise DataError("Map schema did not specify the value type")
            keys, values = schema_of(node["keys"], reader), schema_of(node["values"], reader)
            if keys is None or values is None:
                name = "keySchema" if keys is None else "valueSchema"
                raise DataError(f"{name} cannot be null.")
            return map_of(keys, values, **rest(node))
        case "struct":
            return struct_of(_fields(node, reader), **rest(node))
    try:
        return Schema(Type(kind), **rest(node))
    except ValueError:
        raise DataError(f"Unknown schema type: {kind}") from None


def _fields(node: dict[str, Any], reader: Callable[[Schema], Read]) -> list[tuple[str, Schema]]:
    fields = node.get("fields")
    if not isinstance(fields, list):
        raise DataError('Struct schema\'s "fields" argument is not an array.')
    made = []
    for field in fields:
        name = field.get("field") if isinstance(field, dict) else None
        if not isinstance(name, str):
            raise DataError("Struct schema's field name not specified properly")
        schema = schema_of(field, reader)
        assert schema is not None
        made.append((name, schema))
    return made


def _rest(node: dict[str, Any]) -> dict[str, Any]:
    name, version, doc = node.get("name"), node.get("version"), node.get("doc")
    parameters = node.get("parameters")
    if not isinstance(parameters, dict):
        parameters = {}
    if not all(isinstance(text, str) for text in parameters.values()):
        raise DataError("Schema parameters must have string values.")
    return {
        "optional": node.get("optional") is True,
        "name": name if isinstance(name, str) else None,
        "version": low_bits(version, 32) if type(version) is int else None,
        "doc": doc if isinstance(doc, str) else None,
        "parameters": parameters,
    }
