"""Kernels: evaluate expressions over vectors.

A kernel computes the value of an expression for each record of a frame. It marks records as
doubtful if the row engine may give another result, or fails and reports it: the row engine then
runs those. An expression without a kernel is evaluated record by record, over the columns that it
mentions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, ClassVar

from barnabas.sql import types
from barnabas.sql.columns.arithmetic import CASTS, arithmetic, cast, same, sign
from barnabas.sql.columns.compiling import Compiling, Kernel, Make
from barnabas.sql.columns.conditions import (
    between,
    compared,
    in_list,
    is_not_null,
    is_null,
    logical,
    negated,
    searched_case,
    simple_case,
)
from barnabas.sql.columns.frames import Frame
from barnabas.sql.columns.functions import Call, form_of, is_ours, mapped
from barnabas.sql.columns.text_functions import like
from barnabas.sql.columns.vectors import Vector, constant, vector_of
from barnabas.sql.expressions.casts import cast_maker
from barnabas.sql.expressions.coercion import LITERALS
from barnabas.sql.expressions.patterns import like_matcher
from barnabas.sql.syntax import expressions as nodes
from barnabas.sql.syntax.expressions import Expression
from barnabas.sql.types import BaseType, SqlType, Value


def _literal(compiler: Compiling, node: Any) -> Kernel | None:
    sql_type = compiler.type_of(node)
    if sql_type is None:
        return None
    value = node.value
    return lambda frame: constant(sql_type, value, len(frame))


def _column(compiler: Compiling, node: nodes.ColumnReference) -> Kernel | None:
    place = compiler.place(node)
    if place is None:
        return None
    return lambda frame: frame.columns[place]


def _field(compiler: Compiling, node: nodes.Dereference) -> Kernel | None:
    sql_type = compiler.type_of(node)
    assert sql_type is not None, "the type of a field"
    base, name = compiler.kernel(node.base), node.name

    def kernel(frame: Frame) -> Vector:
        vector = base(frame)
        if vector.is_arrow:
            return vector.field(name)
        values = [None if one is None else one.get(name) for one in vector.to_list()]
        return vector_of(sql_type, values, frame.doubt)

    return kernel


# --- calls of functions, and LIKE -------------------------------------------------------------


def function_call(compiler: Compiling, node: nodes.FunctionCall) -> Kernel | None:
    """A call of a function that ships with us, whose arguments need no other casts than to wider
    numbers."""
    function, meant = compiler.scalar_call(node)
    name = node.name.upper()
    if not is_ours(name, function, meant):
        return None
    kernels: list[Kernel] = []
    literals: list[tuple[bool, Value]] = []
    for argument in meant.arguments:
        given, taken = argument.type, argument.taken_type
        if argument.lambda_scope is not None:
            return None
        if isinstance(argument.expression, nodes.IntervalUnit):
            literals.append((True, argument.expression.unit))
            kernels.append(lambda frame: constant(types.STRING, None, len(frame)))
            continue
        if given is None or taken is None:
            return None
        if _is_constant(argument.expression):
            value = compiler.value_of(argument.expression)
            cast = cast_maker(given, taken)
            value = value if cast is None else cast(value)
            literals.append((True, value))
            kernels.append(partial(_repeated, taken, value))
            continue
        widen = same if given == taken else CASTS.get((given.base, taken.base))
        if widen is None or (given.base is BaseType.BIGINT and taken.base is BaseType.INTEGER):
            return None
        literals.append((False, None))
        kernels.append(_widened(compiler.kernel(argument.expression), taken, widen))
    form = form_of(Call(name, meant, literals, function.is_volatile))
    if form is None:
        return None
    return lambda frame: form(frame, [kernel(frame) for kernel in kernels])


def _is_constant(expression: Expression) -> bool:
    if isinstance(expression, nodes.Sign):
        expression = expression.operand
    return isinstance(expression, LITERALS)


def _repeated(sql_type: SqlType, value: Value, frame: Frame) -> Vector:
    return constant(sql_type, value, len(frame))


def _widened(kernel: Kernel, sql_type: SqlType, widen: Callable[[Vector], Any]) -> Kernel:
    def widened(frame: Frame) -> Vector:
        vector = kernel(frame)
        return Vector(sql_type, widen(vector), vector.valid)

    return widened


def like_pattern(compiler: Compiling, node: nodes.Like) -> Kernel | None:
    """LIKE with a literal as the pattern."""
    if compiler.type_of(node.operand) != types.STRING:
        return None
    if not isinstance(node.pattern, nodes.StringLiteral):
        return None
    operand, pattern = compiler.kernel(node.operand), node.pattern.value
    matches = like_matcher(pattern, node.escape)
    form = like(pattern, node.escape, matches)
    if form is not None:
        found = form
        return lambda frame: found(frame, [operand(frame)])
    return lambda frame: mapped(frame, operand(frame), types.BOOLEAN, matches)


class KernelCompiler(Compiling):
    """Makes kernels of all expressions."""

    makers: ClassVar[Mapping[type[Any], Make]] = {
        nodes.BooleanLiteral: _literal,
        nodes.IntegerLiteral: _literal,
        nodes.LongLiteral: _literal,
        nodes.DoubleLiteral: _literal,
        nodes.StringLiteral: _literal,
        nodes.ColumnReference: _column,
        nodes.Dereference: _field,
        nodes.Arithmetic: arithmetic,
        nodes.Sign: sign,
        nodes.Comparison: compared,
        nodes.Between: between,
        nodes.Logical: logical,
        nodes.Not: negated,
        nodes.IsNull: is_null,
        nodes.IsNotNull: is_not_null,
        nodes.InList: in_list,
        nodes.SearchedCase: searched_case,
        nodes.SimpleCase: simple_case,
        nodes.Cast: cast,
        nodes.FunctionCall: function_call,
        nodes.Like: like_pattern,
    }
