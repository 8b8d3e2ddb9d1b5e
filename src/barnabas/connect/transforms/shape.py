"""Transforms of the schema's shape: Flatten and SetSchemaMetadata.

Source: org.apache.kafka.connect.transforms (Kafka 4.3).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, Final

from barnabas.connect.config.definition import (
    ConfigType,
    Definition,
    Importance,
    Setting,
)
from barnabas.connect.record import ConnectRecord
from barnabas.connect.transforms.base import (
    REPLACE_NULL,
    Rebuild,
    Sided,
    plain,
    require_map,
    require_struct,
    two_sided,
)
from barnabas.connect.transforms.cast import type_of
from barnabas.schemas.data.builder import with_default, with_fields
from barnabas.schemas.data.cache import Cache
from barnabas.schemas.data.errors import ConfigError, DataError
from barnabas.schemas.data.recursive import refuse_recursion
from barnabas.schemas.data.schema import Schema, Struct, Type, java_class, validate_value


class Flatten(Sided):
    """Makes fields of structs in structs fields at the top, with names such as `a.b`."""

    definition: ClassVar[Definition] = Definition(
        [
            Setting(
                "delimiter",
                ConfigType.STRING,
                default=".",
                doc="The separator between the names.",
            )
        ]
    )
    _PURPOSE: Final = "flattening"

    def _configure(self, parsed: Mapping[str, Any]) -> None:
        self._delimiter: str = parsed["delimiter"]
        self._plans: Cache[Schema, _Flat] = Cache(lambda schema: _Flat(schema, self._delimiter))

    def _apply(self, record: ConnectRecord, schema: Schema | None, value: Any) -> ConnectRecord:
        if value is None:
            return record
        if schema is None:
            flat: dict[str, Any] = {}
            self._flatten_map(require_map(value, self._PURPOSE), "", flat)
            return self._with(record, None, flat)
        struct = require_struct(value, self._PURPOSE, schema)
        made = self._plans(schema)(struct)
        return self._with(record, made.schema, made)

    def _flatten_map(self, entries: Mapping[str, Any], prefix: str, flat: dict[str, Any]) -> None:
        for key, value in entries.items():
            name = f"{prefix}{self._delimiter}{key}" if prefix else key
            if isinstance(value, Mapping):
                self._flatten_map(value, name, flat)
                continue
            kind = type_of(value)
            if value is not None and kind is None:
                raise DataError(
                    f"Flatten transformation was passed a value of type {java_class(value)} "
                    "which is not supported by Connect's data API"
                )
            if kind is Type.STRUCT:
                raise DataError(
                    f"Flatten transformation does not support {java_class(value)} "
                    f"for record without schemas (for field {name})."
                )
            flat[name] = value


class _Flat:
    """Flattens the structs of one schema: each field of the new one has a path in the old."""

    def __init__(self, schema: Schema, delimiter: str) -> None:
        self._delimiter = delimiter
        self._fields: list[tuple[str, Schema]] = []
        self._add(schema, "", schema.default, is_optional=schema.optional)
        self._made = with_fields(plain(schema), self._fields)

    def _add(
        self, schema: Schema, prefix: str, parent: Struct | None, *, is_optional: bool
    ) -> None:
        for field in schema.fields:
            inner = field.schema
            name = f"{prefix}{self._delimiter}{field.name}" if prefix else field.name
            can_be_null = is_optional or inner.optional
            default = inner.default
            if default is None and parent is not None:
                default = parent.get(field.name)
            refuse_recursion(inner, "one level of fields")
            if inner.type is Type.STRUCT:
                self._add(inner, name, default, is_optional=can_be_null)
            elif inner.type is Type.MAP:
                raise DataError(
                    "Flatten transformation does not support MAP "
                    f"for record with schemas (for field {name})."
                )
            else:
                made = replace(inner, optional=can_be_null, default=None)
                self._fields.append(
                    (name, made if default is None else with_default(made, default))
                )

    def __call__(self, struct: Struct) -> Struct:
        """The flat struct. Raises DataError."""
        values: list[Any] = []
        self._collect(struct.schema, struct.values, values)
        return Struct(self._made, values)

    def _collect(self, schema: Schema, inner: list[Any] | None, values: list[Any]) -> None:
        """Add the values of a struct, or nulls without one."""
        for field in schema.fields:
            value = None if inner is None else inner[field.index]
            if field.schema.type is Type.STRUCT:
                self._collect(field.schema, None if value is None else value.values, values)
                continue
            if value is None and inner is not None:
                value = field.schema.default
                if value is None:
                    made = self._made.fields[len(values)]
                    if not made.schema.optional:
                        validate_value(made.schema, None, made.name)
            values.append(value)


class SetSchemaMetadata(Sided):
    """Gives the schema a name or version."""

    definition: ClassVar[Definition] = Definition([
        Setting("schema.name", ConfigType.STRING, default=None, importance=Importance.HIGH,
                doc="The schema's name."),
        Setting("schema.version", ConfigType.INT, default=None, importance=Importance.HIGH,
                doc="The schema's version."),
        REPLACE_NULL,
    ])  # fmt: skip

    def _configure(self, parsed: Mapping[str, Any]) -> None:
        name, version = parsed["schema.name"], parsed["schema.version"]
        if name is None and version is None:
            raise ConfigError("Neither schema name nor version configured")
        self._replaces_null: bool = parsed[REPLACE_NULL.name]

        def plan(schema: Schema) -> Rebuild:
            made = replace(
                schema,
                name=schema.name if name is None else name,
                version=schema.version if version is None else version,
            )
            return Rebuild(made, schema.fields, replaces_null=self._replaces_null)

        self._plans: Cache[Schema, Rebuild] = Cache(plan)

    def _apply(self, record: ConnectRecord, schema: Schema | None, value: Any) -> ConnectRecord:
        if schema is None:
            if value is None:
                return record
            raise DataError("Schema required for [updating schema metadata]")
        if schema.type is not Type.STRUCT:  # as Kafka 4.3, which asks every schema for its fields
            raise DataError("Cannot list fields on non-struct type")
        plan = self._plans(schema)
        made = plan(value) if type(value) is Struct else value
        return self._with(record, plan.schema, made)


FlattenKey, FlattenValue = two_sided(Flatten)
SetSchemaMetadataKey, SetSchemaMetadataValue = two_sided(SetSchemaMetadata)
