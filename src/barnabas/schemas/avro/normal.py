"""The normal form: one text for all schemas that differ only in what has no order.

As Confluent's `normalize=true`: properties by name (those of a logical type first), aliases by
name, a default as its type writes it (1 of a double is 1.0), no empty docs, no `error` records.
"""

import struct
from collections.abc import Sequence
from typing import Any

from barnabas.schemas.avro.canonical import Writer
from barnabas.schemas.avro.logical import logical_type
from barnabas.schemas.avro.model import (
    Array,
    Field,
    Map,
    Name,
    Named,
    Primitive,
    Props,
    Record,
    Schema,
    Union,
)


class _NormalWriter(Writer):
    def _props(self, owner: Schema | Field, props: Props) -> str:
        if not props:
            return ""
        first: list[str] = []
        if not isinstance(owner, Field) and (logical := logical_type(owner)):
            first = ["logicalType"]
            if logical == "decimal":
                first += ["precision", "scale"] if props.get("scale") else ["precision"]
        rest = sorted((key for key in props if key not in first), key=_java_order)
        return super()._props(owner, {key: _sorted_keys(props[key]) for key in first + rest})

    def _aliases(self, schema: Named) -> Sequence[str]:
        by_text: dict[str, Name] = {alias.alias_of(schema.name): alias for alias in schema.aliases}
        return [
            by_text[text].seen_from(schema.name.space) for text in sorted(by_text, key=_java_order)
        ]

    def _field_aliases(self, field: Field) -> Sequence[str]:
        return sorted(field.aliases, key=_java_order)

    def _doc(self, schema: Named) -> str | None:
        return schema.doc or None

    def _default(self, field: Field) -> Any:
        return _sorted_keys(_as_value(field.type, field.default))

    def _is_error(self, record: Record) -> bool:
        return False


NORMAL = _NormalWriter()


def _java_order(text: str) -> bytes:
    return text.encode("utf-16-be", "surrogatepass")


def _sorted_keys(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _sorted_keys(value[key]) for key in sorted(value, key=_java_order)}
    if isinstance(value, list):
        return [_sorted_keys(item) for item in value]
    return value


def _as_value(schema: Schema, default: Any) -> Any:
    """A default as a value of its type is written."""
    if isinstance(schema, Union):
        branch = next((b for b in schema.branches if _may_hold(b, default)), None)
        return default if branch is None else _as_value(branch, default)
    if isinstance(schema, Array) and isinstance(default, list):
        return [_as_value(schema.items, item) for item in default]
    if isinstance(schema, Map) and isinstance(default, dict):
        return {key: _as_value(schema.values, item) for key, item in default.items()}
    if isinstance(schema, Record) and isinstance(default, dict):
        return {
            key: _as_value(schema.field_by_name[key].type, item)
            if key in schema.field_by_name
            else item
            for key, item in default.items()
        }
    if isinstance(schema, Primitive) and type(default) in (int, float):
        return _as_number(schema.kind, default)
    if schema.kind in ("bytes", "fixed") and isinstance(default, str):
        return default.encode("latin-1", "replace").decode("latin-1")
    return default


def _as_number(kind: str, value: float) -> float:
    try:
        if kind == "double":
            return float(value)
        return _as_float(float(value)) if kind == "float" else value
    except OverflowError:  # beyond all doubles
        return float("inf") if value > 0 else float("-inf")


def _as_float(value: float) -> float:
    """The shortest decimal number that is the same in 32 bits."""
    try:
        bits = struct.pack(">f", value)
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")
    exact: float = struct.unpack(">f", bits)[0]
    shorter = (float(f"{exact:.{places}e}") for places in range(9))
    return next((s for s in shorter if _packs_to(s, bits)), exact)


def _packs_to(value: float, bits: bytes) -> bool:
    try:
        return struct.pack(">f", value) == bits
    except OverflowError:
        return False


def _may_hold(schema: Schema, default: Any) -> bool:
    """Whether a value of a type is written as such JSON, roughly: which branch a default is of."""
    if isinstance(default, str):
        return schema.kind in ("string", "enum", "bytes", "fixed")
    if isinstance(default, bool):
        return schema.kind == "boolean"
    if isinstance(default, int):
        return schema.kind in ("int", "long", "float", "double")
    if isinstance(default, float):
        return schema.kind in ("float", "double")
    if isinstance(default, list):
        return schema.kind == "array"
    return isinstance(default, dict) and schema.kind in ("map", "record")
