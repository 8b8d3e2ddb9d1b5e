"""TO_JSON_STRING: any SQL value as JSON."""

from __future__ import annotations

import base64
from collections.abc import Sequence

from barnabas.java.time.calendar import date_text, iso_timestamp_text, time_text
from barnabas.sql.functions.catalog import scalar
from barnabas.sql.functions.json_text import Json, write
from barnabas.sql.functions.ordering import key_of
from barnabas.sql.java_text import text_maker
from barnabas.sql.types import Array, BaseType, Map, SqlType, Struct, Value

JSON = "JSON"


@scalar(
    "TO_JSON_STRING",
    "(input T) -> STRING",
    description="Any value as JSON: bytes in base64, dates and times as text, fields of structs "
    "and keys of maps in alphabetical order.",
    category=JSON,
    takes_types=True,
    parameters={"input": "the value"},
)
def to_json_string(value: Value, *, types: Sequence[SqlType | None]) -> str:
    return write(_prepared(value, types[0]), is_plain=True)


def _prepared(value: Value, sql_type: SqlType | None) -> Json:
    """The value in JSON's types."""
    if value is None or sql_type is None:
        return value
    match sql_type:
        case Array(item):
            return [_prepared(element, item) for element in value]
        case Map(key, member):
            key_text = text_maker(key)
            members = {key_text(k): _prepared(v, member) for k, v in value.items()}
            return {name: members[name] for name in sorted(members, key=key_of)}
        case Struct(fields):
            fields_in_order = sorted(fields, key=lambda field: key_of(field.name))
            return {f.name: _prepared(value[f.name], f.type) for f in fields_in_order}
    match sql_type.base:
        case BaseType.BYTES:
            return base64.b64encode(value).decode("ascii")
        case BaseType.DATE:
            return date_text(value)
        case BaseType.TIME:
            return time_text(value)
        case BaseType.TIMESTAMP:
            return iso_timestamp_text(value)
    return value
