"""JSON of a test as values of our types, as `sql.types` describes them."""

from __future__ import annotations

import base64
import decimal
from typing import Any

from barnabas.sql.decimals import unit
from barnabas.sql.types import Array, BaseType, Decimal, Map, SqlType, Struct, Value

_TIMES = (BaseType.DATE, BaseType.TIME, BaseType.TIMESTAMP)
_WHOLE = (BaseType.INTEGER, BaseType.BIGINT, *_TIMES)


class SpecError(Exception):
    """A test gives a value that is not of its column's type."""


def value_of(spec: Any, sql_type: SqlType) -> Value:
    """The value that the JSON stands for. Raises SpecError."""
    if spec is None:
        return None
    match sql_type:
        case Array(item):
            return [value_of(part, item) for part in _of(spec, list)]
        case Map(key, value):
            return {
                _key_of(name, key): value_of(part, value) for name, part in _of(spec, dict).items()
            }
        case Struct(fields):
            given = _of(spec, dict)
            upper = {name.upper(): part for name, part in given.items()}
            return {
                field.name: value_of(
                    given.get(field.name, upper.get(field.name.upper())), field.type
                )
                for field in fields
            }
        case Decimal(_, scale):
            number = decimal.Decimal(str(spec))
            return number.quantize(unit(scale), context=_CONTEXT)
    return _primitive(spec, sql_type.base)


def _primitive(spec: Any, base: BaseType) -> Value:
    if base in _WHOLE and isinstance(spec, (int, decimal.Decimal)):
        return int(spec)
    if base in _TIMES and isinstance(spec, str):
        return int(spec)
    if base is BaseType.DOUBLE and isinstance(spec, (int, float, decimal.Decimal)):
        return float(spec)
    if base is BaseType.BOOLEAN and isinstance(spec, bool):
        return spec
    if base is BaseType.STRING:
        return spec if isinstance(spec, str) else str(spec)
    if base is BaseType.BYTES and isinstance(spec, bytes):
        return spec
    if base is BaseType.BYTES and isinstance(spec, str):
        return base64.b64decode(spec)
    raise SpecError(f"{spec!r} is not of type {base.value}")


def _key_of(name: str, sql_type: SqlType) -> Value:
    if sql_type.base is BaseType.STRING:
        return name
    return value_of(decimal.Decimal(name), sql_type)


def _of(spec: Any, kind: type) -> Any:
    if not isinstance(spec, kind):
        raise SpecError(f"{spec!r} is not of type {kind.__name__}")
    return spec


_CONTEXT = decimal.Context(prec=200)
