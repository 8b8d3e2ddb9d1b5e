"""Records of the three topics as bytes: JSON as Connect's own converter writes it, without schemas.

Keys of the config and status topics are text, those of the offset topic JSON.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any


class RecordError(ValueError):
    """A record's bytes are not what a worker writes."""


def dump(value: Any) -> bytes:
    """Return JSON in Connect's form: no spaces, text as it is."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def parse(data: bytes | None) -> Any:
    """Return the value of JSON; None for no bytes. Raises RecordError."""
    if data is None:
        return None
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        raise RecordError(f"not JSON: {error}") from error


def parse_object(data: bytes) -> Mapping[str, Any]:
    """Return a JSON object. Raises RecordError."""
    value = parse(data)
    if not isinstance(value, dict):
        raise RecordError(f"in the wrong format: {json_type(value)}")
    return value


def text(fields: Mapping[str, Any], name: str) -> str:
    """Return a field that is a string. Raises RecordError."""
    value = fields.get(name)
    if not isinstance(value, str):
        raise RecordError(f"'{name}' should be a string but is {json_type(value)}")
    return value


def number(fields: Mapping[str, Any], name: str) -> int:
    """Return a field that is a whole number. Raises RecordError."""
    value = fields.get(name)
    if not isinstance(value, int) or isinstance(value, bool):
        raise RecordError(f"'{name}' should be a number but is {json_type(value)}")
    return value


def json_type(value: Any) -> str:
    """Return what JSON calls a value's type; the value itself may be a secret."""
    if value is None:
        return "null"
    names = {bool: "a boolean", int: "a number", float: "a number", str: "a string"}
    return names.get(type(value), "an array" if isinstance(value, list) else "an object")
