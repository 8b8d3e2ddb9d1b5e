"""Cast: fields, or the whole key or value, as another type.

Source: org.apache.kafka.connect.transforms.Cast (Kafka 4.3).
"""

from __future__ import annotations

import math
from base64 import b64encode
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any, ClassVar, Final

from barnabas.connect.config.definition import (
    ConfigType,
    Definition,
    Importance,
    Setting,
)
from barnabas.connect.config.values import invalid
from barnabas.connect.record import ConnectRecord
from barnabas.connect.transforms.base import (
    REPLACE_NULL,
    Rebuild,
    Sided,
    basics_of,
    java_split,
    plain,
    require_map,
    require_struct,
    two_sided,
)
from barnabas.java.numbers import low_bits, parse_double, parse_whole, short_float
from barnabas.schemas.data.builder import with_default, with_fields
from barnabas.schemas.data.cache import Cache
from barnabas.schemas.data.errors import ConfigError, DataError
from barnabas.schemas.data.logical import (
    date_to_days,
    time_to_ms,
    timestamp_to_ms,
)
from barnabas.schemas.data.schema import (
    DATE,
    TIME,
    TIMESTAMP,
    WHOLE_BITS,
    Schema,
    Struct,
    Type,
    java_class,
)
from barnabas.schemas.data.text import java_text
from barnabas.schemas.data.value_text import value_to_text

_PURPOSE: Final = "cast types"
_FLOATS: Final = (Type.FLOAT32, Type.FLOAT64)
_TARGETS: Final = (*WHOLE_BITS, *_FLOATS, Type.BOOLEAN, Type.STRING)
_SOURCES: Final = (*_TARGETS, Type.BYTES)
WHOLE: Final = ""
"""The name under which the cast of the whole value stands."""


def _check_spec(name: str, value: Any) -> None:
    if not value:
        raise ConfigError("Must specify at least one field to cast.")
    casts_of(value)


def casts_of(specs: list[str]) -> dict[str, Type]:
    """The types that fields are cast to. Raises ConfigError."""
    casts = {}
    is_whole = False
    for spec in specs:
        parts = java_split(spec, ":")
        if len(parts) > 2:
            raise invalid("renames", specs, f"Invalid rename mapping: {spec}")
        name = parts[-1].strip() if parts else ""
        try:
            target = Type[name.upper()]
        except KeyError:
            # Kafka takes the cause for the value, and the text for the name.
            raise ConfigError(
                "Invalid value java.lang.IllegalArgumentException: No enum constant "
                f"org.apache.kafka.connect.data.Schema.Type.{name.upper()} for configuration "
                f"Invalid type found in casting spec: {name}"
            ) from None
        if target not in _TARGETS:
            names = ", ".join(t.name for t in _TARGETS)
            raise ConfigError(
                f"Cast transformation does not support casting to {target.name}; "
                f"supported types are [{names}]"
            )
        is_whole = is_whole or len(parts) == 1
        casts[WHOLE if len(parts) == 1 else parts[0].strip()] = target
    if is_whole and len(specs) > 1:
        raise ConfigError(
            "Cast transformations that specify a type to cast the entire value to may only specify "
            "a single cast in their spec"
        )
    return casts


class Cast(Sided):
    """Casts fields, or all of the key or value."""

    definition: ClassVar[Definition] = Definition(
        [
            Setting(
                "spec",
                ConfigType.LIST,
                importance=Importance.HIGH,
                doc="Fields with the types they get, as field1:type,field2:type, or one type for "
                "all of the key or value: int8, int16, int32, int64, float32, float64, boolean or "
                "string. Bytes can only become a string.",
                validator=_check_spec,
            ),
            REPLACE_NULL,
        ]
    )

    def _configure(self, parsed: Mapping[str, Any]) -> None:
        self._casts = casts_of(parsed["spec"])
        self._whole = self._casts.get(WHOLE)
        self._replaces_null: bool = parsed[REPLACE_NULL.name]
        self._whole_schemas: Cache[Schema, Schema] = Cache(self._whole_schema)
        self._plans: Cache[Schema, _Plan] = Cache(self._plan)

    def _apply(self, record: ConnectRecord, schema: Schema | None, value: Any) -> ConnectRecord:
        if value is None:
            return record
        if self._whole is not None:
            target = None if schema is None else self._whole_schemas(schema)
            return self._with(record, target, cast_value(schema, value, self._whole))
        if schema is None:
            entries = dict(require_map(value, _PURPOSE))
            for name, target_type in self._casts.items():
                entries[name] = cast_value(None, entries.get(name), target_type)
            return self._with(record, None, entries)
        plan = self._plans(schema)
        made = plan(require_struct(value, _PURPOSE, schema))
        return self._with(record, made.schema, made)

    def _whole_schema(self, schema: Schema) -> Schema:
        assert self._whole is not None
        target = Schema(self._whole, optional=schema.optional, **basics_of(schema))
        return _with_cast_default(target, schema)

    def _plan(self, schema: Schema) -> _Plan:
        if schema.type is not Type.STRUCT:
            raise DataError("Cannot list fields on non-struct type")
        fields = []
        for field in schema.fields:
            target_type, target = self._casts.get(field.name), field.schema
            if target_type is not None:
                made = Schema(target_type, optional=field.schema.optional)
                target = _with_cast_default(made, field.schema)
            fields.append((field.name, target))
        made = with_fields(plain(schema), fields)
        made = replace(made, optional=schema.optional)
        if schema.default is not None:
            made = with_default(made, cast_value(schema, schema.default, Type.STRUCT))
        rebuild = Rebuild(made, schema.fields, replaces_null=self._replaces_null)
        casts = [
            (field.index, field.schema, self._casts[field.name])
            for field in schema.fields
            if field.name in self._casts
        ]
        return _Plan(rebuild, casts)


class _Plan:
    """Casts the structs of one schema."""

    def __init__(self, rebuild: Rebuild, casts: list[tuple[int, Schema, Type]]) -> None:
        self._rebuild = rebuild
        self._casts = casts

    def __call__(self, value: Struct) -> Struct:
        values = self._rebuild.values(value)
        for index, schema, target in self._casts:
            values[index] = cast_value(schema, values[index], target)
        return Struct(self._rebuild.schema, values)


def _with_cast_default(target: Schema, source: Schema) -> Schema:
    if source.default is None:
        return target
    return with_default(target, cast_value(source, source.default, target.type))


def cast_value(schema: Schema | None, value: Any, target: Type) -> Any:
    """The value as another type; the schema is its own. Raises DataError."""
    if value is None:
        return None
    source = type_of(value) if schema is None else schema.type
    if source is None:
        raise DataError(
            f"Cast transformation was passed a value of type {java_class(value)} "
            "which is not supported by Connect's data API"
        )
    if source not in _SOURCES:
        names = ", ".join(t.name for t in _SOURCES)
        raise DataError(
            f"Cast transformation does not support casting from {source.name}; "
            f"supported types are [{names}]"
        )
    if target is Type.STRING:
        return _to_text(value, schema)
    if schema is not None and schema.name in _ENCODED:
        value = _ENCODED[schema.name](value)
    try:
        bits = WHOLE_BITS.get(target)
        if bits is not None:
            return _to_whole(value, bits)
        if target in _FLOATS:
            return _to_float(value, is_short=target is Type.FLOAT32)
        if target is Type.BOOLEAN:
            return value.lower() == "true" if type(value) is str else _to_whole(value, 64) != 0
    except ValueError as error:
        raise DataError(
            f"Value ({java_text(value, schema)}) was out of range for requested data type"
        ) from error
    raise DataError(f"{target.name} is not supported in the Cast transformation.")


def type_of(value: Any) -> Type | None:
    """The type of a value without a schema."""
    for kind, schema_type in _TYPES.items():
        if isinstance(value, kind):
            return schema_type
    return None


_TYPES: Final[dict[Any, Type]] = {
    bool: Type.BOOLEAN,
    int: Type.INT64,
    float: Type.FLOAT64,
    str: Type.STRING,
    (bytes, bytearray, memoryview): Type.BYTES,
    Mapping: Type.MAP,
    (list, tuple): Type.ARRAY,
    Struct: Type.STRUCT,
}
_ENCODED: Final[dict[str | None, Callable[[Any], int]]] = {
    DATE: date_to_days,
    TIME: time_to_ms,
    TIMESTAMP: timestamp_to_ms,
}


def _to_whole(value: Any, bits: int) -> int:
    """As Java's narrowing: what is too wide loses its upper bits, a float stays at the bounds."""
    if type(value) is str:
        return parse_whole(value, -1 << (bits - 1), (1 << (bits - 1)) - 1)
    if type(value) is float:
        if math.isnan(value):
            return 0
        limit = 1 << (max(bits, 32) - 1)
        return low_bits(max(-limit, min(limit - 1, value)), bits)
    if isinstance(value, (bool, int, Decimal)):
        return low_bits(int(value) if type(value) is bool else value, bits)
    raise _unexpected(value)


def _to_float(value: Any, *, is_short: bool) -> float:
    if type(value) is str:
        number = parse_double(value)
    elif isinstance(value, (bool, int, float, Decimal)):
        number = float(value)
    else:
        raise _unexpected(value)
    return short_float(number) if is_short else number


def _to_text(value: Any, schema: Schema | None) -> str:
    if isinstance(value, (bytes, bytearray, memoryview)):
        return b64encode(value).decode()
    if isinstance(value, (date, time, datetime)):
        return value_to_text(value)
    return java_text(value, schema)


def _unexpected(value: Any) -> DataError:
    return DataError(f"Unexpected type in Cast transformation: {java_class(value)}")


CastKey, CastValue = two_sided(Cast)
