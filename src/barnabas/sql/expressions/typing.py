"""Types of expressions, and what makes an expression impossible.

Messages say the same facts in the same words as ksqlDB's, since its cases compare them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from barnabas.sql import types
from barnabas.sql.decimals import type_of_value
from barnabas.sql.errors import AnalysisError
from barnabas.sql.expressions.arithmetic import result_type
from barnabas.sql.expressions.calls import aggregate_call, scalar_call, table_call
from barnabas.sql.expressions.coercion import LITERALS, common_type
from barnabas.sql.expressions.comparisons import can_compare, refusal
from barnabas.sql.expressions.scope import Scope
from barnabas.sql.syntax import expressions as nodes
from barnabas.sql.syntax.expressions import Expression
from barnabas.sql.syntax.printer import message_text
from barnabas.sql.types import Array, BaseType, Field, Map, SqlType, Struct

_WHOLE = (BaseType.INTEGER, BaseType.BIGINT)
_KEYS = tuple(b for b in BaseType if b not in (BaseType.ARRAY, BaseType.MAP, BaseType.STRUCT))

_SIMPLE = (nodes.ColumnReference, nodes.LambdaVariable, nodes.NullLiteral, *LITERALS)

_ISSUE = "(see https://github.com/confluentinc/ksql/issues/4239)"


def type_of(expression: Expression, scope: Scope) -> SqlType | None:
    """The type of the expression's values; None for NULL alone. Raises AnalysisError."""
    try:
        return _TYPES[type(expression)](expression, scope)
    except RecursionError:
        raise AnalysisError("The expression is nested too deeply.") from None


def held(operand: Expression, scope: Scope) -> tuple[Expression, Scope]:
    """What stands for an operand that is compared more than once: a variable that holds its value,
    unless it is simple. So what nests such operands is looked at and calculated once, and not
    twice, four times, eight times, …"""
    if isinstance(operand, _SIMPLE):
        return operand, scope
    name = message_text(operand)
    return nodes.LambdaVariable(name), scope.with_variables({name: type_of(operand, scope)})


def simple_case_as_searched(node: nodes.SimpleCase, operand: Expression) -> nodes.SearchedCase:
    """`CASE a WHEN b …` as `CASE WHEN a = b …`; `operand` stands for a."""
    equal = nodes.ComparisonOperator.EQUAL
    whens = tuple(
        nodes.When(nodes.Comparison(equal, operand, when.condition), when.result)
        for when in node.whens
    )
    return nodes.SearchedCase(whens, node.default, place=node.place)


def between_as_comparisons(
    node: nodes.Between, operand: Expression
) -> tuple[nodes.Comparison, nodes.Comparison]:
    """`a BETWEEN b AND c` as `a >= b` and `a <= c`; `operand` stands for a."""
    operators = nodes.ComparisonOperator
    return (
        nodes.Comparison(operators.GREATER_THAN_OR_EQUAL, operand, node.lower),
        nodes.Comparison(operators.LESS_THAN_OR_EQUAL, operand, node.upper),
    )


def in_list_operands(node: nodes.InList) -> list[Expression]:
    """Return what must have a common type: NULL never matches, and so does not count."""
    items = [item for item in node.items if not isinstance(item, nodes.NullLiteral)]
    return [node.operand, *items]


def _always(sql_type: SqlType | None) -> Callable[[Any, Scope], SqlType | None]:
    return lambda node, scope: sql_type


def _decimal(node: nodes.DecimalLiteral, scope: Scope) -> SqlType:
    return type_of_value(node.value)


def _column(node: nodes.ColumnReference, scope: Scope) -> SqlType:
    return scope.column_type(node)


def _variable(node: nodes.LambdaVariable, scope: Scope) -> SqlType | None:
    if node.name not in scope.variables:
        raise AnalysisError(f"{node.name} is not a parameter of an enclosing lambda")
    return scope.variables[node.name]


def _arithmetic(node: nodes.Arithmetic, scope: Scope) -> SqlType:
    left, right = type_of(node.left, scope), type_of(node.right, scope)
    try:
        return result_type(node.operator, left, right)
    except AnalysisError as error:
        raise AnalysisError(
            f"Error processing expression: {message_text(node)}. {error.message}"
        ) from error


def _sign(node: nodes.Sign, scope: Scope) -> SqlType | None:
    return type_of(node.operand, scope)


def _comparison(node: nodes.Comparison, scope: Scope) -> SqlType:
    left, right = type_of(node.left, scope), type_of(node.right, scope)
    if not can_compare(node.operator, left, right):
        raise refusal(node, left, right)
    return types.BOOLEAN


def _logical(node: nodes.Logical, scope: Scope) -> SqlType:
    type_of(node.left, scope)
    type_of(node.right, scope)
    return types.BOOLEAN


def _cast(node: nodes.Cast, scope: Scope) -> SqlType:
    return node.type


def _searched_case(node: nodes.SearchedCase, scope: Scope) -> SqlType:
    result: SqlType | None = None
    for when in node.whens:
        _check_condition(when, scope)
        result = _with_then(when, result, scope)
    default = None if node.default is None else type_of(node.default, scope)
    if result is not None and default is not None and result != default:
        raise AnalysisError(
            "Invalid Case expression. Type for the default clause should be the same as for "
            f"'THEN' clauses.\nTHEN type: {result}.\nDEFAULT type: {default}."
        )
    chosen = result or default
    if chosen is None:
        raise AnalysisError("Invalid Case expression. All case branches have NULL type")
    return chosen


def _check_condition(when: nodes.When, scope: Scope) -> None:
    condition = type_of(when.condition, scope)
    if condition != types.BOOLEAN:
        shown = message_text(when.condition)
        raise AnalysisError(
            f"WHEN operand type should be boolean.\nType for '{shown}' is {condition}"
        )


def _with_then(when: nodes.When, result: SqlType | None, scope: Scope) -> SqlType | None:
    """The type of all THEN clauses up to this one."""
    own = type_of(when.result, scope)
    if result is not None and own is not None and result != own:
        clause = f"WHEN {message_text(when.condition)} THEN {message_text(when.result)}"
        raise AnalysisError(
            "Invalid Case expression. Type for all 'THEN' clauses should be the same.\n"
            f"THEN expression '{clause}' has type: {own}.\n"
            f"Previous THEN expression(s) type: {result}."
        )
    return result or own


def _simple_case(node: nodes.SimpleCase, scope: Scope) -> SqlType:
    operand, inner = held(node.operand, scope)
    return _searched_case(simple_case_as_searched(node, operand), inner)


def _like(node: nodes.Like, scope: Scope) -> SqlType:
    for part in (node.operand, node.pattern):
        _check_base(part, scope, (BaseType.STRING,), "LIKE compares texts")
    return types.BOOLEAN


def _check_base(
    expression: Expression, scope: Scope, wanted: Sequence[BaseType], rule: str
) -> None:
    """Raise AnalysisError unless the expression is NULL or of one of those kinds of types."""
    sql_type = type_of(expression, scope)
    if sql_type is not None and sql_type.base not in wanted:
        raise AnalysisError(f"{rule}, but {message_text(expression)} is {sql_type}.")


def _subscript(node: nodes.Subscript, scope: Scope) -> SqlType:
    base = type_of(node.base, scope)
    match base:
        case Map(_, value):
            _check_base(node.index, scope, _KEYS, "A map is looked up by a simple key")
            return value
        case Array(item):
            _check_base(node.index, scope, _WHOLE, "An index of an array is a whole number")
            return item
    hint = ""
    if isinstance(base, Struct):
        text = f"{message_text(node.base)}->{message_text(node.index)}"
        hint = f" Use the dereference operator for STRUCTS: {text}"
    raise AnalysisError(
        f"Subscript expression ({message_text(node)}) do not apply to {base}.{hint}"
    )


def _dereference(node: nodes.Dereference, scope: Scope) -> SqlType:
    base = type_of(node.base, scope)
    if not isinstance(base, Struct):
        raise AnalysisError(f"Expected STRUCT type, got: {base}")
    field = base.field(node.name)
    if field is None:
        shown = message_text(node.base)
        raise AnalysisError(f"Could not find field '{node.name}' in '{shown}'.")
    return field.type


def _array(node: nodes.ArrayConstructor, scope: Scope) -> SqlType:
    if not node.items:
        raise AnalysisError(
            f"Array constructor cannot be empty. Please supply at least one element {_ISSUE}."
        )
    return Array(_common(node.items, scope, "an array", "elements", "value"))


def _map(node: nodes.MapConstructor, scope: Scope) -> SqlType:
    if not node.entries:
        raise AnalysisError(
            f"Map constructor cannot be empty. Please supply at least one key value pair {_ISSUE}."
        )
    key = _common([key for key, _ in node.entries], scope, "a map", "keys", "key")
    for part, _ in node.entries:
        _check_base(part, scope, _KEYS, "A key of a map is a simple value")
    return Map(key, _common([v for _, v in node.entries], scope, "a map", "values", "value"))


def _common(
    expressions: Sequence[Expression], scope: Scope, whole: str, parts: str, part: str
) -> SqlType:
    common = common_type(expressions, partial(type_of, scope=scope))
    if common is None:
        raise AnalysisError(
            f"Cannot construct {whole} with all NULL {parts} {_ISSUE}. "
            f"As a workaround, you may cast a NULL {part} to the desired type."
        )
    return common


def _struct(node: nodes.StructConstructor, scope: Scope) -> SqlType:
    fields: dict[str, Field] = {}
    for name, value in node.fields:
        sql_type = type_of(value, scope)
        if sql_type is None:
            raise AnalysisError(
                f"The field {name} of a struct is NULL without a type. Cast it to the desired type."
            )
        field = Field(name, sql_type)
        if name in fields:
            raise AnalysisError(
                f"Duplicate field names found in STRUCT: '{fields[name]}' and '{field}'"
            )
        fields[name] = field
    return Struct(tuple(fields.values()))


def _lambda(node: nodes.Lambda, scope: Scope) -> SqlType | None:
    return type_of(node.body, scope)


def _call(node: nodes.FunctionCall, scope: Scope) -> SqlType:
    function = scope.function(node.name)
    if function.aggregates:
        return aggregate_call(node, scope, type_of).aggregator().result_type
    if function.tables:
        return table_call(node, scope, type_of).result
    return scalar_call(node, scope, type_of).result


_TYPES: dict[type[Any], Callable[[Any, Scope], SqlType | None]] = {
    nodes.NullLiteral: _always(None),
    nodes.BooleanLiteral: _always(types.BOOLEAN),
    nodes.IntegerLiteral: _always(types.INTEGER),
    nodes.LongLiteral: _always(types.BIGINT),
    nodes.DoubleLiteral: _always(types.DOUBLE),
    nodes.DecimalLiteral: _decimal,
    nodes.StringLiteral: _always(types.STRING),
    nodes.BytesLiteral: _always(types.BYTES),
    nodes.ColumnReference: _column,
    nodes.Arithmetic: _arithmetic,
    nodes.Sign: _sign,
    nodes.Comparison: _comparison,
    nodes.Logical: _logical,
    nodes.Not: _always(types.BOOLEAN),
    nodes.IsNull: _always(types.BOOLEAN),
    nodes.IsNotNull: _always(types.BOOLEAN),
    nodes.Between: _always(types.BOOLEAN),
    nodes.InList: _always(types.BOOLEAN),
    nodes.Like: _like,
    nodes.SearchedCase: _searched_case,
    nodes.SimpleCase: _simple_case,
    nodes.Cast: _cast,
    nodes.Subscript: _subscript,
    nodes.Dereference: _dereference,
    nodes.ArrayConstructor: _array,
    nodes.MapConstructor: _map,
    nodes.StructConstructor: _struct,
    nodes.IntervalUnit: _always(None),
    nodes.Lambda: _lambda,
    nodes.LambdaVariable: _variable,
    nodes.FunctionCall: _call,
}
