"""Calls of functions and LIKE, as kernels."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from barnabas.sql import types
from barnabas.sql.columns.arithmetic import CASTS, same
from barnabas.sql.columns.compiling import Compiling, Kernel
from barnabas.sql.columns.frames import Frame
from barnabas.sql.columns.functions import Call, form_of, is_ours, mapped
from barnabas.sql.columns.text_functions import like
from barnabas.sql.columns.vectors import Vector, constant
from barnabas.sql.expressions.casts import cast_maker
from barnabas.sql.expressions.coercion import LITERALS
from barnabas.sql.expressions.patterns import like_matcher
from barnabas.sql.syntax import expressions as nodes
from barnabas.sql.syntax.expressions import Expression
from barnabas.sql.types import BaseType, SqlType, Value


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
