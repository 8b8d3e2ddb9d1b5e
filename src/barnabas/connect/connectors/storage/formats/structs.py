"""Plain values as Connect's, compiled per schema: what readers of files make records of."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import date, datetime, time
from typing import Any

from barnabas.connect.connectors.storage.formats.plain import part
from barnabas.schemas.data.schema import Schema, Struct, Type

Make = Callable[[Any], Any]


def maker(schema: Schema) -> Make:
    """Return what makes a value of the schema from dicts, lists and what is in them."""
    make = _maker(schema)
    return lambda value: None if value is None else make(value)


def _maker(schema: Schema) -> Make:
    match schema.type:
        case Type.STRUCT:
            names = [field.name for field in schema.fields]
            makes = [maker(field.schema) for field in schema.fields]

            def struct(value: Mapping[str, Any]) -> Struct:
                pairs = zip(names, makes, strict=True)
                return Struct(schema, [make(value.get(name)) for name, make in pairs])

            return struct
        case Type.ARRAY:
            items = maker(part(schema.value_schema))
            return lambda value: [items(item) for item in value]
        case Type.MAP:
            keys, values = maker(part(schema.key_schema)), maker(part(schema.value_schema))

            def mapping(value: Any) -> dict[Any, Any]:
                pairs = value.items() if isinstance(value, Mapping) else value
                return {keys(key): values(item) for key, item in pairs}

            return mapping
    return _logical


def _logical(value: Any) -> Any:
    """Milliseconds are the finest that Connect's times have; datetimes are whole ones to it."""
    if isinstance(value, (datetime, time)):
        return value.replace(microsecond=value.microsecond // 1000 * 1000)
    if isinstance(value, date):
        return date(value.year, value.month, value.day)
    return value
