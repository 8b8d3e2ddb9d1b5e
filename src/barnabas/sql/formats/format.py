"""A format: how columns become the bytes of a record's key or value, and back.

A row's bytes are named by their subject in a schema registry, `<topic>-key` or `<topic>-value`,
also where the format has no schemas: messages and inference take topic and part from it.
Properties are the format's own (`delimiter`, `schemaId`, …); `catalog.format_properties` makes them
from those of a statement.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from barnabas.schemas.data.schema import Schema
from barnabas.schemas.errors import FormatError
from barnabas.schemas.registry_client import SchemaStore, StoredSchema
from barnabas.sql.errors import AnalysisError
from barnabas.sql.formats.connect_schema import to_columns
from barnabas.sql.runtime.records import Row
from barnabas.sql.schema import Column, Part
from barnabas.sql.types import STRING, Array, Map, SqlType, Struct

Serializer = Callable[[Row | None], bytes | None]
Deserializer = Callable[[bytes | None], Row | None]
"""Both raise FormatError for what cannot be written or read."""


class SchemaTranslator(ABC):
    """Columns to the text of a registry's schema, and back."""

    schema_type: str

    @abstractmethod
    def text(self, columns: Sequence[Column], properties: Mapping[str, str], *, wraps: bool) -> str:
        """The schema that records of these columns are written with."""

    @abstractmethod
    def connect_schema(self, schema: StoredSchema, properties: Mapping[str, str]) -> Schema:
        """A registry's schema as Connect has it. Raises AnalysisError, FormatError."""

    def columns(
        self,
        schema: StoredSchema,
        properties: Mapping[str, str],
        part: Part,
        *,
        wraps: bool,
        upper_case: bool = True,
    ) -> tuple[Column, ...]:
        """The columns of a schema.

        `upper_case`: names as unquoted ones are; else as the schema spells them (schema ids do so).
        Raises AnalysisError for a schema that is not a row.
        """
        connect = self.connect_schema(schema, properties)
        return to_columns(connect, part, wraps=wraps, upper_case=upper_case)


class RecordPart(NamedTuple):
    """The key or the value of a topic's records, as a format writes and reads it.

    `wraps`: whether a single column is written as a record of one field.
    """

    columns: Sequence[Column]
    properties: Mapping[str, str]
    subject: str
    schemas: SchemaStore | None
    wraps: bool

    @property
    def is_bare(self) -> bool:
        """True if it is the bare value of its only column."""
        return len(self.columns) == 1 and not self.wraps


class Format(ABC):
    """One of ksqlDB's formats."""

    name: str
    can_wrap: bool
    """True if a single column can be written as a record of one field."""
    can_unwrap: bool
    """True if a single column can be written as a bare value."""
    properties: frozenset[str] = frozenset()
    """Names of the properties that the format understands."""
    inherited_properties: frozenset[str] = frozenset()
    """Those that a stream made from another one of the same format has unless told otherwise."""
    schemas: SchemaTranslator | None = None
    """How schemas in a registry read; None for a format without schemas."""

    @abstractmethod
    def check(self, columns: Sequence[Column], properties: Mapping[str, str]) -> None:
        """Raise AnalysisError for columns or properties that the format cannot have."""

    @abstractmethod
    def serializer(self, part: RecordPart) -> Serializer:
        """Serializes rows."""

    @abstractmethod
    def deserializer(self, part: RecordPart) -> Deserializer:
        """Deserializes rows."""


def topic_of(subject: str) -> str:
    """The topic whose records' keys or values the subject names."""
    return subject.removesuffix("-key") if is_key(subject) else subject.removesuffix("-value")


def is_key(subject: str) -> bool:
    """Return whether the subject names keys."""
    return subject.endswith("-key")


def part_name(subject: str) -> str:
    """`key` or `value`, for messages."""
    return "key" if is_key(subject) else "value"


def check_count(expected: int, row: Row, subject: str) -> None:
    """Raise FormatError unless the row has a value for each column."""
    if len(row) != expected:
        raise FormatError(
            f"Column count mismatch on serialization. topic: {topic_of(subject)}, "
            f"expected: {expected}, got: {len(row)}"
        )


def check_properties(
    format_name: str, properties: Mapping[str, str], supported: Iterable[str]
) -> None:
    """Raise AnalysisError for a property that the format does not know, or that is empty."""
    unknown = [name for name in properties if name not in set(supported)]
    if unknown:
        raise AnalysisError(
            f"{format_name} does not support the following configs: [{', '.join(unknown)}]"
        )
    for name, value in properties.items():
        if not value.strip():
            shown = ", ".join(f"{key}={text}" for key, text in properties.items())
            raise AnalysisError(f"{name} cannot be empty. Format configuration: {{{shown}}}")


def has_other_than_string_keys(columns: Sequence[Column]) -> bool:
    """Return whether a column has, at any depth, a map whose keys are not STRING."""
    return any(_other_keys(column.type) for column in columns)


def _other_keys(sql_type: SqlType) -> bool:
    if isinstance(sql_type, Map):
        return sql_type.key != STRING or _other_keys(sql_type.value)
    if isinstance(sql_type, Array):
        return _other_keys(sql_type.item)
    if isinstance(sql_type, Struct):
        return any(_other_keys(field.type) for field in sql_type.fields)
    return False


def columns_text(columns: Sequence[Column]) -> str:
    """Columns as a list in brackets, as messages about formats have them."""
    texts = [f"{column} KEY" if column.part is Part.KEY else str(column) for column in columns]
    return f"[{', '.join(texts)}]"
