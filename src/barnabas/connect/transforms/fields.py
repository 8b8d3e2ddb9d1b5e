"""Transforms that take and make fields: ExtractField, HoistField, ReplaceField and ValueToKey.

A field is at the top, or at a path through structs and maps (KIP-821). Source:
org.apache.kafka.connect.transforms and its field.SingleFieldPath (Kafka 4.3).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from barnabas.connect.config.definition import (
    ConfigType,
    Definition,
    Importance,
    Setting,
)
from barnabas.connect.config.validators import list_of
from barnabas.connect.config.values import invalid
from barnabas.connect.record import ConnectRecord
from barnabas.connect.transforms.base import (
    FIELD_SYNTAX,
    REPLACE_NULL,
    Rebuild,
    Sided,
    Transform,
    java_split,
    plain,
    require_map,
    require_struct,
    two_sided,
)
from barnabas.schemas.data.builder import struct_of, with_fields
from barnabas.schemas.data.cache import Cache
from barnabas.schemas.data.errors import ConfigError, DataError, IllegalArgumentError
from barnabas.schemas.data.schema import Field, Schema, Struct, Type, validate_value

_PURPOSE = "nested field access"


class ExtractField(Sided):
    """Puts one field in the place of all."""

    definition: ClassVar[Definition] = Definition(
        [
            Setting("field", ConfigType.STRING, doc="The field to take."),
            REPLACE_NULL,
            FIELD_SYNTAX,
        ]
    )
    _PURPOSE: Final = "field extraction"

    def _configure(self, parsed: Mapping[str, Any]) -> None:
        self._name: str = parsed["field"]
        self._path = FieldPath(self._name, parsed[FIELD_SYNTAX.name])
        self._replaces_null: bool = parsed[REPLACE_NULL.name]
        self._found: Cache[Schema, Field | None] = Cache(self._path.field)

    def _apply(self, record: ConnectRecord, schema: Schema | None, value: Any) -> ConnectRecord:
        if schema is None:
            if value is None:
                return self._with(record, None, None)
            return self._with(record, None, self._path.of_map(require_map(value, self._PURPOSE)))
        struct = None if value is None else require_struct(value, self._PURPOSE, schema)
        field = self._found(schema)
        if field is None:
            raise IllegalArgumentError(f"Unknown field: {self._name}")
        if struct is None:
            return self._with(record, field.schema, None)
        taken = self._path.of_struct(struct, with_default=self._replaces_null)
        return self._with(record, field.schema, taken)


class HoistField(Sided):
    """Makes all of the key or value one field of a new one."""

    definition: ClassVar[Definition] = Definition(
        [Setting("field", ConfigType.STRING, doc="The field that is made.")]
    )

    def _configure(self, parsed: Mapping[str, Any]) -> None:
        self._name: str = parsed["field"]
        self._schemas: Cache[Schema, Schema] = Cache(lambda schema: struct_of({self._name: schema}))

    def _apply(self, record: ConnectRecord, schema: Schema | None, value: Any) -> ConnectRecord:
        if schema is None:
            return self._with(record, None, {self._name: value})
        made = self._schemas(schema)
        if value is None:
            validate_value(schema, None, self._name)
        return self._with(record, made, Struct(made, [value]))


def _check_renames(name: str, value: Any) -> None:
    renames_of(value)


def renames_of(pairs: list[str]) -> dict[str, str]:
    """New names by old ones. Raises ConfigError."""
    renames = {}
    for pair in pairs:
        parts = java_split(pair, ":")
        if len(parts) != 2:
            raise invalid("renames", pairs, f"Invalid rename mapping: {pair}")
        renames[parts[0]] = parts[1]
    return renames


class ReplaceField(Sided):
    """Leaves fields out, or renames them."""

    definition: ClassVar[Definition] = Definition([
        Setting("exclude", ConfigType.LIST, default=[],
                doc="The fields to leave out, even if they are included.", validator=list_of(),
                is_distinct=True),
        Setting("include", ConfigType.LIST, default=[],
                doc="The fields to keep; by default all.", validator=list_of(),
                is_distinct=True),
        Setting("renames", ConfigType.LIST, default=[], doc="New names, as old1:new1,old2:new2.",
                validator=_check_renames),
        REPLACE_NULL,
    ])  # fmt: skip
    _PURPOSE: Final = "field replacement"

    def _configure(self, parsed: Mapping[str, Any]) -> None:
        self._exclude = frozenset(parsed["exclude"])
        self._include = frozenset(parsed["include"])
        self._renames = renames_of(parsed["renames"])
        self._old_names = {new: old for old, new in self._renames.items()}
        self._replaces_null: bool = parsed[REPLACE_NULL.name]
        self._plans: Cache[Schema, Rebuild] = Cache(self._plan)

    def _apply(self, record: ConnectRecord, schema: Schema | None, value: Any) -> ConnectRecord:
        if value is None:
            return record
        if schema is None:
            entries = require_map(value, self._PURPOSE)
            kept = {self._new(k): item for k, item in entries.items() if self._is_kept(k)}
            return self._with(record, None, kept)
        struct = require_struct(value, self._PURPOSE, schema)
        made = self._plans(struct.schema)(struct)
        return self._with(record, made.schema, made)

    def _is_kept(self, name: str) -> bool:
        return name not in self._exclude and (not self._include or name in self._include)

    def _new(self, name: str) -> str:
        return self._renames.get(name, name)

    def _plan(self, schema: Schema) -> Rebuild:
        pairs = [(self._new(f.name), f.schema) for f in schema.fields if self._is_kept(f.name)]
        made = with_fields(plain(schema), pairs)
        sources = []
        for name, _ in pairs:
            source = schema.field(self._old_names.get(name, name))
            if source is None:
                raise DataError(f"{self._old_names.get(name, name)} is not a valid field name")
            sources.append(source)
        return Rebuild(made, sources, replaces_null=self._replaces_null)


class ValueToKey(Transform):
    """Makes the key of some of the value's fields."""

    definition: ClassVar[Definition] = Definition(
        [
            Setting(
                "fields",
                ConfigType.LIST,
                importance=Importance.HIGH,
                doc="The value's fields that make the key.",
                validator=list_of(is_empty_allowed=False),
                is_distinct=True,
            ),
            REPLACE_NULL,
        ]
    )
    _PURPOSE: Final = "copying fields from value to key"

    def _configure(self, parsed: Mapping[str, Any]) -> None:
        self._fields: list[str] = parsed["fields"]
        self._replaces_null: bool = parsed[REPLACE_NULL.name]
        self._plans: Cache[Schema, Rebuild] = Cache(self._plan)

    def apply(self, record: ConnectRecord) -> ConnectRecord:
        """Return the record with its new key. Raises DataError."""
        if record.value_schema is None:
            entries = require_map(record.value, self._PURPOSE)
            return record.with_key(None, {name: entries.get(name) for name in self._fields})
        struct = require_struct(record.value, self._PURPOSE, record.value_schema)
        key = self._plans(struct.schema)(struct)
        return record.with_key(key.schema, key)

    def _plan(self, schema: Schema) -> Rebuild:
        fields = []
        for name in self._fields:
            field = schema.field(name)
            if field is None:
                raise DataError(f"Field does not exist: {name}")
            fields.append(field)
        made = struct_of((field.name, field.schema) for field in fields)
        return Rebuild(made, fields, replaces_null=self._replaces_null)


ExtractFieldKey, ExtractFieldValue = two_sided(ExtractField)
HoistFieldKey, HoistFieldValue = two_sided(HoistField)
ReplaceFieldKey, ReplaceFieldValue = two_sided(ReplaceField)


class FieldPath:
    """A path; `version` is V1 or V2. Raises ConfigError for one that cannot be read."""

    def __init__(self, path: str, version: str) -> None:
        self.steps = [path] if version.upper() == "V1" else _steps(path)

    def field(self, schema: Schema) -> Field | None:
        """The field of a schema that the path leads to. Raises DataError."""
        field: Field | None = None
        current = schema
        for step in self.steps:
            if current.type is not Type.STRUCT:
                raise DataError("Cannot look up fields on non-struct type")
            field = current.field(step)
            if field is None:
                return None
            current = field.schema
        return field

    def of_struct(self, struct: Struct, *, with_default: bool) -> Any:
        """The value that the path leads to; null where it leads nowhere. Raises DataError."""
        current = struct
        for step in self.steps[:-1]:
            if current.schema.field(step) is None:
                return None
            inner = current.get(step)
            if inner is None:
                return None
            current = require_struct(inner, _PURPOSE)
        last = self.steps[-1]
        if current.schema.field(last) is None:
            return None
        return current.get(last) if with_default else current.get_without_default(last)

    def of_map(self, entries: Any) -> Any:
        """The value that the path leads to; null where it leads nowhere. Raises DataError."""
        current = entries
        for step in self.steps[:-1]:
            inner = current.get(step)
            if inner is None:
                return None
            current = require_map(inner, _PURPOSE)
        return current.get(self.steps[-1])


def _steps(path: str) -> list[str]:
    steps = []
    at = 0
    while at < len(path):
        if path[at] == "`":
            step, at = _quoted_step(path, at)
        else:
            dot = path.find(".", at)
            end = len(path) if dot < 0 else dot
            step, at = path[at:end], end + 1
        steps.append(step)
    if path.endswith("."):
        steps.append("")
    return steps


def _quoted_step(path: str, first: int) -> tuple[str, int]:
    """A name in backticks, and where the next begins.

    A backtick ends the name only before a dot or at the end of the path; `\\`` before a dot is a
    backtick of the name.
    """
    parts: list[str] = []
    start = at = first + 1
    while True:
        at = path.find("`", at)
        if at < 0:
            raise _incomplete(path, first)
        is_escaped = path[at - 1] == "\\"
        if at >= len(path) - 1:
            if is_escaped:
                raise _incomplete(path, first)
            return "".join([*parts, path[start:at]]), at + 1
        if path[at + 1] == "." and not is_escaped:
            return "".join([*parts, path[start:at]]), at + 2
        if path[at + 1] == ".":
            parts.append(path[start : at - 1] + "`")
            start = at + 1
        at += 1


def _incomplete(path: str, first: int) -> ConfigError:
    return ConfigError(
        f"Incomplete backtick pair in path: [{path}], consider adding a backslash before backtick "
        f"at position {first} to escape it"
    )
