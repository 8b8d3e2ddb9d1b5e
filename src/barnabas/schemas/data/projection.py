"""Projects values of one schema to another, if the two are compatible.

Source: org.apache.kafka.connect.data.SchemaProjector (Kafka 4.3).
"""

from __future__ import annotations

from typing import Any, Final

from barnabas.schemas.data.errors import SchemaProjectorError
from barnabas.schemas.data.schema import Schema, Struct, Type
from barnabas.schemas.data.text import java_text

_NUMBERS: Final = (
    Type.INT8,
    Type.INT16,
    Type.INT32,
    Type.INT64,
    Type.FLOAT32,
    Type.FLOAT64,
)
"""A number may become one of a type that stands later."""


def project(source: Schema, value: Any, target: Schema) -> Any:
    """The value as one of the target's schema. Raises SchemaProjectorError."""
    _check_compatible(source, target)
    if source.optional and not target.optional:
        if target.default is None:
            raise SchemaProjectorError(
                "Writer schema is optional, however, target schema does not provide "
                "a default value."
            )
        if value is None:
            return target.default
    return None if value is None else _project(source, value, target)


def _project(source: Schema, value: Any, target: Schema) -> Any:
    match target.type:
        case Type.STRUCT:
            return _project_struct(source, value, target)
        case Type.ARRAY:
            items, target_items = _part(source.value_schema), _part(target.value_schema)
            return [project(items, item, target_items) for item in value]
        case Type.MAP:
            keys, target_keys = _part(source.key_schema), _part(target.key_schema)
            items, target_items = _part(source.value_schema), _part(target.value_schema)
            return {
                project(keys, key, target_keys): project(items, item, target_items)
                for key, item in value.items()
            }
    is_float = target.type in (Type.FLOAT32, Type.FLOAT64)
    return float(value) if is_float and type(value) is int else value


def _project_struct(source: Schema, struct: Struct, target: Schema) -> Struct:
    projected = Struct.of(target)
    for field in target.fields:
        source_field = source.field(field.name)
        if source_field is not None:
            try:
                value = project(source_field.schema, struct.get(field.name), field.schema)
            except SchemaProjectorError as error:
                raise SchemaProjectorError(f"Error projecting {field.name}") from error
            projected.put(field.name, value)
        elif not field.schema.optional:
            if field.schema.default is None:
                raise SchemaProjectorError(
                    f"Required field `{field.name}` is missing from source schema: {source}"
                )
            projected.put(field.name, field.schema.default)
    return projected


def _check_compatible(source: Schema, target: Schema) -> None:
    is_promotion = (
        source.type in _NUMBERS
        and target.type in _NUMBERS
        and _NUMBERS.index(source.type) <= _NUMBERS.index(target.type)
    )
    if source.type is not target.type and not is_promotion:
        raise SchemaProjectorError(
            f"Schema type mismatch. source type: {source.type.name} "
            f"and target type: {target.type.name}"
        )
    if source.name != target.name:
        raise SchemaProjectorError(
            f"Schema name mismatch. source name: {java_text(source.name)} "
            f"and target name: {java_text(target.name)}"
        )
    if source.parameters != target.parameters:
        raise SchemaProjectorError(
            "Schema parameters not equal. source parameters: "
            f"{java_text(source.parameters or None)} "
            f"and target parameters: {java_text(target.parameters or None)}"
        )


def _part(schema: Schema | None) -> Schema:
    if schema is None:
        raise SchemaProjectorError("The schema does not say what its items are")
    return schema
