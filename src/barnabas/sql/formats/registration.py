"""Schemas that statements leave in the registry, as ksqlDB registers them for new sources."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from barnabas.schemas.errors import FormatError
from barnabas.schemas.registry_client import SchemaStore
from barnabas.sql.errors import AnalysisError
from barnabas.sql.formats.catalog import format_named, is_wrapped
from barnabas.sql.formats.format import topic_of
from barnabas.sql.formats.registry_wire import asked_id
from barnabas.sql.schema import Column


def register_columns(
    format_name: str,
    properties: Mapping[str, str],
    columns: Sequence[Column],
    subject: str,
    store: SchemaStore | None,
    *,
    wrapping: bool | None,
    is_sink: bool,
) -> int | None:
    """Register the schema of a key's or value's columns; the id, or None.

    `wrapping`: what `catalog.key_wrapping` or `value_wrapping` says. `is_sink`: a query writes the
    topic; the schema of one that is only read counts if the registry has none for it.
    A schema that the statement names by its id is registered as it stands, unless it refers to
    others: what was registered with them is left as it is.
    Raises AnalysisError, also if the registry does not answer.
    """
    format_ = format_named(format_name)
    if format_.schemas is None or not columns:
        return None
    topic = topic_of(subject)
    if store is None:
        raise AnalysisError(
            f"Cannot create topic '{topic}' with format {format_.name} without configuring "
            "'ksql.schema.registry.url'"
        )
    try:
        schema_id = asked_id(properties)
        if schema_id is not None:
            return _register_named(schema_id, subject, store)
        if not is_sink and (known := store.latest(subject)) is not None:
            return known.id
        text = format_.schemas.text(columns, properties, wraps=is_wrapped(format_, wrapping))
        return store.register(subject, format_.schemas.schema_type, text)
    except FormatError as error:
        raise AnalysisError(f"Could not register schema for topic {topic}: {error}") from error


def _register_named(schema_id: int, subject: str, store: SchemaStore) -> int:
    latest = store.latest(subject)
    if latest is not None and latest.id == schema_id:
        return schema_id
    schema = store.by_id(schema_id)
    if schema.references:
        return schema_id
    registered = store.register(subject, schema.type, schema.text)
    if registered != schema_id:
        raise AnalysisError(
            f"Schema id registered is {registered} which is different from provided {schema_id}.\n"
            f"Topic: {topic_of(subject)}\nSubject: {subject}\nSchema: {schema.text}"
        )
    return registered
