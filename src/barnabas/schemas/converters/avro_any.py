"""Data without a schema in Avro: a record with one field for each type, one of which has the value.

Whole numbers are long, as they have no width in Python; what other writers wrote as int or float is
read as well.

Source: io.confluent.connect.avro.AvroData.ANYTHING_SCHEMA (Confluent 8).
"""

from __future__ import annotations

from typing import Any, Final

from barnabas.schemas.data.errors import DataError
from barnabas.schemas.data.schema import java_class

_NAMESPACE: Final = "io.confluent.connect.avro"
NAME: Final = f"{_NAMESPACE}.Anything"
_LONG_BITS: Final = 63
_DEPTH_MAX: Final = 200


def _field(name: str, kind: Any) -> dict[str, Any]:
    return {"name": name, "type": ["null", kind], "default": None}


_PLAIN: Final = ("boolean", "bytes", "double", "float", "int", "long", "string")
SCHEMA: Final = {
    "type": "record",
    "name": "Anything",
    "namespace": _NAMESPACE,
    "fields": [
        *(_field(name, name) for name in _PLAIN),
        _field("array", {"type": "array", "items": "Anything"}),
        _field(
            "map",
            {
                "type": "array",
                "items": {
                    "type": "record",
                    "name": "MapEntry",
                    "fields": [
                        {"name": "key", "type": "Anything"},
                        {"name": "value", "type": "Anything"},
                    ],
                },
            },
        ),
    ],
}


def to_any(value: Any, depth: int = 0) -> dict[str, Any]:
    """The record of a value; of null it is empty. Raises DataError."""
    if depth > _DEPTH_MAX:
        raise DataError("The value is nested too deeply")
    match value:
        case None:
            return {}
        case bool():
            return {"boolean": value}
        case int() if -1 << _LONG_BITS <= value < 1 << _LONG_BITS:
            return {"long": value}
        case float():
            return {"double": value}
        case str():
            return {"string": value}
        case bytes() | bytearray() | memoryview():
            return {"bytes": bytes(value)}
        case list() | tuple():
            return {"array": [to_any(item, depth + 1) for item in value]}
        case dict():
            entries = (
                {"key": to_any(key, depth + 1), "value": to_any(item, depth + 1)}
                for key, item in value.items()
            )
            return {"map": list(entries)}
    raise DataError(f"Java {java_class(value)} does not have corresponding schema type.")


def from_any(record: dict[str, Any]) -> Any:
    """The value of such a record. Raises DataError for a key that cannot be one."""
    for name in _PLAIN:
        if record[name] is not None:
            return record[name]
    if record["array"] is not None:
        return [from_any(item) for item in record["array"]]
    if record["map"] is None:
        return None
    entries = [(from_any(entry["key"]), entry["value"]) for entry in record["map"]]
    try:
        return {key: from_any(value) for key, value in entries}
    except TypeError as error:
        raise DataError("A map without a schema has a list or a map as a key") from error
