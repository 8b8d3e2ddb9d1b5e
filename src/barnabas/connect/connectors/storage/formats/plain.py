"""Connect's values as dicts, lists and what is in them, compiled per schema.

Logical types stay what they are: dates, times, moments and decimals.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from barnabas.schemas.data.errors import DataError
from barnabas.schemas.data.recursive import refuse_recursion
from barnabas.schemas.data.schema import DECIMAL, Schema, Struct, Type

Plain = Callable[[Any], Any]


def is_text_keyed(schema: Schema) -> bool:
    """Return whether a map's keys are texts that are never null, as Avro's are."""
    keys = schema.key_schema
    return keys is not None and keys.type is Type.STRING and not keys.optional


def part(schema: Schema | None) -> Schema:
    """Return the schema of a part. Raises DataError if none exists."""
    if schema is None:
        raise DataError("The schema does not say what its items are")
    return schema


def plain(schema: Schema, *, maps_as_pairs: bool) -> Plain | None:
    """Return what makes values plain; None where they are already.

    Maps become dicts or, where asked or where their keys are not texts, lists of pairs: tuples for
    Arrow, `{"key": …, "value": …}` for Avro.
    """
    made = _plain(schema, maps_as_pairs)
    default = schema.default
    if default is None:
        if made is None:
            return None
        some = made
        return lambda value: None if value is None else some(value)
    inner = made or _same
    return lambda value: inner(default if value is None else value)


def _plain(schema: Schema, maps_as_pairs: bool) -> Plain | None:
    refuse_recursion(schema, "a table or file of columns")
    match schema.type:
        case Type.STRUCT:
            return _struct(schema, maps_as_pairs)
        case Type.ARRAY:
            items = plain(part(schema.value_schema), maps_as_pairs=maps_as_pairs)
            return None if items is None else lambda value: [items(item) for item in value]
        case Type.MAP:
            return _map(schema, maps_as_pairs)
        case Type.BYTES if schema.name != DECIMAL:
            return bytes
    return None


def _struct(schema: Schema, maps_as_pairs: bool) -> Plain:
    names = [field.name for field in schema.fields]
    parts = [plain(field.schema, maps_as_pairs=maps_as_pairs) for field in schema.fields]
    changes = [(name, change) for name, change in zip(names, parts, strict=True) if change]

    def convert(value: Any) -> dict[str, Any]:
        if not isinstance(value, Struct):
            raise DataError(f"A struct was expected, not {type(value).__name__}")
        row = dict(zip(names, value.values, strict=True))
        for name, change in changes:
            row[name] = change(row[name])
        return row

    return convert


def _map(schema: Schema, maps_as_pairs: bool) -> Plain:
    keys = plain(part(schema.key_schema), maps_as_pairs=maps_as_pairs) or _same
    items = plain(part(schema.value_schema), maps_as_pairs=maps_as_pairs) or _same
    if maps_as_pairs:
        return lambda value: [(keys(key), items(item)) for key, item in value.items()]
    if is_text_keyed(schema):
        return lambda value: {key: items(item) for key, item in value.items()}
    return lambda value: [{"key": keys(k), "value": items(item)} for k, item in value.items()]


def _same(value: Any) -> Any:
    return value
