"""MaskField: nothing, or a replacement, in the place of fields' values.

Source: org.apache.kafka.connect.transforms.MaskField (Kafka 4.3).
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any, ClassVar, Final

from barnabas.connect.config.definition import (
    ConfigType,
    Definition,
    Importance,
    Setting,
)
from barnabas.connect.config.validators import list_of, non_empty
from barnabas.connect.record import ConnectRecord
from barnabas.connect.transforms.base import (
    REPLACE_NULL,
    Rebuild,
    Sided,
    require_map,
    require_struct,
    two_sided,
)
from barnabas.java.numbers import low_bits, parse_decimal
from barnabas.schemas.data.cache import Cache
from barnabas.schemas.data.errors import DataError
from barnabas.schemas.data.schema import Schema, Struct, Type, java_class

_PURPOSE: Final = "mask fields"
_FLOAT: Final = struct.Struct(">f")
_BITS: Final = {Type.INT8: 8, Type.INT16: 16, Type.INT32: 32, Type.INT64: 64}


class MaskField(Sided):
    """Masks fields."""

    masks: ClassVar[bool] = True
    definition: ClassVar[Definition] = Definition([
        Setting("fields", ConfigType.LIST, importance=Importance.HIGH, doc="The fields to mask.",
                validator=list_of(is_empty_allowed=False), is_distinct=True),
        Setting("replacement", ConfigType.STRING, default=None, importance=Importance.LOW,
                doc="The replacement for numbers and strings, instead of 0 and an empty string.",
                validator=non_empty),
        REPLACE_NULL,
    ])  # fmt: skip

    def _configure(self, parsed: Mapping[str, Any]) -> None:
        self._fields: frozenset[str] = frozenset(parsed["fields"])
        self._replacement: str | None = parsed["replacement"]
        self._replaces_null: bool = parsed[REPLACE_NULL.name]
        self._plans: Cache[Schema, tuple[Rebuild, list[tuple[int, Schema]]]] = Cache(self._plan)

    def _apply(self, record: ConnectRecord, schema: Schema | None, value: Any) -> ConnectRecord:
        if schema is None:
            entries = dict(require_map(value, _PURPOSE))
            for name in self._fields:
                entries[name] = self._masked(entries.get(name), None)
            return self._with(record, None, entries)
        whole = require_struct(value, _PURPOSE, schema)
        rebuild, masked = self._plans(whole.schema)
        values = rebuild.values(whole)
        for index, part in masked:
            values[index] = self._masked(values[index], part)
        return self._with(record, schema, Struct(whole.schema, values))

    def _plan(self, schema: Schema) -> tuple[Rebuild, list[tuple[int, Schema]]]:
        rebuild = Rebuild(schema, schema.fields, replaces_null=self._replaces_null)
        return rebuild, [(f.index, f.schema) for f in schema.fields if f.name in self._fields]

    def _masked(self, value: Any, schema: Schema | None) -> Any:
        if value is None:
            return None
        if self._replacement is None:
            return _nothing(value)
        return _replaced(self._replacement, value, schema)


def _nothing(value: Any) -> Any:
    for kind, nothing in _NOTHING.items():
        if type(value) is kind:
            return nothing
    if isinstance(value, (list, tuple)):
        return []
    if isinstance(value, Mapping):
        return {}
    raise DataError(f"Cannot mask value of type: {java_class(value)}")


_NOTHING: Final[dict[type, Any]] = {
    bool: False,
    int: 0,
    float: 0.0,
    str: "",
    Decimal: Decimal(0),
    datetime: datetime(1970, 1, 1, tzinfo=UTC),
    date: date(1970, 1, 1),
    time: time(0),
}


def _replaced(replacement: str, value: Any, schema: Schema | None) -> Any:
    if type(value) is str:
        return replacement
    if type(value) not in (int, float, Decimal):
        raise DataError(f"Cannot mask value of type {java_class(value)} with custom replacement.")
    try:
        number = parse_decimal(replacement)
    except ValueError as error:
        what = "number" if type(value) is Decimal else "a number"
        text = f"Unable to convert {replacement} (class java.lang.String) to {what}"
        raise DataError(text) from error
    if type(value) is Decimal:
        return number
    if type(value) is int:
        bits = 64 if schema is None else _BITS[schema.type]
        return low_bits(low_bits(number, 64), bits)
    result = float(number)
    if schema is None or schema.type is Type.FLOAT64:
        return result
    try:
        return _FLOAT.unpack(_FLOAT.pack(result))[0]
    except OverflowError:
        return float("inf") if result > 0 else float("-inf")


MaskFieldKey, MaskFieldValue = two_sided(MaskField)
