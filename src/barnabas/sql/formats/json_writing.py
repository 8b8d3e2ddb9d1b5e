"""Values to JSON text, byte for byte as Kafka Connect's JSON converter writes them.

Numbers print as Java prints them (`1.0E10`, decimals with all their digits), NaN and the infinities
as strings, text with only those characters escaped that must be, bytes as base64.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from decimal import Decimal as Number
from json import encoder as json_encoder

from barnabas.java.numbers import double_text
from barnabas.sql.java_text import encode_bytes
from barnabas.sql.types import Array, BaseType, Decimal, Map, Primitive, SqlType, Value

Writer = Callable[[Value], str]
"""Text of a value that is not None."""

_quote: Callable[[str], str] = json_encoder.encode_basestring
_CONTROL = re.compile(r"[\x00-\x1f]")
_SHORT_ESCAPES = {"\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r"}


def json_string(value: str) -> str:
    """The text in quotes."""
    quoted = _quote(value)
    return quoted if "\\u00" not in quoted else _quoted_upper_case(value)


def _quoted_upper_case(value: str) -> str:
    """As above with `\\u001F`, where the standard library writes `\\u001f`."""
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + _CONTROL.sub(_escape, escaped) + '"'


def _escape(match: re.Match[str]) -> str:
    character = match.group()
    return _SHORT_ESCAPES.get(character) or f"\\u{ord(character):04X}"


def double_json(value: float) -> str:
    """The number; NaN and the infinities in quotes."""
    text = double_text(value)
    return text if text[-1].isdigit() else f'"{text}"'


def decimal_json(value: Number) -> str:
    """Text of a decimal number; zero has no sign."""
    return str(value) if value else str(value.copy_abs())


def _bytes(value: bytes) -> str:
    return f'"{encode_bytes(value)}"'


def _boolean(value: bool) -> str:
    return "true" if value else "false"


_PRIMITIVES: dict[BaseType, Writer] = {
    BaseType.BOOLEAN: _boolean,
    BaseType.INTEGER: int.__repr__,
    BaseType.BIGINT: int.__repr__,
    BaseType.DOUBLE: double_json,
    BaseType.STRING: json_string,
    BaseType.BYTES: _bytes,
    BaseType.DATE: int.__repr__,
    BaseType.TIME: int.__repr__,
    BaseType.TIMESTAMP: int.__repr__,
}


def writer(sql_type: SqlType, *, maps_as_entries: bool = False) -> Writer:
    """Text of values of a type.

    `maps_as_entries`: maps are arrays of `{"key": …, "value": …}`, as JSON with a schema has them.
    """
    if isinstance(sql_type, Primitive):
        return _PRIMITIVES[sql_type.base]
    if isinstance(sql_type, Decimal):
        return decimal_json
    if isinstance(sql_type, Array):
        return _array(writer(sql_type.item, maps_as_entries=maps_as_entries))
    if isinstance(sql_type, Map):
        value = writer(sql_type.value, maps_as_entries=maps_as_entries)
        if maps_as_entries:
            return _entries(writer(sql_type.key, maps_as_entries=True), value)
        return _map(value)
    names = [field.name for field in sql_type.fields]
    row = row_writer(
        names, [writer(f.type, maps_as_entries=maps_as_entries) for f in sql_type.fields]
    )
    return lambda value: row([value[name] for name in names])


def row_writer(names: Sequence[str], writers: Sequence[Writer]) -> Callable[[Sequence[Value]], str]:
    """Text of an object with these members, from their values in order."""
    members = ",".join(json_string(name).replace("%", "%%") + ":%s" for name in names)
    template = "{" + members + "}"

    def write(values: Sequence[Value]) -> str:
        return template % tuple(
            [
                "null" if value is None else text(value)
                for text, value in zip(writers, values, strict=True)
            ]
        )

    return write


def _array(item: Writer) -> Writer:
    def write(value: Value) -> str:
        return "[" + ",".join(["null" if v is None else item(v) for v in value]) + "]"

    return write


def _map(item: Writer) -> Writer:
    def write(value: Value) -> str:
        return (
            "{"
            + ",".join(
                [
                    f"{json_string('null' if k is None else k)}:{'null' if v is None else item(v)}"
                    for k, v in value.items()
                ]
            )
            + "}"
        )

    return write


def _entries(key: Writer, item: Writer) -> Writer:
    def write(value: Value) -> str:
        entries = [
            ("null" if k is None else key(k), "null" if v is None else item(v))
            for k, v in value.items()
        ]
        return "[" + ",".join([f'{{"key":{k},"value":{v}}}' for k, v in entries]) + "]"

    return write
