"""Text of expressions and types, in ksqlDB's canonical form: operators in parentheses, names in
back quotes where they need them.

Messages show expressions with names as they are (`name=unquoted`); statements need `quoted`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from decimal import Decimal
from typing import Any

from barnabas.sql import types
from barnabas.sql.names import backquoted, quoted, unquoted
from barnabas.sql.syntax import expressions as nodes
from barnabas.sql.syntax.expressions import Expression
from barnabas.sql.syntax.tree import NamedType
from barnabas.sql.types import SqlType

NameText = Callable[[str], str]


def expression_text(expression: Expression, name: NameText = quoted) -> str:
    """The expression as a statement can have it; `name` says how names are written."""
    return _PRINTERS[type(expression)](expression, name)


def message_text(expression: Expression) -> str:
    """The expression as messages show it."""
    return expression_text(expression, unquoted)


def type_text(sql_type: SqlType | NamedType, name: NameText = quoted) -> str:
    """The type as a statement can have it."""
    match sql_type:
        case NamedType():
            return name(sql_type.name)
        case types.Array():
            return f"ARRAY<{type_text(sql_type.item, name)}>"
        case types.Map():
            return f"MAP<{type_text(sql_type.key, name)}, {type_text(sql_type.value, name)}>"
        case types.Struct():
            fields = (f"{name(f.name)} {type_text(f.type, name)}" for f in sql_type.fields)
            return f"STRUCT<{', '.join(fields)}>"
        case _:
            return str(sql_type)


def string_text(value: str) -> str:
    """The string between single quotes."""
    return "'" + value.replace("'", "''") + "'"


def double_text(value: float) -> str:
    """The number with an exponent, and all its digits: `1.5E3`."""
    sign, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    first, rest = str(digits[0]), "".join(map(str, digits[1:]))
    assert isinstance(exponent, int)
    return f"{'-' * sign}{first}{'.' * bool(rest)}{rest}E{exponent + len(rest)}"


def decimal_text(value: Decimal) -> str:
    """The number with a point, without an exponent."""
    text = format(value, "f")
    return text if "." in text else text + "."


def _all(expressions: Iterable[Expression], name: NameText) -> str:
    return ", ".join(expression_text(expression, name) for expression in expressions)


def _binary(node: Any, name: NameText) -> str:
    left, right = expression_text(node.left, name), expression_text(node.right, name)
    return f"({left} {node.operator.value} {right})"


def _sign(node: nodes.Sign, name: NameText) -> str:
    operand = expression_text(node.operand, name)
    if not node.is_minus:
        return f"+{operand}"
    if operand[0].isdigit() or operand[0] == ".":
        return f"-({operand})"  # without parentheses it would be one literal
    return f"- {operand}" if operand.startswith("-") else f"-{operand}"  # not a comment


def _base(node: Expression, name: NameText) -> str:
    """The text before `[` or `->`."""
    text = expression_text(node, name)
    return f"({text})" if text[0] in "+-" else text


def _like(node: nodes.Like, name: NameText) -> str:
    escape = "" if node.escape is None else f" ESCAPE {string_text(node.escape)}"
    operand, pattern = expression_text(node.operand, name), expression_text(node.pattern, name)
    return f"({operand} LIKE {pattern}{escape})"


def _between(node: nodes.Between, name: NameText) -> str:
    operand = expression_text(node.operand, name)
    lower, upper = expression_text(node.lower, name), expression_text(node.upper, name)
    return f"({operand} BETWEEN {lower} AND {upper})"


def _case(node: nodes.SearchedCase | nodes.SimpleCase, name: NameText) -> str:
    parts = ["CASE"]
    if isinstance(node, nodes.SimpleCase):
        parts.append(expression_text(node.operand, name))
    for when in node.whens:
        condition = expression_text(when.condition, name)
        parts.append(f"WHEN {condition} THEN {expression_text(when.result, name)}")
    if node.default is not None:
        parts.append(f"ELSE {expression_text(node.default, name)}")
    return f"({' '.join(parts)} END)"


def _map(node: nodes.MapConstructor, name: NameText) -> str:
    entries = (f"{expression_text(k, name)}:={expression_text(v, name)}" for k, v in node.entries)
    return f"MAP({', '.join(entries)})"


def _struct(node: nodes.StructConstructor, name: NameText) -> str:
    fields = (f"{name(field)}:={expression_text(value, name)}" for field, value in node.fields)
    return f"STRUCT({', '.join(fields)})"


def _column(node: nodes.ColumnReference, name: NameText) -> str:
    if node.source is None:
        return name(node.name)
    column = name(node.name)
    if name is quoted and column[0].isdigit():
        column = backquoted(column)  # behind a point, a digit would begin a number
    return f"{name(node.source)}.{column}"


def _call(node: nodes.FunctionCall, name: NameText) -> str:
    is_star = node.name == "COUNT" and not node.arguments
    return f"{name(node.name)}({'*' if is_star else _all(node.arguments, name)})"


_PRINTERS: dict[type, Callable[[Any, NameText], str]] = {
    nodes.NullLiteral: lambda node, name: "null",
    nodes.BooleanLiteral: lambda node, name: str(node.value).lower(),
    nodes.IntegerLiteral: lambda node, name: str(node.value),
    nodes.LongLiteral: lambda node, name: str(node.value),
    nodes.DoubleLiteral: lambda node, name: double_text(node.value),
    nodes.DecimalLiteral: lambda node, name: decimal_text(node.value),
    nodes.StringLiteral: lambda node, name: string_text(node.value),
    nodes.BytesLiteral: lambda node, name: f"TO_BYTES('{node.value.hex()}', 'hex')",
    nodes.ColumnReference: _column,
    nodes.Arithmetic: _binary,
    nodes.Sign: _sign,
    nodes.Comparison: _binary,
    nodes.Logical: _binary,
    nodes.Not: lambda node, name: f"(NOT {expression_text(node.operand, name)})",
    nodes.IsNull: lambda node, name: f"({expression_text(node.operand, name)} IS NULL)",
    nodes.IsNotNull: lambda node, name: f"({expression_text(node.operand, name)} IS NOT NULL)",
    nodes.Between: _between,
    nodes.InList: lambda node, name: (
        f"({expression_text(node.operand, name)} IN ({_all(node.items, name)}))"
    ),
    nodes.Like: _like,
    nodes.SearchedCase: _case,
    nodes.SimpleCase: _case,
    nodes.Cast: lambda node, name: (
        f"CAST({expression_text(node.operand, name)} AS {type_text(node.type, name)})"
    ),
    nodes.Subscript: lambda node, name: (
        f"{_base(node.base, name)}[{expression_text(node.index, name)}]"
    ),
    nodes.Dereference: lambda node, name: f"{_base(node.base, name)}->{name(node.name)}",
    nodes.ArrayConstructor: lambda node, name: f"ARRAY[{_all(node.items, name)}]",
    nodes.MapConstructor: _map,
    nodes.StructConstructor: _struct,
    nodes.IntervalUnit: lambda node, name: node.unit,
    nodes.Lambda: lambda node, name: (
        f"({', '.join(map(name, node.parameters))}) => {expression_text(node.body, name)}"
    ),
    nodes.LambdaVariable: lambda node, name: name(node.name),
    nodes.FunctionCall: _call,
}
