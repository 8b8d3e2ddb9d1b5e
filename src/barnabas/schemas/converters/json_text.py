"""JSON as Jackson writes it, from Connect's values: one function is made per schema.

Numbers print as Java prints them, so that the bytes are those of Kafka's JsonConverter.
"""

from __future__ import annotations

from binascii import b2a_base64
from collections.abc import Callable, Mapping
from datetime import date, datetime, time
from decimal import Decimal
from json.encoder import encode_basestring
from typing import Any, Final

from barnabas.java.numbers import double_text, float_text
from barnabas.schemas.data.errors import DataError
from barnabas.schemas.data.logical import (
    date_to_days,
    decimal_to_bytes,
    time_to_ms,
    timestamp_to_ms,
)
from barnabas.schemas.data.recursive import SchemaReference, when_needed
from barnabas.schemas.data.schema import (
    DATE,
    DECIMAL,
    TIME,
    TIMESTAMP,
    Schema,
    Struct,
    Type,
    java_class,
)

Write = Callable[[Any], str]


class JsonText:
    """Options of writing values: decimals as numbers or as bytes, defaults for nulls or not."""

    def __init__(self, *, is_decimal_numeric: bool, replaces_null: bool) -> None:
        self._is_decimal_numeric = is_decimal_numeric
        self._replaces_null = replaces_null
        self._references: dict[Schema, Write] = {}

    def writer(self, schema: Schema | None) -> Write:
        """Return what writes values of a schema, null too; it raises DataError."""
        if schema is None:
            return write_without_schema
        write = self._writer(schema)
        if schema.default is not None and self._replaces_null:
            text = write(schema.default)
        elif schema.optional:
            text = "null"
        else:
            return _refuse_null(write)
        return lambda value: text if value is None else write(value)

    def _writer(self, schema: Schema) -> Write:
        """Return what writes values that are not null."""
        if schema.name in _LOGICAL:
            return self._logical(schema)
        match schema.type:
            case Type.STRUCT if type(schema) is SchemaReference:
                if schema not in self._references:
                    self._references[schema] = when_needed(lambda: self._struct(schema))
                return self._references[schema]
            case Type.STRUCT:
                return self._struct(schema)
            case Type.ARRAY:
                write = self.writer(schema.value_schema)

                def write_array(value: Any) -> str:
                    if not isinstance(value, (list, tuple)):
                        raise _invalid(schema, value)
                    return f"[{','.join([write(item) for item in value])}]"

                return write_array
            case Type.MAP:
                return self._map(schema)
        return _plain(schema)

    def _struct(self, schema: Schema) -> Write:
        parts = [(quoted(f.name) + ":", self.writer(f.schema)) for f in schema.fields]

        def write(value: Any) -> str:
            if type(value) is not Struct:
                raise _invalid(schema, value)
            if value.schema is not schema and value.schema != schema:
                raise DataError("Mismatching schema.")
            pairs = zip(parts, value.values, strict=True)
            return f"{{{','.join([name + part(item) for (name, part), item in pairs])}}}"

        return write

    def _map(self, schema: Schema) -> Write:
        keys, values = self.writer(schema.key_schema), self.writer(schema.value_schema)
        has_text_keys = schema.key_schema is not None and schema.key_schema.type is Type.STRING

        def write(value: Any) -> str:
            if not isinstance(value, Mapping):
                raise _invalid(schema, value)
            if has_text_keys:
                # A null key becomes the text of null.
                return _object((as_text(keys(k)), values(v)) for k, v in value.items())
            return f"[{','.join([f'[{keys(k)},{values(v)}]' for k, v in value.items()])}]"

        def as_text(key: str) -> str:
            return key if key[0] == '"' else f'"{key}"'

        return write

    def _logical(self, schema: Schema) -> Write:
        assert schema.name is not None
        title, kind, expected = _LOGICAL[schema.name]

        def write(value: Any) -> str:
            if not isinstance(value, kind) or (kind is date and isinstance(value, datetime)):
                raise DataError(
                    f"Invalid type for {title}, expected {expected} but was {java_class(value)}"
                )
            return encode(value)

        encode: Write
        if schema.name == DECIMAL and self._is_decimal_numeric:
            encode = str
        elif schema.name == DECIMAL:
            encode = lambda value: _base64(decimal_to_bytes(schema, value))  # noqa: E731
        elif schema.name == DATE:
            encode = lambda value: str(date_to_days(value))  # noqa: E731
        elif schema.name == TIME:
            encode = lambda value: str(time_to_ms(value))  # noqa: E731
        else:
            encode = lambda value: str(timestamp_to_ms(value))  # noqa: E731
        return write


_LOGICAL: Final[dict[str | None, tuple[str, type, str]]] = {
    DECIMAL: ("Decimal", Decimal, "BigDecimal"),
    DATE: ("Date", date, "Date"),
    TIME: ("Time", time, "Date"),
    TIMESTAMP: ("Timestamp", datetime, "Date"),
}


def write_without_schema(value: Any) -> str:
    """The JSON of a value without a schema. Raises DataError."""
    write = _BY_CLASS.get(type(value))
    if write is None:
        write = next((w for kind, w in _BY_CLASS.items() if isinstance(value, kind)), None)
    if write is None:
        raise DataError(f"Java class {java_class(value)} does not have corresponding schema type.")
    return write(value)


def quoted(text: str) -> str:
    """A text in quotes; Jackson's escapes have capital letters."""
    result = encode_basestring(text)
    if "\\u00" in result:
        return '"' + "".join(map(_escaped, text)) + '"'
    return result


def _escaped(character: str) -> str:
    escaped = encode_basestring(character)[1:-1]
    return f"\\u{ord(character):04X}" if escaped.startswith("\\u") else escaped


def _refuse_null(write: Write) -> Write:
    def check(value: Any) -> str:
        if value is None:
            raise DataError(
                "Conversion error: null value for field that is required and has no default value"
            )
        return write(value)

    return check


def _plain(schema: Schema) -> Write:
    bits = _BITS.get(schema.type)
    if bits is not None:
        low, high = -1 << bits, (1 << bits) - 1

        def write_int(value: Any) -> str:
            if type(value) is int and low <= value <= high:
                return str(value)
            raise _invalid(schema, value)

        return write_int
    kind, write = _PLAIN[schema.type]

    def write_plain(value: Any) -> str:
        if isinstance(value, kind):
            return write(value)
        if schema.type is Type.BYTES:
            raise DataError(f"Invalid type for bytes type: {java_class(value)}")
        raise _invalid(schema, value)

    return write_plain


def _double(number: float) -> str:
    if 1e-3 <= number < 1e7 or -1e7 < number <= -1e-3:
        return repr(number)
    text = double_text(number)
    return f'"{text}"' if text[-1] in "Ny" else text


def _float(number: float) -> str:
    text = float_text(number)
    return f'"{text}"' if text[-1] in "Ny" else text


def _boolean(value: bool) -> str:
    return "true" if value else "false"


def _base64(value: Any) -> str:
    return f'"{b2a_base64(value, newline=False).decode()}"'


def _map_without_schema(value: Mapping[Any, Any]) -> str:
    pairs = [(write_without_schema(k), write_without_schema(v)) for k, v in value.items()]
    if all(isinstance(key, str) for key in value):
        return _object(pairs)
    return f"[{','.join([f'[{k},{v}]' for k, v in pairs])}]"


def _object(pairs: Any) -> str:
    return f"{{{','.join([f'{key}:{value}' for key, value in pairs])}}}"


def _array_without_schema(value: Any) -> str:
    return f"[{','.join([write_without_schema(item) for item in value])}]"


def _struct_without_schema(value: Struct) -> str:
    raise DataError("Mismatching schema.")


def _long(value: int) -> str:
    if not -(2**63) <= value < 2**63:
        name = "class java.math.BigInteger"
        raise DataError(f"Java class {name} does not have corresponding schema type.")
    return str(value)


def _invalid(schema: Schema, value: Any) -> DataError:
    return DataError(f"Invalid type for {schema.type.name}: {java_class(value)}")


_BITS: Final = {Type.INT8: 7, Type.INT16: 15, Type.INT32: 31, Type.INT64: 63}
_BYTES: Final = (bytes, bytearray, memoryview)
_PLAIN: Final[dict[Type, tuple[Any, Write]]] = {
    Type.FLOAT32: (float, _float),
    Type.FLOAT64: (float, _double),
    Type.BOOLEAN: (bool, _boolean),
    Type.STRING: (str, quoted),
    Type.BYTES: (_BYTES, _base64),
}
_BY_CLASS: Final[dict[type, Write]] = {
    type(None): lambda _: "null",
    str: quoted,
    bool: _boolean,
    int: _long,
    float: _double,
    dict: _map_without_schema,
    list: _array_without_schema,
    tuple: _array_without_schema,
    bytes: _base64,
    bytearray: _base64,
    memoryview: _base64,
    Struct: _struct_without_schema,
    Mapping: _map_without_schema,
}


def encode_json(text: str) -> bytes:
    """Return the bytes of JSON. Raises DataError for half a pair of UTF-16."""
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise DataError(
            "Converting Kafka Connect data to byte[] failed due to serialization error: "
        ) from error
