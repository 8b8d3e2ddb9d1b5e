"""Protobuf schemas from Connect's and back, as Connect's ProtobufData translates them.

A row is a message, `ConnectDefault1` unless the statement names it; messages of nested structs are
numbered on in the order in which they are met. A struct's or map's message is declared where it is
used. Without more a null field reads back as its type's default; with `nullableRepresentation`
fields are `optional`, or messages of google.protobuf's wrappers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from google.protobuf.descriptor import Descriptor

from barnabas.schemas.converters.protobuf_reading import ProtobufReading
from barnabas.schemas.converters.protobuf_writing import (
    MESSAGES,
    SCALARS,
    ProtobufOptions,
    ProtobufText,
)
from barnabas.schemas.data.errors import DataError
from barnabas.schemas.data.schema import Schema
from barnabas.schemas.protobuf.messages import MessageSchema
from barnabas.sql.errors import AnalysisError
from barnabas.sql.formats.connect_schema import finite

UNWRAP_PRIMITIVES = "unwrapPrimitives"
NULLABLES = "nullableRepresentation"

_WRAPPERS_FILE = "google/protobuf/wrappers.proto"


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


WRAPPER_TEXT = f'syntax = "proto3"; import "{_WRAPPERS_FILE}";'
"""A file with nothing but the import of the wrappers."""


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
