"""The formats that a source's topic has: which, with what properties, and whether they can hold its
columns. Also columns that a schema registry knows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from barnabas.schemas.errors import FormatError
from barnabas.schemas.registry_client import StoredSchema
from barnabas.sql.analysis.environment import WRAP_SINGLE_VALUES, Environment
from barnabas.sql.analysis.properties import SourceProperties
from barnabas.sql.analysis.schemas import columns_list
from barnabas.sql.errors import AnalysisError
from barnabas.sql.formats.catalog import (
    check_columns,
    format_named,
    format_properties,
    is_wrapped,
    key_wrapping,
    value_wrapping,
)
from barnabas.sql.formats.format import check_properties
from barnabas.sql.names import backquoted
from barnabas.sql.plan.steps import FormatChoice, Formats
from barnabas.sql.schema import Column, Part, Schema
from barnabas.sql.types import Array, Map, SqlType, Struct


def format_choice(
    name: str, part: Part, properties: SourceProperties, source: str, inherits: FormatChoice | None
) -> FormatChoice:
    """The format of that name for a part of a source.

    Of the same format that the query reads (`inherits`), it takes over some properties. Raises
    AnalysisError for properties that it does not know; a schema id is looked at later.
    """
    chosen = format_named(name)
    own: dict[str, str] = {}
    if inherits is not None and inherits.name == chosen.name:
        own = {
            key: value
            for key, value in inherits.properties.items()
            if key in chosen.inherited_properties
        }
    own |= format_properties(chosen.name, part, properties.texts, source)
    checked = {name: value for name, value in own.items() if name != "schemaId"}
    check_properties(chosen.name, checked, chosen.properties)
    return FormatChoice(chosen.name, own)


def checked_formats(
    schema: Schema,
    key: FormatChoice,
    value: FormatChoice,
    environment: Environment,
    wraps_value: bool | None,
) -> Formats:
    """The formats with their wrapping; raises AnalysisError if one cannot hold its columns."""
    formats = wrapped_formats(schema, key, value, environment, wraps_value)
    check_formats(schema, formats)
    return formats


def check_formats(schema: Schema, formats: Formats) -> None:
    """Raise AnalysisError if a format cannot hold its columns."""
    check_key_types(schema.key)
    for choice, columns, part in (
        (formats.key, schema.key, Part.KEY),
        (formats.value, schema.value, Part.VALUE),
    ):
        check_columns(
            format_named(choice.name), columns, choice.properties, part, choice.wraps_single
        )


def wrapped_formats(
    schema: Schema,
    key: FormatChoice,
    value: FormatChoice,
    environment: Environment,
    wraps_value: bool | None,
) -> Formats:
    """The formats with the wrapping of single columns that follows from the schema."""
    default = environment.setting(WRAP_SINGLE_VALUES)
    if isinstance(default, str):
        default = default.strip().lower() == "true"
    wraps_key = key_wrapping(format_named(key.name), schema.key)
    wraps_value = value_wrapping(format_named(value.name), schema.value, wraps_value, default)
    return Formats(replace(key, wraps_single=wraps_key), replace(value, wraps_single=wraps_value))


def check_key_types(columns: Sequence[Column]) -> None:
    """Raise AnalysisError for a key with a map in it."""
    for column in columns:
        if _has_map(column.type):
            raise AnalysisError(
                "Map keys, including types that contain maps, are not supported as they may lead "
                "to unexpected behavior due to inconsistent serialization. Key column name: "
                f"{backquoted(column.name)}. Column type: {column.type}. See "
                "https://github.com/confluentinc/ksql/issues/6621 for more."
            )


def _has_map(sql_type: SqlType) -> bool:
    match sql_type:
        case Map():
            return True
        case Array():
            return _has_map(sql_type.item)
        case Struct():
            return any(_has_map(field.type) for field in sql_type.fields)
        case _:
            return False


# --- columns from the registry ---------------------------------------------------------------


def inferred_columns(
    choice: FormatChoice,
    part: Part,
    topic: str,
    environment: Environment,
    *,
    has_columns: bool,
    wraps: bool | None,
) -> tuple[Column, ...] | None:
    """The part's columns by the schema registry, or None where the statement names them.

    A schema id must be used, and leaves no room for columns in the statement. `wraps`: whether a
    value's only column is wrapped; keys are bare where the format can have that.
    """
    chosen = format_named(choice.name)
    schema_id = choice.properties.get("schemaId")
    id_property = f"{part.value}_SCHEMA_ID"
    if schema_id is not None and chosen.schemas is None:
        raise AnalysisError(
            f"{part.value}_FORMAT should support schema inference when {id_property} is provided. "
            f"Current format is {chosen.name}."
        )
    if schema_id is not None and has_columns:
        raise AnalysisError(
            f"Table elements and {id_property} cannot both exist for create statement."
        )
    if has_columns or chosen.schemas is None:
        return None
    schema = _stored_schema(environment, topic, part, schema_id)
    if schema.type != chosen.schemas.schema_type:
        raise AnalysisError(_other_format(part, chosen.schemas.schema_type, schema.type, topic))
    if part is Part.KEY:
        wraps = False if chosen.can_wrap and chosen.can_unwrap else None
    columns = chosen.schemas.columns(
        schema,
        choice.properties,
        part,
        wraps=is_wrapped(chosen, wraps),
        upper_case=schema_id is None,
    )
    if part is Part.KEY and len(columns) > 1:
        raise AnalysisError(
            f"The key schema for topic: {topic} contains multiple columns, which is not supported "
            f"by ksqlDB at this time.\nSchema: {schema.text}"
        )
    return columns


def _stored_schema(
    environment: Environment, topic: str, part: Part, schema_id: str | None
) -> StoredSchema:
    if environment.schemas is None:
        raise AnalysisError(
            "Cannot find out a topic's columns without a schema registry: set "
            "'ksql.schema.registry.url', or name the columns."
        )
    subject = f"{topic}-{part.value.lower()}"
    try:
        stored = (
            environment.schemas.latest(subject)
            if schema_id is None
            else environment.schemas.by_id(int(schema_id))
        )
    except FormatError as error:
        if error.retriable:
            raise AnalysisError(f"Could not read the schema of {subject}: {error}") from error
        stored = None
    if stored is None:
        what = "keys" if part is Part.KEY else "values"
        raise AnalysisError(
            f"Schema for message {what} on topic '{topic}' does not exist in the Schema Registry.\n"
            f"Subject: {subject}\n"
            "Either the topic does not exist (see SHOW TOPICS), or its messages were not written "
            "with a serializer that registers schemas (see PRINT), or their schema is in another "
            "registry, or access to it is not granted."
        )
    return stored


def _other_format(part: Part, expected: str, actual: str, topic: str) -> str:
    return (
        f"{part.value.capitalize()} schema is not in the expected format. You may want to set "
        f"{part.value}_FORMAT to '{actual}'.\ntopic: {topic}\nexpected format: {expected}\n"
        f"actual format from Schema Registry: {actual}"
    )


def check_against_schema_id(
    choice: FormatChoice, part: Part, topic: str, columns: Sequence[Column], env: Environment
) -> None:
    """A query's result must have the columns of the schema whose id the statement gives."""
    if "schemaId" not in choice.properties:
        return
    wraps = choice.wraps_single
    known = inferred_columns(choice, part, topic, env, has_columns=False, wraps=wraps) or ()
    missing = [
        column
        for place, column in enumerate(columns)
        if place >= len(known) or known[place] != column
    ]
    if missing and columns:
        raise AnalysisError(
            f"The following {part.value.lower()} columns are changed, missing or reordered: "
            f"{columns_list(missing)}. Schema from schema registry is {columns_list(known)}"
        )
