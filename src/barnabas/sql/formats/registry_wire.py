"""Rows of formats with a schema registry, in its wire format.

A serialiser asks the registry for its id once, when it writes its first row. A deserialiser asks
for each schema that it meets and keeps what it made of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from barnabas.schemas.errors import FormatError
from barnabas.schemas.registry_client import SchemaStore, StoredSchema
from barnabas.schemas.wire_format import PREFIX_BYTES, UNKNOWN_MAGIC, prefix_of, schema_id_of
from barnabas.sql.errors import AnalysisError
from barnabas.sql.formats.format import (
    Deserializer,
    RecordPart,
    Serializer,
    check_count,
    part_name,
    topic_of,
)
from barnabas.sql.runtime.records import Row

SCHEMA_ID = "schemaId"
FULL_SCHEMA_NAME = "fullSchemaName"
SUBJECT_NAME = "subjectName"

_READERS_MAX = 256
"""So many schemas a deserialiser keeps; it forgets all when it meets more."""

RowReader = Callable[[bytes], Row | None]
"""A row from the data after the prefix. Raises FormatError, ValueError and other errors."""
RowWriter = Callable[[Row], bytes]


def asked_id(properties: Mapping[str, str]) -> int | None:
    """The id of the schema that a statement names. Raises AnalysisError."""
    text = properties.get(SCHEMA_ID)
    if text is None:
        return None
    try:
        return int(text)
    except ValueError:
        raise AnalysisError(f"A schema id is a whole number, not '{text}'") from None


def of_kind(schema: StoredSchema, schema_type: str) -> StoredSchema:
    """The schema. Raises AnalysisError if it is of another type."""
    if schema.type != schema_type:
        raise AnalysisError(f"Schema {schema.id} is of type {schema.type}, not {schema_type}")
    return schema


def store_of(schemas: SchemaStore | None, format_name: str) -> SchemaStore:
    """The registry. Raises AnalysisError if none is configured."""
    if schemas is None:
        raise AnalysisError(
            f"The format {format_name} needs a schema registry: set ksql.schema.registry.url"
        )
    return schemas


def wire_serializer(part: RecordPart, prepare: Callable[[], tuple[int, RowWriter]]) -> Serializer:
    """Rows to the wire; `prepare` gives the schema's id and how rows are written with it."""
    subject, count, bare = part.subject, len(part.columns), part.is_bare
    made: list[tuple[bytes, RowWriter]] = []

    def serialize(row: Row | None) -> bytes | None:
        if row is None:
            return None
        check_count(count, row, subject)
        if bare and row[0] is None:
            return None
        try:
            if not made:
                schema_id, write = prepare()
                made.append((prefix_of(schema_id), write))
            prefix, write = made[0]
            return prefix + write(row)
        except FormatError as error:
            raise _not_written(subject, error, retriable=error.retriable) from error
        except WRITE_ERRORS as error:
            raise _not_written(subject, error) from error

    return serialize


WRITE_ERRORS = (ArithmeticError, ValueError, TypeError, KeyError, AttributeError)
"""Exceptions that libraries raise for values that do not fit their schema."""


def _not_written(subject: str, error: Exception, *, retriable: bool = False) -> FormatError:
    return FormatError(
        f"Error serializing message to topic: {topic_of(subject)}. {error}", retriable=retriable
    )


def wire_deserializer(
    subject: str,
    store: SchemaStore,
    schema_type: str,
    prepare: Callable[[StoredSchema], RowReader],
) -> Deserializer:
    """Rows from the wire; `prepare` makes of a schema what reads data written with it."""
    readers: dict[int, RowReader] = {}

    def deserialize(data: bytes | None) -> Row | None:
        if data is None:
            return None
        try:
            schema_id = schema_id_of(data)
            if schema_id is None:
                raise FormatError(UNKNOWN_MAGIC)
            read = readers.get(schema_id)
            if read is None:
                read = prepare(of_kind(store.by_id(schema_id), schema_type))
                if len(readers) >= _READERS_MAX:
                    readers.clear()
                readers[schema_id] = read
            return read(data[PREFIX_BYTES:])
        except FormatError as error:
            raise _not_read(subject, error, retriable=error.retriable) from error
        except READ_ERRORS as error:
            raise _not_read(subject, error) from error

    return deserialize


READ_ERRORS = (
    AnalysisError,
    ArithmeticError,
    ValueError,
    TypeError,
    KeyError,
    IndexError,
    AttributeError,
    EOFError,
    RecursionError,
)
"""Exceptions that libraries raise for data that do not fit their schema."""


def _not_read(subject: str, error: Exception, *, retriable: bool = False) -> FormatError:
    return FormatError(
        f"Error deserializing message {part_name(subject)} from topic: {topic_of(subject)}: "
        f"{error or type(error).__name__}",
        retriable=retriable,
    )
