"""VectorToJsonConverter: vectors, as of pgvector, as texts of JSON.

Source: io.debezium.transforms.VectorToJsonConverter (Debezium 3.3).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from barnabas.connect.record import ConnectRecord
from barnabas.connect.transforms.base import Transform, require_struct
from barnabas.connect.transforms.debezium.envelope import typed
from barnabas.schemas.data.builder import with_fields
from barnabas.schemas.data.cache import Cache
from barnabas.schemas.data.errors import NullPointerError
from barnabas.schemas.data.recursive import SchemaReference
from barnabas.schemas.data.schema import Schema, Struct, Type
from barnabas.schemas.data.text import java_text


class VectorToJsonConverter(Transform):
    """Writes vectors at the top and in inner structs as JSON; those in lists and maps stay."""

    def _configure(self, parsed: Any) -> None:
        self._schemas: Cache[Schema, Schema] = Cache(_without_vectors)

    def apply(self, record: ConnectRecord) -> ConnectRecord:
        """Return the record with texts in the place of vectors. Raises ConnectError."""
        if record.value is None:
            return record
        value = require_struct(record.value, "Value should be a struct", record.value_schema)
        schema = self._schemas(value.schema)
        return record.with_value(schema, _written(value, schema))


def _without_vectors(schema: Schema) -> Schema:
    fields = [(field.name, _field_schema(field.schema)) for field in schema.fields]
    return replace(with_fields(schema, fields), default=None)


def _field_schema(schema: Schema) -> Schema:
    if schema.name in _TEXTS:
        return Schema(Type.STRING, optional=schema.optional, name=_JSON, version=1)
    return _without_vectors(schema) if _is_walked(schema) else schema


def _is_walked(schema: Schema) -> bool:
    """Return whether a struct's fields are looked at: a struct within itself stays as it is."""
    return schema.type is Type.STRUCT and type(schema) is not SchemaReference


def _written(struct: Struct, schema: Schema) -> Struct:
    made = Struct.of(schema)
    for field in struct.schema.fields:
        value = struct.get(field.name)
        text = _TEXTS.get(field.schema.name or "")
        if value is not None and text is not None:
            value = text(value, field.schema)
        elif value is not None and _is_walked(field.schema):
            inner = require_struct(value, "Should be a struct.", field.schema)
            value = _written(inner, schema.fields[field.index].schema)
        made.put(field.name, value)
    return made


def _dense(values: Any, schema: Schema) -> str:
    return f'{{ "values": [{", ".join(java_text(v, schema.value_schema) for v in values)}] }}'


def _sparse(vector: Any, schema: Schema) -> str:
    struct = require_struct(vector, "SparseDoubleVector should be a struct.", schema)
    dimensions = java_text(typed(struct, "dimensions", Type.INT16))
    entries = typed(struct, "vector", Type.MAP)
    if entries is None:
        raise NullPointerError("A sparse vector has no values")
    texts = (f'"{place}": {java_text(entries[place])}' for place in sorted(entries))
    return f'{{ "dimensions": {dimensions}, "vector": {{ {", ".join(texts)} }} }}'


_JSON: Final = "io.debezium.data.Json"
_TEXTS: Final[dict[str, Callable[[Any, Schema], str]]] = {
    "io.debezium.data.DoubleVector": _dense,
    "io.debezium.data.FloatVector": _dense,
    "io.debezium.data.SparseDoubleVector": _sparse,
}
