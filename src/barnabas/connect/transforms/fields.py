"""Transforms that take and make fields: ExtractField, HoistField, ReplaceField and ValueToKey.

Source: org.apache.kafka.connect.transforms (Kafka 4.3).
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
)
from barnabas.connect.transforms.paths import FieldPath
from barnabas.connect.transforms.rebuild import Rebuild, plain
from barnabas.connect.transforms.sides import (
    PlainTransform,
    Sided,
    require_map,
    require_struct,
    two_sided,
)
from barnabas.schemas.data.builder import struct_of, with_fields
from barnabas.schemas.data.cache import Cache
from barnabas.schemas.data.errors import DataError, IllegalArgumentError
from barnabas.schemas.data.schema import Field, Schema, Struct, validate_value


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
        parts = pair.split(":")
        while parts and not parts[-1]:  # as String.split
            parts.pop()
        if len(parts) != 2:
            raise invalid("renames", pairs, f"Invalid rename mapping: {pair}")
        renames[parts[0]] = parts[1]
    return renames


class ReplaceField(Sided):
    """Leaves fields out, or renames them."""

    definition: ClassVar[Definition] = Definition(
        [
            Setting(
                "exclude",
                ConfigType.LIST,
                default=[],
                doc="The fields to leave out, even if they are included.",
                validator=list_of(),
                is_distinct=True,
            ),
            Setting(
                "include",
                ConfigType.LIST,
                default=[],
                doc="The fields to keep; all if there are none.",
                validator=list_of(),
                is_distinct=True,
            ),
            Setting(
                "renames",
                ConfigType.LIST,
                default=[],
                doc="New names, as old1:new1,old2:new2.",
                validator=_check_renames,
            ),
            REPLACE_NULL,
        ]
    )
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


class ValueToKey(PlainTransform):
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
            copy = record.copied()
            copy.key_schema, copy.key = None, {name: entries.get(name) for name in self._fields}
            return copy
        struct = require_struct(record.value, self._PURPOSE, record.value_schema)
        key = self._plans(struct.schema)(struct)
        copy = record.copied()
        copy.key_schema, copy.key = key.schema, key
        return copy

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
