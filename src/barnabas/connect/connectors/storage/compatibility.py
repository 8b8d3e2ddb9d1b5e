"""Whether a record fits into a file that was begun with another version of its schema.

Source: io.confluent.connect.storage.schema.StorageSchemaCompatibility.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from barnabas.schemas.data.errors import SchemaProjectorError
from barnabas.schemas.data.projection import project
from barnabas.schemas.data.schema import Schema, Type

_NUMBERS = [Type.INT8, Type.INT16, Type.INT32, Type.INT64, Type.FLOAT32, Type.FLOAT64]


class Compatibility(StrEnum):
    """`schema.compatibility`: NONE ends a file at each change; the others project where they can.

    BACKWARD and FULL write all with the newest schema, FORWARD with the oldest.
    """

    NONE = "NONE"
    BACKWARD = "BACKWARD"
    FORWARD = "FORWARD"
    FULL = "FULL"

    def needs_new_file(self, schema: Schema | None, current: Schema | None) -> bool:
        """Whether a record's schema does not fit the file's. Raises SchemaProjectorError."""
        if schema is current:
            return False
        if schema is None or current is None:
            raise SchemaProjectorError(
                "Switch between schema-based and schema-less data is not supported"
            )
        if self is Compatibility.NONE:
            return schema != current
        if schema.version is None or current.version is None:
            raise SchemaProjectorError(f"Schema version required for {self.name} compatibility")
        if schema == current:
            return False
        if _is_incompatible(schema, current):
            return True
        if self is Compatibility.FORWARD:
            return schema.version < current.version
        return schema.version > current.version

    def projected(self, schema: Schema | None, value: Any, current: Schema | None) -> Any:
        """Return the value as the file's schema wants it. Raises SchemaProjectorError."""
        if self is Compatibility.NONE or schema is current or schema is None or current is None:
            return value
        return value if schema == current else project(schema, value, current)


def _is_incompatible(schema: Schema, current: Schema) -> bool:
    if schema.type is not current.type and not _is_promotable(schema.type, current.type):
        return True
    if schema.name != current.name or dict(schema.parameters) != dict(current.parameters):
        return True
    if schema.optional and not current.optional and current.default is None:
        return True
    if schema.type is Type.STRUCT:
        return _fields_incompatible(schema, current)
    parts = (
        (schema.key_schema, current.key_schema),
        (schema.value_schema, current.value_schema),
    )
    return any(a is not None and b is not None and _is_incompatible(a, b) for a, b in parts)


def _fields_incompatible(schema: Schema, current: Schema) -> bool:
    for field in schema.fields:
        other = current.field(field.name)
        if other is not None and _is_incompatible(field.schema, other.schema):
            return True
    return any(
        schema.field(field.name) is None
        and not field.schema.optional
        and field.schema.default is None
        for field in current.fields
    )


def _is_promotable(source: Type, target: Type) -> bool:
    if source not in _NUMBERS or target not in _NUMBERS:
        return False
    return _NUMBERS.index(source) <= _NUMBERS.index(target)
