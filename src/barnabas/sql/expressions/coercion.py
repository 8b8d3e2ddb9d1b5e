"""Coercion: the common type of a list of expressions, and literals as values of that type.

Lists are the items of ARRAY[…], keys and values of MAP(…), and both sides of IN. The first
expression that is not NULL decides the kind of type; numbers widen to the widest, structs to all
fields. A literal may be written as another type: '10' as a number among numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal

from barnabas.java.numbers import (
    INT_MAX,
    INT_MIN,
    JAVA_SPACE,
    LONG_MAX,
    LONG_MIN,
    double_text,
    fit_decimal,
    plain_text,
)
from barnabas.sql import types
from barnabas.sql.decimals import type_of_value, widen
from barnabas.sql.errors import AnalysisError, EvaluationError
from barnabas.sql.expressions.casts import PARSERS, cast_maker
from barnabas.sql.functions.signatures import can_cast_implicitly
from barnabas.sql.java_text import (
    boolean_text,
    parse_boolean,
    parse_decimal,
)
from barnabas.sql.syntax import expressions as nodes
from barnabas.sql.syntax.expressions import Expression
from barnabas.sql.syntax.printer import message_text
from barnabas.sql.types import Array, BaseType, Field, Map, SqlType, Struct, Value

LITERALS = (
    nodes.BooleanLiteral,
    nodes.IntegerLiteral,
    nodes.LongLiteral,
    nodes.DoubleLiteral,
    nodes.DecimalLiteral,
    nodes.StringLiteral,
    nodes.BytesLiteral,
)

TypeOf = Callable[[Expression], SqlType | None]


class _CoercionError(AnalysisError):
    """Two types have none in common; around it the types that contain them do not either."""


@dataclass(frozen=True, slots=True)
class _Typed:
    expression: Expression
    type: SqlType | None


def common_type(expressions: Sequence[Expression], type_of: TypeOf) -> SqlType | None:
    """The type that all expressions have or become; None if all are NULL. Raises AnalysisError."""
    return _common([_Typed(e, type_of(e)) for e in expressions], type_of)


def _common(items: Sequence[_Typed], type_of: TypeOf) -> SqlType | None:
    result: SqlType | None = None
    for item in items:
        result = _widened(item, result, type_of)
    return result


def _widened(item: _Typed, common: SqlType | None, type_of: TypeOf) -> SqlType | None:
    """The type with one more expression."""
    if common is None or item.type is None:
        return item.type if common is None else common
    match item.expression:
        case nodes.ArrayConstructor() | nodes.MapConstructor() | nodes.StructConstructor():
            try:
                return _widened_by_parts(item.expression, common, type_of)
            except _CoercionError as error:
                raise _no_common_type(item, common) from error
        case nodes.StringLiteral(value):
            if common.base.is_number:
                return _widened_by_text(value, common)
            if common == types.BOOLEAN:
                if parse_boolean(value.strip(JAVA_SPACE)) is None:
                    raise _no_value(value, common)
                return common
    is_lax = isinstance(item.expression, LITERALS)
    result = coerced_type(item.type, common, is_lax=is_lax) or coerced_type(
        common, item.type, is_lax=is_lax
    )
    if result is None:
        raise _no_common_type(item, common)
    return result


def _widened_by_parts(
    expression: nodes.ArrayConstructor | nodes.MapConstructor | nodes.StructConstructor,
    common: SqlType,
    type_of: TypeOf,
) -> SqlType | None:
    """The type with what a constructor is made of, since literals within it may change."""
    match expression, common:
        case nodes.ArrayConstructor(items), Array(item):
            item_type = _common_with(item, items, type_of)
            return Array(item_type) if item_type else None
        case nodes.MapConstructor(entries), Map(key, value):
            key_type = _common_with(key, [k for k, _ in entries], type_of)
            value_type = _common_with(value, [v for _, v in entries], type_of)
            return Map(key_type, value_type) if key_type and value_type else None
        case nodes.StructConstructor(fields), Struct():
            own = dict(fields)
            names = [*own, *(f.name for f in common.fields if f.name not in own)]
            return Struct(tuple(_common_field(n, own.get(n), common, type_of) for n in names))
    raise _CoercionError("another kind of type")


def _common_with(
    common: SqlType, expressions: Sequence[Expression], type_of: TypeOf
) -> SqlType | None:
    first = _Typed(nodes.NullLiteral(), common)
    return _common([first, *(_Typed(e, type_of(e)) for e in expressions)], type_of)


def _common_field(
    name: str, expression: Expression | None, common: Struct, type_of: TypeOf
) -> Field:
    field = common.field(name)
    own_type = type_of(expression) if expression is not None else None
    if field is not None and expression is not None:
        own_type = _widened(_Typed(expression, own_type), field.type, type_of)
    elif field is not None:
        own_type = field.type
    if own_type is None:
        raise AnalysisError(f"The type of the field {name} is not known: it is NULL")
    return Field(name, own_type)


def _widened_by_text(text: str, common: SqlType) -> SqlType:
    """The type with a number that is written as a text."""
    try:
        own = _type_of_number(text)
    except EvaluationError:
        raise _no_value(text, common) from None
    if common == types.DOUBLE:
        return types.DOUBLE
    if types.Decimal in (type(own), type(common)):
        return widen(own, common)
    return common if can_cast_implicitly(own.base, common.base) else own


def _type_of_number(text: str) -> SqlType:
    value = parse_decimal(text.strip(JAVA_SPACE))
    if not any(mark in text for mark in ".eE"):
        if INT_MIN < value < INT_MAX:
            return types.INTEGER
        if LONG_MIN < value < LONG_MAX:
            return types.BIGINT
    return type_of_value(value)


def _no_value(text: str, common: SqlType) -> AnalysisError:
    return AnalysisError(f'invalid input syntax for type {common.base.value}: "{text}".')


def _no_common_type(item: _Typed, common: SqlType) -> _CoercionError:
    return _CoercionError(
        f"operator does not exist: {common} = {item.type} ({message_text(item.expression)})\n"
        "Hint: You might need to add explicit type casts."
    )


def coerced_type(source: SqlType, target: SqlType, *, is_lax: bool) -> SqlType | None:
    """What values of `source` become where `target` is wanted: that, or a wider type; None if
    they cannot. `is_lax`: as for literals, which may also be in text or become text."""
    match source, target:
        case Array(item), Array(target_item):
            item_type = coerced_type(item, target_item, is_lax=is_lax)
            return Array(item_type) if item_type else None
        case Map(key, value), Map(target_key, target_value):
            key_type = coerced_type(key, target_key, is_lax=is_lax)
            value_type = coerced_type(value, target_value, is_lax=is_lax)
            return Map(key_type, value_type) if key_type and value_type else None
        case Struct(), Struct():
            return _coerced_struct(source, target, is_lax=is_lax)
        case _, types.Decimal():
            if source.base in (BaseType.INTEGER, BaseType.BIGINT, BaseType.DECIMAL):
                return widen(source, target)
    if can_cast_implicitly(source.base, target.base):
        return target
    return target if is_lax and _is_lax_pair(source.base, target.base) else None


def _is_lax_pair(source: BaseType, target: BaseType) -> bool:
    if target is BaseType.STRING:
        return source.is_number or source.is_time or source is BaseType.BOOLEAN
    return source is BaseType.STRING and (target.is_number or target is BaseType.BOOLEAN)


def _coerced_struct(source: Struct, target: Struct, *, is_lax: bool) -> Struct | None:
    names = dict.fromkeys(field.name for field in (*source.fields, *target.fields))
    fields: list[Field] = []
    for name in names:
        one, other = source.field(name), target.field(name)
        if one is not None and other is not None:
            common = coerced_type(one.type, other.type, is_lax=is_lax)
            if common is None:
                return None
            fields.append(Field(name, common))
        else:
            fields.extend(field for field in (one, other) if field is not None)
    return Struct(tuple(fields))


def coerce_literal(value: Value, source: SqlType, target: SqlType) -> Value:
    """A literal's value as one of `target`; raises EvaluationError, or AnalysisError where
    `coerced_type` finds no way."""
    match source.base, target.base:
        case _ if source == target:
            return value
        case BaseType.BOOLEAN, BaseType.STRING:
            return boolean_text(value)
        case BaseType.DOUBLE, BaseType.STRING:
            return double_text(value)
        case BaseType.DECIMAL, BaseType.STRING:
            return plain_text(value)
        case BaseType.STRING, _:
            return _parse(value.strip(JAVA_SPACE), target)
    if isinstance(target, types.Decimal) and source.base is not BaseType.DOUBLE:
        return _fitted(Decimal(value), target)
    cast = cast_maker(source, target)
    return cast(value) if cast else value


def _fitted(value: Decimal, target: types.Decimal) -> Decimal:
    try:
        return fit_decimal(value, target.precision, target.scale)
    except ValueError as error:
        raise EvaluationError(str(error)) from error


def _parse(text: str, target: SqlType) -> Value:
    if isinstance(target, types.Decimal):
        return _fitted(parse_decimal(text), target)
    if target == types.BOOLEAN:
        value = parse_boolean(text)
        if value is None:
            raise EvaluationError(f"not a boolean: {text}")
        return value
    try:
        return PARSERS[target.base](text)
    except KeyError:
        raise AnalysisError(f"A text cannot stand for a {target}") from None
