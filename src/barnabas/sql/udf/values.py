"""Values on their way to functions of users and back.

Inside SQL dates and times are whole numbers; users get and give `datetime`'s. What users get is
theirs to change: arrays, maps and structs are copies. Their results are checked, since everything
after relies on the column's type.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from numbers import Integral, Real
from typing import Any, TypeAlias

from barnabas.sql import types
from barnabas.sql.decimals import cast_decimal
from barnabas.sql.errors import EvaluationError
from barnabas.sql.types import Array, BaseType, Map, SqlType, Struct, Value

Convert: TypeAlias = Callable[[Any], Any]
"""Takes a value that is not NULL."""

_EPOCH_DAY = date(1970, 1, 1).toordinal()
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
_RANGES = {BaseType.INTEGER: 31, BaseType.BIGINT: 63}


def to_python(sql_type: SqlType) -> Convert | None:
    """Return what converts values to those that users get; None if they are the same."""
    match sql_type:
        case Array(item):
            return _array_to_python(to_python(item))
        case Map(key, value):
            return _map_to_python(to_python(key), to_python(value))
        case Struct(fields):
            converts = {field.name: to_python(field.type) for field in fields}
            return lambda struct: {
                name: maybe(struct.get(name), convert) for name, convert in converts.items()
            }
    return _TO_PYTHON.get(sql_type.base)


def from_python(sql_type: SqlType) -> Convert:
    """Return what converts users' values to the type; it raises EvaluationError."""
    match sql_type:
        case types.Decimal():
            return lambda value: _decimal(value, sql_type)
        case Array(item):
            convert = from_python(item)
            return lambda value: _each(_taken(value, (list, tuple), sql_type), convert)
        case Map(key, value):
            return _map_from_python(sql_type, from_python(key), from_python(value))
        case Struct():
            return _struct_from_python(sql_type)
    return _FROM_PYTHON[sql_type.base]


def maybe(value: Any, convert: Convert | None) -> Any:
    """The value converted, unless it is NULL or has no conversion."""
    return value if value is None or convert is None else convert(value)


def _each(items: Any, convert: Convert) -> list[Any]:
    return [None if item is None else convert(item) for item in items]


def _refused(value: Any, sql_type: SqlType | str) -> EvaluationError:
    shown = repr(value)
    shown = shown if len(shown) <= 80 else shown[:77] + "..."
    kind = type(value).__name__
    return EvaluationError(f"gave {shown} ({kind}), which is not of type {sql_type}")


def _taken(value: Any, kinds: Any, sql_type: SqlType | str) -> Any:
    if not isinstance(value, kinds):
        raise _refused(value, sql_type)
    return value


# --- to users ------------------------------------------------------------------------------------


def _array_to_python(convert: Convert | None) -> Convert:
    return list if convert is None else lambda items: _each(items, convert)


def _map_to_python(key: Convert | None, value: Convert | None) -> Convert:
    if key is None and value is None:
        return dict
    return lambda entries: {maybe(k, key): maybe(v, value) for k, v in entries.items()}


def _to_date(days: int) -> date:
    return date.fromordinal(days + _EPOCH_DAY)


def _to_time(milliseconds: int) -> time:
    return (_EPOCH + timedelta(milliseconds=milliseconds)).time()


def _to_datetime(milliseconds: int) -> datetime:
    return _EPOCH + timedelta(milliseconds=milliseconds)


_TO_PYTHON: Mapping[BaseType, Convert] = {
    BaseType.DATE: _to_date,
    BaseType.TIME: _to_time,
    BaseType.TIMESTAMP: _to_datetime,
}


# --- from users ----------------------------------------------------------------------------------


def _whole(base: BaseType) -> Convert:
    limit = 1 << _RANGES[base]

    def convert(value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int | Integral):
            raise _refused(value, base.value)
        number = int(value)
        if not -limit <= number < limit:
            raise _refused(number, base.value)
        return number

    return convert


def _double(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | Real):
        raise _refused(value, types.DOUBLE)
    return float(value)


def _decimal(value: Any, sql_type: types.Decimal) -> Decimal:
    """Rounded half up; a float is not a DECIMAL, since it seldom is the number that was meant."""
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        raise _refused(value, sql_type)
    # Rounding may carry into one digit more than there is room for.
    return cast_decimal(cast_decimal(Decimal(value), sql_type), sql_type)


def _date(value: Any) -> int:
    if isinstance(value, datetime) or not isinstance(value, date):
        raise _refused(value, types.DATE)
    return value.toordinal() - _EPOCH_DAY


def _time(value: Any) -> int:
    if not isinstance(value, time) or value.tzinfo is not None:
        raise _refused(value, types.TIME)
    seconds = (value.hour * 60 + value.minute) * 60 + value.second
    return seconds * 1000 + value.microsecond // 1000


def _timestamp(value: Any) -> int:
    """One without a time zone is of UTC."""
    if not isinstance(value, datetime):
        raise _refused(value, types.TIMESTAMP)
    if value.tzinfo is None:
        value = value.replace(tzinfo=UTC)
    since: timedelta = value - _EPOCH
    return since // _MILLISECOND


def _of(base: BaseType, *kinds: type, make: Convert) -> Convert:
    return lambda value: make(_taken(value, kinds, base.value))


_FROM_PYTHON: Mapping[BaseType, Convert] = {
    BaseType.BOOLEAN: _of(BaseType.BOOLEAN, bool, make=bool),
    BaseType.INTEGER: _whole(BaseType.INTEGER),
    BaseType.BIGINT: _whole(BaseType.BIGINT),
    BaseType.DOUBLE: _double,
    BaseType.STRING: _of(BaseType.STRING, str, make=str),
    BaseType.BYTES: _of(BaseType.BYTES, bytes, bytearray, memoryview, make=bytes),
    BaseType.DATE: _date,
    BaseType.TIME: _time,
    BaseType.TIMESTAMP: _timestamp,
}


def _map_from_python(sql_type: Map, key: Convert, value: Convert) -> Convert:
    def convert(given: Any) -> dict[Any, Value]:
        # Arrow gives maps as lists of pairs.
        pairs = dict(_taken(given, (Mapping, list), sql_type))
        return {maybe(k, key): maybe(v, value) for k, v in pairs.items()}

    return convert


def _struct_from_python(sql_type: Struct) -> Convert:
    converts = {field.name: from_python(field.type) for field in sql_type.fields}

    def convert(given: Any) -> dict[str, Value]:
        named = {
            name if name in converts else str(name).upper(): value
            for name, value in _taken(given, Mapping, sql_type).items()
        }
        if not named.keys() <= converts.keys():
            raise _refused(given, sql_type)
        return {name: maybe(named.get(name), c) for name, c in converts.items()}

    return convert
