"""Kernels: evaluate expressions over vectors.

A kernel computes the value of an expression for each record of a frame. It marks records as
doubtful if the row engine may give another result, or fails and reports it: the row engine then
runs those. An expression without a kernel is evaluated record by record, over the columns that it
mentions.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from barnabas.sql.columns.arithmetic import arithmetic, cast, sign
from barnabas.sql.columns.calls import function_call, like_pattern
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
from barnabas.sql.columns.vectors import Vector, constant, vector_of
from barnabas.sql.syntax import expressions as nodes


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
