"""The formats by name, and what a statement's properties make of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from barnabas.sql.errors import AnalysisError
from barnabas.sql.formats.avro import NAMESPACE as AVRO_NAMESPACE
from barnabas.sql.formats.avro import AvroFormat
from barnabas.sql.formats.delimited import DelimitedFormat
from barnabas.sql.formats.format import Format, columns_text
from barnabas.sql.formats.json import JsonFormat
from barnabas.sql.formats.json_sr import JsonSchemaFormat
from barnabas.sql.formats.kafka import KafkaFormat, NoneFormat
from barnabas.sql.formats.protobuf import ProtobufFormat, ProtobufNoSrFormat
from barnabas.sql.schema import Column, Part

FORMATS: dict[str, Format] = {
    format_.name: format_
    for format_ in (
        JsonFormat(),
        JsonSchemaFormat(),
        AvroFormat(),
        ProtobufFormat(),
        ProtobufNoSrFormat(),
        DelimitedFormat(),
        KafkaFormat(),
        NoneFormat(),
    )
}


def format_named(name: str) -> Format:
    """The format of that name in any case. Raises AnalysisError."""
    format_ = FORMATS.get(name.upper())
    if format_ is None:
        raise AnalysisError(f"Unknown format: {name}")
    return format_


def check_columns(
    format_: Format,
    columns: Sequence[Column],
    properties: Mapping[str, str],
    part: Part,
    wraps: bool | None,
) -> None:
    """Raise AnalysisError, in ksqlDB's words, if the format cannot have the columns.

    `wraps`: what `key_wrapping` or `value_wrapping` says.
    """
    try:
        format_.check(columns, properties)
    except AnalysisError as error:
        feature = "" if wraps is None else "WRAP_SINGLES" if wraps else "UNWRAP_SINGLES"
        raise AnalysisError(
            f"{part.value.capitalize()} format does not support schema.\n"
            f"format: {format_.name}\n"
            f"schema: Persistence{{columns={columns_text(columns)}, features=[{feature}]}}\n"
            f"reason: {error.message}"
        ) from error


def key_wrapping(format_: Format, columns: Sequence[Column]) -> bool | None:
    """False where a key's only column must be written bare; None where there is no choice."""
    one = len(columns) == 1
    return False if one and format_.can_wrap and format_.can_unwrap else None


def value_wrapping(
    format_: Format, columns: Sequence[Column], asked: bool | None, default: bool | None = True
) -> bool | None:
    """Return whether a value's only column is wrapped in a record; None where there is no choice.

    `asked`: WRAP_SINGLE_VALUE; `default`: of `ksql.persistence.wrap.single.values`.
    Raises AnalysisError if what is asked cannot be.
    """
    if asked is not None:
        if not (format_.can_wrap if asked else format_.can_unwrap):
            raise AnalysisError(
                f"Format '{format_.name}' does not support 'WRAP_SINGLE_VALUE' set to "
                f"'{str(asked).lower()}'."
            )
        if len(columns) != 1:
            raise AnalysisError("'WRAP_SINGLE_VALUE' is only valid for single-field value schemas")
        return asked
    if len(columns) != 1 or default is None:
        return None
    return default if (format_.can_wrap if default else format_.can_unwrap) else None


def is_wrapped(format_: Format, wrapping: bool | None) -> bool:
    """The `wraps` of serialisers, for what the functions above say.

    Without a choice a format wraps if it can.
    """
    return format_.can_wrap if wrapping is None else wrapping


_OF_KEYS = {
    "KEY_DELIMITER": "delimiter",
    "KEY_SCHEMA_FULL_NAME": "fullSchemaName",
    "KEY_SCHEMA_ID": "schemaId",
    "KEY_PROTOBUF_NULLABLE_REPRESENTATION": "nullableRepresentation",
}
_OF_VALUES = {
    "VALUE_DELIMITER": "delimiter",
    "VALUE_AVRO_SCHEMA_FULL_NAME": "fullSchemaName",
    "VALUE_SCHEMA_FULL_NAME": "fullSchemaName",
    "VALUE_SCHEMA_ID": "schemaId",
    "VALUE_PROTOBUF_NULLABLE_REPRESENTATION": "nullableRepresentation",
}
_PROTOBUFS = ("PROTOBUF", "PROTOBUF_NOSR")


def format_properties(
    format_name: str, part: Part, given: Mapping[str, str], source: str = ""
) -> dict[str, str]:
    """A format's own properties from those of a WITH clause (names in upper case).

    `source`: the stream or table, whose name an AVRO schema of keys bears.
    Raises AnalysisError for Protobuf's properties on another format.
    """
    name = format_name.upper()
    result: dict[str, str] = {}
    for property_name, own in (_OF_KEYS if part is Part.KEY else _OF_VALUES).items():
        if property_name not in given:
            continue
        value = given[property_name]
        if own == "nullableRepresentation":
            if name not in _PROTOBUFS:
                raise AnalysisError(
                    f"Property {property_name} can only be enabled with protobuf format"
                )
            value = value.lower()
        result.setdefault(own, value)
    if part is Part.KEY and name == "AVRO" and "fullSchemaName" not in result and source:
        result["fullSchemaName"] = f"{AVRO_NAMESPACE}.{_camel(source)}Key"
    if name == "PROTOBUF":
        result["unwrapPrimitives"] = "true"
    return result


def _camel(name: str) -> str:
    return "".join(word[:1].upper() + word[1:].lower() for word in name.split("_"))
