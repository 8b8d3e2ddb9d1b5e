"""What a sink's rows are made of: where each column's value is in structs of one schema."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from barnabas.connect.connectors.jdbc.dialects import ColumnSpec
from barnabas.connect.connectors.jdbc.envelopes import VARIABLE_DECIMAL, plain
from barnabas.schemas.data.errors import DataError
from barnabas.schemas.data.schema import DATE, DECIMAL, TIME, TIMESTAMP, Schema, Struct

Bind = Callable[[Schema, Any], Any]
"""Makes what the driver takes of a value."""
_BOUND: Final = frozenset((DATE, DECIMAL, TIME, TIMESTAMP, VARIABLE_DECIMAL))
"""Names of schemas whose values drivers may take in another form; the others are as they are."""


class Columns:
    """Takes the values of columns out of structs, or the only column's of a plain value."""

    def __init__(self, specs: Sequence[ColumnSpec], bind: Bind, *, replaces_null: bool) -> None:
        self._specs = specs
        self._bind = bind
        self._replaces_null = replaces_null
        self._schema: Schema | None = None
        self._parts: list[tuple[int, Any, ColumnSpec | None]] = []

    def of(self, source: Any) -> tuple[Any, ...]:
        """Return them, in the columns' order. Raises DataError where a struct has no such field."""
        if not isinstance(source, Struct):
            return tuple([self._bound(spec, source) for spec in self._specs])
        if source.schema is not self._schema:  # that of the record before, mostly
            self._schema = source.schema
            self._parts = [self._part(spec, source.schema) for spec in self._specs]
        values = source.values
        return tuple(
            [
                (default if (value := values[index]) is None else value)
                if spec is None
                else self._bound(spec, default if (value := values[index]) is None else value)
                for index, default, spec in self._parts
            ]
        )

    def _part(self, spec: ColumnSpec, schema: Schema) -> tuple[int, Any, ColumnSpec | None]:
        field = schema.field(spec.name)
        if field is None:
            raise DataError(f"{spec.name} is not a valid field name")
        default = field.schema.default if self._replaces_null else None
        return field.index, default, spec if spec.schema.name in _BOUND else None

    def _bound(self, spec: ColumnSpec, value: Any) -> Any:
        return None if value is None else self._bind(spec.schema, plain(spec.schema, value))
