"""Documents as text, bytes and Connect's data."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, time
from decimal import Decimal, DecimalException
from typing import Any, Final

import bson
from bson import Binary, Decimal128, Int64, ObjectId, Timestamp, json_util
from bson.codec_options import DatetimeConversion
from bson.raw_bson import RawBSONDocument
from pymongo.errors import PyMongoError

from barnabas.connect.config.values import invalid
from barnabas.connect.connectors.mongodb.settings import short
from barnabas.schemas.data.builder import (
    OPTIONAL_BOOLEAN,
    OPTIONAL_BYTES,
    OPTIONAL_FLOAT64,
    OPTIONAL_INT32,
    OPTIONAL_INT64,
    OPTIONAL_STRING,
    TIMESTAMP_SCHEMA,
    array_of,
    decimal,
    optional,
    struct_of,
)
from barnabas.schemas.data.errors import DataError
from barnabas.schemas.data.schema import DATE, TIME, Schema, Struct, Type

JsonText = Callable[[Mapping[str, Any]], str]
_STRICT: Final = json_util.JSONOptions(
    json_mode=json_util.JSONMode.LEGACY,
    strict_number_long=True,
    strict_uuid=True,
    datetime_representation=json_util.DatetimeRepresentation.LEGACY,
)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_TIMESTAMP: Final = optional(TIMESTAMP_SCHEMA)


def as_document(value: Mapping[str, Any] | bytes) -> dict[str, Any]:
    """A document with all its parts decoded."""
    if isinstance(value, RawBSONDocument):
        return bson.decode(value.raw, _CODEC)
    return bson.decode(value, _CODEC) if isinstance(value, bytes) else dict(value)


_CODEC: Final = bson.CodecOptions[dict[str, Any]](
    tz_aware=True, tzinfo=UTC, datetime_conversion=DatetimeConversion.DATETIME_AUTO
)


def json_formatter(class_name: str) -> JsonText:
    """Return how `output.json.formatter` writes documents. Raises ConfigError."""
    match short(class_name) or "DefaultJson":
        case "DefaultJson":
            return lambda document: json_util.dumps(document, json_options=_STRICT)
        case "ExtendedJson":
            options = json_util.CANONICAL_JSON_OPTIONS
            return lambda document: json_util.dumps(document, json_options=options)
        case "SimplifiedJson":
            return lambda document: json.dumps(_simple(document), ensure_ascii=False)
    text = "it must be DefaultJson, ExtendedJson or SimplifiedJson"
    raise invalid("output.json.formatter", class_name, text)


def _simple(value: Any) -> Any:
    match value:
        case Mapping():
            return {str(name): _simple(one) for name, one in value.items()}
        case list():
            return [_simple(one) for one in value]
        case bool() | None | str() | float():
            return value
        case int():
            return int(value)
        case ObjectId() | Decimal128():
            return str(value)
        case datetime():
            return moment_text(value)
        case bytes():
            return base64.b64encode(value).decode()
        case Timestamp():
            return moment_text(value.as_datetime())
    return json.loads(json_util.dumps(value, json_options=json_util.RELAXED_JSON_OPTIONS))


def moment_text(value: datetime) -> str:
    """As `2024-05-01T10:00:00.123Z`; milliseconds only where there are some."""
    text = value.astimezone(UTC).isoformat(timespec="milliseconds").removesuffix("+00:00")
    return text.removesuffix(".000") + "Z"


# --- to Connect's data -----------------------------------------------------------------------


def infer(value: Any, name: str | None = None) -> Schema:
    """The schema of a document's part: fields in the order of their names, all optional."""
    match value:
        case bool():
            return OPTIONAL_BOOLEAN
        case Int64():
            return OPTIONAL_INT64
        case int():
            return OPTIONAL_INT32 if -(2**31) <= value < 2**31 else OPTIONAL_INT64
        case float():
            return OPTIONAL_FLOAT64
        case Decimal128():
            return optional(decimal(_scale(value)))
        case datetime() | Timestamp():
            return _TIMESTAMP
        case bytes():
            return OPTIONAL_BYTES
        case list():
            schemas = {infer(one, None if name is None else f"{name}_item") for one in value}
            items = schemas.pop() if len(schemas) == 1 else OPTIONAL_STRING
            return optional(array_of(items))
        case Mapping():
            ordered = sorted(value, key=lambda one: (one != "_id", one))
            parts = [(one, infer(value[one], one)) for one in ordered]
            return struct_of(parts, name=name or "default", optional=name is not None)
    return OPTIONAL_STRING


def _scale(value: Decimal128) -> int:
    exponent = value.to_decimal().as_tuple().exponent
    return -exponent if isinstance(exponent, int) else 0


def to_connect(value: Any, schema: Schema, text: JsonText) -> Any:
    """A document's part as a value of a schema. Raises DataError."""
    if value is None:
        return schema.default
    try:
        return _converted(value, schema, text)
    except (TypeError, ValueError, AttributeError) as error:
        raise DataError(f"cannot make a {schema.type} of {type(value).__name__}") from error


def _converted(value: Any, schema: Schema, text: JsonText) -> Any:
    if schema.name == TIMESTAMP_SCHEMA.name:
        return value.as_datetime() if isinstance(value, Timestamp) else value
    if schema.name == "org.apache.kafka.connect.data.Decimal":
        return value.to_decimal() if isinstance(value, Decimal128) else Decimal(value)
    match schema.type:
        case Type.STRUCT:
            fields = {
                field.name: to_connect(value.get(field.name), field.schema, text)
                for field in schema.fields
            }
            made = Struct.of(schema)
            made.values = [fields[field.name] for field in schema.fields]
            made.validate()
            return made
        case Type.ARRAY:
            items = schema.value_schema
            assert items is not None
            return [to_connect(one, items, text) for one in value]
        case Type.MAP:
            items = schema.value_schema
            assert items is not None
            return {str(name): to_connect(one, items, text) for name, one in value.items()}
        case Type.STRING:
            return _text(value, text)
        case Type.BYTES:
            return bson.encode(value) if isinstance(value, Mapping) else bytes(value)
        case Type.FLOAT32 | Type.FLOAT64:
            return float(str(value)) if isinstance(value, Decimal128) else float(value)
        case Type.BOOLEAN:
            return bool(value)
        case _:
            if isinstance(value, datetime):
                return round((value - _EPOCH).total_seconds() * 1000)
            return int(value)


def _text(value: Any, text: JsonText) -> str:
    match value:
        case str():
            return value
        case Mapping():
            return text(value)
        case ObjectId() | Decimal128():
            return str(value)
        case datetime():
            return moment_text(value)
    # A value alone is written as a part of a document is.
    return text({"v": value}).partition(":")[2].strip().removesuffix("}").strip()


# --- from Connect's data ---------------------------------------------------------------------


def from_connect(value: Any, schema: Schema | None = None) -> dict[str, Any] | None:
    """A record's key or value as a document; None if absent. Raises DataError."""
    match value:
        case None:
            return None
        case Struct() | Mapping():
            made = plain(value)
            assert isinstance(made, dict)
            return made
        case str():
            return _of_text(value)
        case bytes() | bytearray() | memoryview():
            return _of_bytes(bytes(value))
    raise DataError(f"No converter present due to unexpected object type: {type(value).__name__}")


def _of_text(text: str) -> dict[str, Any]:
    try:
        document = json_util.loads(text, json_options=json_util.JSONOptions(tz_aware=True))
    except (ValueError, TypeError, PyMongoError) as error:
        raise DataError("the text is not a document in JSON") from error
    if not isinstance(document, dict):
        raise DataError("the text is not a document in JSON")
    return document


def _of_bytes(data: bytes) -> dict[str, Any]:
    try:
        return bson.decode(data, _CODEC)
    except bson.errors.BSONError:
        pass
    try:
        return _of_text(data.decode())
    except UnicodeDecodeError as error:
        raise DataError("the bytes are no document in BSON or JSON") from error


def plain(value: Any, schema: Schema | None = None) -> Any:
    """A value as BSON has it. Raises DataError."""
    match value:
        case Struct():
            return {
                field.name: plain(one, field.schema)
                for field, one in zip(value.schema.fields, value.values, strict=True)
            }
        case Mapping():
            return {str(name): plain(one) for name, one in value.items()}
        case list() | tuple():
            items = None if schema is None else schema.value_schema
            return [plain(one, items) for one in value]
        case bool() | Int64():
            return value
        case int():
            if schema is not None and schema.type is Type.INT64:
                return Int64(value)
            if not -(2**63) <= value < 2**63:
                raise DataError("a whole number has more than 64 bits")
            return value
        case Decimal():
            return _decimal(value)
        case datetime():
            return value
        case date() if schema is None or schema.name == DATE:
            return datetime(value.year, value.month, value.day, tzinfo=UTC)
        case time() if schema is None or schema.name == TIME:
            return datetime.combine(_EPOCH.date(), value, UTC)
        case bytearray() | memoryview():
            return bytes(value)
    return value


def _decimal(value: Decimal) -> Decimal128:
    try:
        return Decimal128(value)
    except DecimalException as error:
        raise DataError("a decimal number has more than 34 digits, or is too large") from error


def binary_uuid(data: bytes) -> Binary:
    """A UUID as BSON has it."""
    return Binary(data, 4)
