"""ExtractSchemaToNewRecord: a change describes the columns of its table.

Source: io.debezium.transforms.ExtractSchemaToNewRecord (Debezium 3.3).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from barnabas.connect.record import ConnectRecord
from barnabas.connect.transforms.base import PlainTransform, require_struct
from barnabas.connect.transforms.debezium.envelope import (
    AFTER,
    BEFORE,
    SOURCE,
    DebeziumError,
    is_envelope,
    with_value,
)
from barnabas.schemas.data.builder import (
    OPTIONAL_INT32,
    OPTIONAL_STRING,
    STRING,
    array_of,
    struct_of,
    with_fields,
)
from barnabas.schemas.data.cache import Cache
from barnabas.schemas.data.errors import (
    DataError,
    IllegalArgumentError,
    NullPointerError,
)
from barnabas.schemas.data.schema import Schema, Struct, validate_value

_PARAMETER: Final = "__debezium.source.column."
_COLUMN: Final = struct_of(
    {
        "name": STRING,
        "typeName": STRING,
        "length": OPTIONAL_INT32,
        "scale": OPTIONAL_INT32,
        "comment": OPTIONAL_STRING,
    },
    name="io.debezium.connector.source.schema.Column",
    version=1,
)
_TABLE: Final = struct_of(
    {"columns": array_of(_COLUMN)}, name="io.debezium.connector.source.schema.Table", version=1
)
_BLOCK: Final = struct_of(
    {"id": STRING, "table": _TABLE}, name="io.debezium.connector.source.Schema", version=1
)


class ExtractSchemaToNewRecord(PlainTransform):
    """Adds the field `sourceSchema`."""

    def _configure(self, parsed: Any) -> None:
        self._schemas: Cache[Schema, Schema] = Cache(_widened)
        self._columns: Cache[Schema, Struct] = Cache(_table)

    def apply(self, record: ConnectRecord) -> ConnectRecord:
        """Return the change with its columns. Raises ConnectError."""
        if record.value is None or not is_envelope(record):
            return record
        envelope = require_struct(record.value, "field extraction", record.value_schema)
        for name in (AFTER, BEFORE):
            if envelope.schema.field(name) is None:
                raise IllegalArgumentError(f"Unknown field: {name}")
        if envelope.get(AFTER) is None and envelope.get(BEFORE) is None:
            return record
        source = envelope.get(SOURCE)
        if source is None:
            raise NullPointerError("There is no source in the envelope")
        name = source.get("table")
        validate_value(STRING, name, "id")
        schema, table = self._schemas(envelope.schema), self._columns(envelope.schema)
        values = [envelope.get(field.name) for field in envelope.schema.fields]
        block = Struct(_BLOCK, [name, table])
        return with_value(record, schema, Struct(schema, [*values, block]))


def _widened(envelope: Schema) -> Schema:
    fields = [(field.name, field.schema) for field in envelope.fields]
    return replace(with_fields(envelope, [*fields, ("sourceSchema", _BLOCK)]), default=None)


def _table(envelope: Schema) -> Struct:
    after = envelope.field(AFTER)
    assert after is not None
    return Struct(_TABLE, [[_column(field.schema) for field in after.schema.fields]])


def _column(schema: Schema) -> Struct:
    def told(name: str) -> str | None:
        return schema.parameters.get(_PARAMETER + name)

    if told("name") is None or told("type") is None:
        raise DebeziumError(
            'Ensure that enable configurations "column.propagate.source.type" or '
            '"datatype.propagate.source.type" and the value is set to ".*"'
        )
    values = [told("name"), told("type"), _number(told("length")), _number(told("scale"))]
    return Struct(_COLUMN, [*values, told("comment")])


def _number(text: str | None) -> int | None:
    try:
        return None if text is None else int(text)
    except ValueError:
        raise DataError(f"{text} is no length or scale of a column") from None
