"""Structs made of other structs' fields: what is to be done is found once per schema."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from barnabas.schemas.data.schema import Field, Schema, Struct, validate_value


class Rebuild:
    """Makes structs of `schema` of the fields of another; `sources` are fields of the other one.

    A null becomes the default of its source where `replaces_null` says so; a null in a field that
    has to have a value is refused, as Struct.put refuses it.
    """

    __slots__ = ("_defaults", "_indexes", "_required", "schema")

    def __init__(self, schema: Schema, sources: Iterable[Field], *, replaces_null: bool) -> None:
        self.schema = schema
        fields = list(sources)
        self._indexes: list[int] | None = [field.index for field in fields]
        if self._indexes == list(range(len(fields))):
            self._indexes = None
        self._defaults = [
            (place, field.schema.default)
            for place, field in enumerate(fields)
            if replaces_null and field.schema.default is not None
        ]
        self._required = [
            (place, field)
            for place, (field, _) in enumerate(zip(schema.fields, fields, strict=False))
            if not field.schema.optional
        ]

    def values(self, struct: Struct) -> list[Any]:
        """The values of the new struct's first fields. Raises DataError."""
        old, indexes = struct.values, self._indexes
        values = old[: len(self.schema.fields)] if indexes is None else [old[i] for i in indexes]
        for place, default in self._defaults:
            if values[place] is None:
                values[place] = default
        for place, field in self._required:
            if values[place] is None:
                validate_value(field.schema, None, field.name)
        return values

    def __call__(self, struct: Struct) -> Struct:
        """The new struct. Raises DataError."""
        return Struct(self.schema, self.values(struct))


def basics_of(schema: Schema) -> Mapping[str, Any]:
    """Return what a new schema inherits from another: name, version, doc and parameters."""
    return {
        "name": schema.name,
        "version": schema.version,
        "doc": schema.doc,
        "parameters": schema.parameters,
    }


def plain(schema: Schema) -> Schema:
    """The schema as required and without its default."""
    return replace(schema, optional=False, default=None)
