"""Default values of fields: whether a JSON value is one of a schema.

As mild as Java: a string is a default of any enum, fixed and bytes, and of a union any branch
may have it. Checked for new schemas only.
"""

from typing import Any

from barnabas.schemas.avro.json_text import FaultAtPlace, write
from barnabas.schemas.avro.model import MISSING, Array, Field, Map, Primitive, Record, Schema, Union

# Unions of thousands of records, in lists of thousands of values, would take hours.
STEPS_MAX = 1_000_000
_SHOWN_CHARS_MAX = 80
_RANGES = {"int": range(-(1 << 31), 1 << 31), "long": range(-(1 << 63), 1 << 63)}


def check_default(field: Field, *, linking: bool = False) -> None:
    """Refuse a field whose default is not a value of its type.

    `linking` says that names further down are being found: a record that is not whole yet has no
    values, so no record can be the default of a field inside itself.
    """
    if field.default is MISSING or _Check(linking).accepts(field.type, field.default):
        return
    shown = write(field.default)
    if len(shown) > _SHOWN_CHARS_MAX:
        shown = shown[:_SHOWN_CHARS_MAX] + "…"
    raise FaultAtPlace(
        f"the default of field {field.name!r} is {shown}, "
        f"which is not of type {describe(field.type)}"
    )


def describe(schema: Schema) -> str:
    """A few words for a message."""
    if isinstance(schema, Primitive):
        return schema.kind
    if isinstance(schema, Array | Map):
        return schema.kind
    if isinstance(schema, Union):
        return "[" + ", ".join(map(describe, schema.branches)) + "]"
    return f"{schema.kind} {schema.name.full}"


class _Check:
    """One default against one schema. Remembers verdicts: unions of records try all branches."""

    def __init__(self, linking: bool) -> None:
        self._linking = linking
        self._verdicts: dict[tuple[int, int], bool] = {}
        self._steps = 0

    def accepts(self, schema: Schema, value: Any) -> bool:
        self._steps += 1
        if self._steps > STEPS_MAX:
            raise FaultAtPlace(f"a default takes more than {STEPS_MAX} steps to check")
        if isinstance(schema, Primitive):
            return _is_primitive(schema.kind, value)
        if isinstance(schema, Array):
            return isinstance(value, list) and all(
                self.accepts(schema.items, item) for item in value
            )
        if isinstance(schema, Map):
            return isinstance(value, dict) and all(
                self.accepts(schema.values, item) for item in value.values()
            )
        if isinstance(schema, Union):
            return any(self.accepts(branch, value) for branch in schema.branches)
        if isinstance(schema, Record):
            return isinstance(value, dict) and self._is_record(schema, value)
        return isinstance(value, str)

    def _is_record(self, schema: Record, value: dict[str, Any]) -> bool:
        if self._linking and not schema.linked:
            raise FaultAtPlace(
                f"a default holds a value of {schema.name.full}, inside of which it is"
            )
        key = (id(schema), id(value))
        verdict = self._verdicts.get(key)
        if verdict is None:
            verdict = self._verdicts[key] = all(
                self.accepts(field.type, value[field.name])
                if field.name in value
                # A default that replaces a missing value was checked in its place.
                else field.default is not MISSING
                for field in schema.fields
            )
        return verdict


def _is_primitive(kind: str, value: Any) -> bool:
    if kind in ("string", "bytes"):
        return isinstance(value, str)
    if kind == "null":
        return value is None
    if kind == "boolean":
        return isinstance(value, bool)
    if isinstance(value, bool):
        return False
    if kind in ("int", "long"):
        return isinstance(value, int) and value in _RANGES[kind]
    return isinstance(value, int | float)
