"""Expressions over vectors.

A kernel gives the value of an expression for each record of a frame. Records for which it is not
certain to be what the row engine gives, or for which the row engine fails and notes it, it puts
into the frame's doubt: the row engine runs those. An expression without a kernel of its own is
evaluated record by record, over the columns that it mentions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from barnabas.sql import types
from barnabas.sql.columns.frames import Frame
from barnabas.sql.columns.vectors import (
    WHOLE,
    Indexes,
    Mask,
    NotExactError,
    Numbers,
    Vector,
    both_valid,
    constant,
    mask_of,
    of_values,
    text_vector,
)
from barnabas.sql.errors import FAILURES
from barnabas.sql.expressions.coercion import LITERALS
from barnabas.sql.expressions.comparisons import comparison
from barnabas.sql.expressions.compile import ExpressionCompiler
from barnabas.sql.expressions.typing import between_as_comparisons, simple_case_as_searched
from barnabas.sql.functions.catalog import Function
from barnabas.sql.runtime.evaluation import prepared_rows
from barnabas.sql.runtime.mentions import references
from barnabas.sql.schema import Column
from barnabas.sql.syntax import expressions as nodes
from barnabas.sql.syntax.expressions import (
    ArithmeticOperator,
    ComparisonOperator,
    Expression,
    LogicalOperator,
)
from barnabas.sql.types import BaseType, SqlType, Value

Kernel = Callable[[Frame], Vector]


class KernelCompiler:
    """Makes kernels of expressions over the same columns."""

    def __init__(self, columns: Sequence[Column], functions: Mapping[str, Function]) -> None:
        self._columns = tuple(columns)
        self._functions = functions
        self._expressions = ExpressionCompiler(functions)
        self._places: dict[str, int] = {}
        for place, column in enumerate(columns):
            self._places.setdefault(column.name, place)

    def type_of(self, expression: Expression) -> SqlType | None:
        """The type of the expression; None for NULL."""
        return self._expressions.type_of(expression, self._columns)

    def place(self, expression: Expression) -> int | None:
        """Of a column its place."""
        if not isinstance(expression, nodes.ColumnReference):
            return None
        name = expression.name
        if expression.source is not None:
            name = f"{expression.source}.{name}"
        return self._places.get(name, self._places.get(expression.name))

    def kernel(self, expression: Expression) -> Kernel:
        """Return what evaluates the expression. Raises AnalysisError as the row compiler does."""
        make = _MAKERS.get(type(expression))
        made = make(self, expression) if make else None
        return made or self._by_rows(expression)

    def condition(self, expression: Expression) -> Kernel:
        """The same for an expression that must not be NULL: of those it doubts."""
        kernel = self.kernel(expression)

        def decide(frame: Frame) -> Vector:
            vector = kernel(frame)
            if vector.valid is not None:
                frame.doubt |= ~vector.valid
            return vector

        return decide

    def _by_rows(self, expression: Expression) -> Kernel:
        names = references(expression)
        listed = [c for place, c in enumerate(self._columns) if self._is_meant(place, names)]
        taken = [self._places[column.name] for column in listed]
        failed: list[str] = []
        evaluator = ExpressionCompiler(
            self._functions, lambda what, error: failed.append(what)
        ).compile(expression, tuple(listed))
        sql_type = evaluator.type or types.STRING
        evaluate = evaluator.evaluate

        def kernel(frame: Frame) -> Vector:
            columns = [frame.columns[place].to_list() for place in taken]
            size = len(frame)
            rows: list[tuple[Value, ...]] = (
                list(zip(*columns, strict=True)) if columns else [() for _ in range(size)]
            )
            values: list[Value] = []
            failed.clear()
            with prepared_rows(evaluator.batched, rows):
                for at, row in enumerate(rows):
                    try:
                        value = evaluate(row)
                    except FAILURES:
                        value = None
                        frame.doubt[at] = True
                    if failed:
                        failed.clear()
                        frame.doubt[at] = True
                    values.append(value)
            return vector_of(sql_type, values, frame.doubt)

        return kernel

    def _is_meant(self, place: int, names: set[str]) -> bool:
        name = self._columns[place].name
        if self._places[name] != place:
            return False
        return name in names or name.partition(".")[2] in names


def vector_of(sql_type: SqlType, values: list[Value], doubt: Mask) -> Vector:
    """A vector of values; those that it cannot hold are NULL in it and in `doubt`."""
    try:
        return of_values(sql_type, values)
    except NotExactError:
        for at, value in enumerate(values):
            try:
                of_values(sql_type, [value])
            except NotExactError:
                values[at] = None
                doubt[at] = True
        return of_values(sql_type, values)


# --- literals and columns --------------------------------------------------------------------


def _literal(compiler: KernelCompiler, node: Any) -> Kernel | None:
    sql_type = compiler.type_of(node)
    if sql_type is None:
        return None
    value = node.value
    return lambda frame: constant(sql_type, value, len(frame))


def _column(compiler: KernelCompiler, node: nodes.ColumnReference) -> Kernel | None:
    place = compiler.place(node)
    if place is None:
        return None
    return lambda frame: frame.columns[place]


# --- numbers ---------------------------------------------------------------------------------

_PLAIN_NUMBERS: Final = (BaseType.INTEGER, BaseType.BIGINT, BaseType.DOUBLE)
_INT_BITS: Final = 1 << 32
_INT_HALF: Final = 1 << 31
_LONG_MIN: Final = -(1 << 63)


def wrap_integers(data: Numbers) -> Numbers:
    """Whole numbers cut to 32 bits, as Java's INTEGER wraps around."""
    if len(data) == 0 or (data.min() >= -_INT_HALF and data.max() < _INT_HALF):
        return data
    wrapped: Numbers = ((data + _INT_HALF) & (_INT_BITS - 1)) - _INT_HALF
    return wrapped


def _arithmetic(compiler: KernelCompiler, node: nodes.Arithmetic) -> Kernel | None:
    result = compiler.type_of(node)
    sides = (compiler.type_of(node.left), compiler.type_of(node.right))
    if result is None or any(s is None or s.base not in _PLAIN_NUMBERS for s in sides):
        return None
    left, right = compiler.kernel(node.left), compiler.kernel(node.right)
    operator = node.operator
    is_double = result.base is BaseType.DOUBLE
    calculate = _DOUBLES[operator] if is_double else _WHOLES[operator]
    wraps = result.base is BaseType.INTEGER

    def kernel(frame: Frame) -> Vector:
        one, other = left(frame), right(frame)
        valid = both_valid(one, other)
        if valid is not None:
            frame.doubt |= ~valid  # the row engine notes it
        first, second = one.data, other.data
        if is_double:
            first, second = first.astype(np.float64), second.astype(np.float64)
        elif operator in _DIVIDING:
            bad = second == 0
            if bad.any() or (second == -1).any():
                bad |= (second == -1) & (first == _LONG_MIN)
                frame.doubt |= bad
                second = np.where(bad, 1, second)
        with np.errstate(all="ignore"):
            data = calculate(first, second)
        return Vector(result, wrap_integers(data) if wraps else data, valid)

    return kernel


def _quotients(left: Numbers, right: Numbers) -> Numbers:
    """Rounded towards zero."""
    found: Numbers = left // right
    found += ((left % right) != 0) & ((left < 0) != (right < 0))
    return found


_DIVIDING: Final = (ArithmeticOperator.DIVIDE, ArithmeticOperator.MODULUS)
_WHOLES: Final[dict[ArithmeticOperator, Callable[[Numbers, Numbers], Numbers]]] = {
    ArithmeticOperator.ADD: np.add,
    ArithmeticOperator.SUBTRACT: np.subtract,
    ArithmeticOperator.MULTIPLY: np.multiply,
    ArithmeticOperator.DIVIDE: _quotients,
    ArithmeticOperator.MODULUS: np.fmod,
}
"""In 64 bits, wrapping around."""
_DOUBLES: Final[dict[ArithmeticOperator, Callable[[Numbers, Numbers], Numbers]]] = {
    ArithmeticOperator.ADD: np.add,
    ArithmeticOperator.SUBTRACT: np.subtract,
    ArithmeticOperator.MULTIPLY: np.multiply,
    ArithmeticOperator.DIVIDE: np.divide,
    ArithmeticOperator.MODULUS: np.fmod,
}


def _sign(compiler: KernelCompiler, node: nodes.Sign) -> Kernel | None:
    sql_type = compiler.type_of(node)
    if sql_type is None or sql_type.base not in _PLAIN_NUMBERS:
        return None
    operand = compiler.kernel(node.operand)

    def kernel(frame: Frame) -> Vector:
        vector = operand(frame)
        if vector.valid is not None:
            frame.doubt |= ~vector.valid
        if not node.is_minus:
            return vector
        data = -vector.data
        is_integer = sql_type.base is BaseType.INTEGER
        return Vector(sql_type, wrap_integers(data) if is_integer else data, vector.valid)

    return kernel


# --- comparisons -----------------------------------------------------------------------------


class _Comparing(NamedTuple):
    numbers: Callable[[Any, Any], Any]
    texts: Callable[[Any, Any], Any]


_COMPARING: Final = {
    ComparisonOperator.EQUAL: _Comparing(np.equal, pc.equal),
    ComparisonOperator.NOT_EQUAL: _Comparing(np.not_equal, pc.not_equal),
    ComparisonOperator.LESS_THAN: _Comparing(np.less, pc.less),
    ComparisonOperator.LESS_THAN_OR_EQUAL: _Comparing(np.less_equal, pc.less_equal),
    ComparisonOperator.GREATER_THAN: _Comparing(np.greater, pc.greater),
    ComparisonOperator.GREATER_THAN_OR_EQUAL: _Comparing(np.greater_equal, pc.greater_equal),
    ComparisonOperator.IS_DISTINCT_FROM: _Comparing(np.not_equal, pc.not_equal),
    ComparisonOperator.IS_NOT_DISTINCT_FROM: _Comparing(np.equal, pc.equal),
}
_DIFFERING: Final = (ComparisonOperator.NOT_EQUAL, ComparisonOperator.IS_DISTINCT_FROM)
_EQUALITIES: Final = (
    *_DIFFERING,
    ComparisonOperator.EQUAL,
    ComparisonOperator.IS_NOT_DISTINCT_FROM,
)


def _compared(compiler: KernelCompiler, node: nodes.Comparison) -> Kernel | None:
    sides = _comparable(compiler, node)
    if sides is None:
        return None
    left, right, base = sides
    how = _COMPARING[node.operator]
    is_distinct = node.operator is ComparisonOperator.IS_DISTINCT_FROM
    tells_nulls = is_distinct or node.operator is ComparisonOperator.IS_NOT_DISTINCT_FROM

    def kernel(frame: Frame) -> Vector:
        one, other = left(frame), right(frame)
        if base is BaseType.STRING:
            data = mask_of(how.texts(one.data, other.data).fill_null(False))
            if node.operator not in _EQUALITIES:
                frame.doubt |= _not_ascii(one) | _not_ascii(other)
        elif base is BaseType.DOUBLE and node.operator in _DIFFERING:
            data = (one.data < other.data) | (one.data > other.data)
        else:
            data = how.numbers(one.data, other.data)
        valid = both_valid(one, other)
        if valid is not None:
            if tells_nulls:
                differ = one.nulls() != other.nulls()
                data = np.where(valid, data, differ == is_distinct)
            else:
                data = data & valid
        return Vector(types.BOOLEAN, data)

    return kernel


def _not_ascii(vector: Vector) -> Mask:
    return ~mask_of(pc.string_is_ascii(vector.data).fill_null(True))


def _comparable(
    compiler: KernelCompiler, node: nodes.Comparison
) -> tuple[Kernel, Kernel, BaseType] | None:
    """Both sides, and the type as which they compare."""
    left_type, right_type = compiler.type_of(node.left), compiler.type_of(node.right)
    if left_type is None or right_type is None:
        return None
    bases = (left_type.base, right_type.base)
    left, right = compiler.kernel(node.left), compiler.kernel(node.right)
    if all(base in _PLAIN_NUMBERS for base in bases):
        is_double = BaseType.DOUBLE in bases
        return left, right, BaseType.DOUBLE if is_double else BaseType.BIGINT
    if bases[0] is bases[1]:
        if bases[0] is BaseType.BOOLEAN and node.operator not in _EQUALITIES:
            return None
        if bases[0] in (*WHOLE, BaseType.BOOLEAN, BaseType.STRING):
            return left, right, bases[0]
        return None
    converted = comparison(node.operator, left_type, right_type)
    if _is_literal(node.right, left_type, converted.convert_left):
        right_kernel = _converted(node.right, converted.convert_right, left_type)
        return right_kernel and (left, right_kernel, left_type.base)
    if _is_literal(node.left, right_type, converted.convert_right):
        left_kernel = _converted(node.left, converted.convert_left, right_type)
        return left_kernel and (left_kernel, right, right_type.base)
    return None


def _is_literal(side: Any, other: SqlType, convert_other: Any) -> bool:
    """Return whether a side is a literal that is converted once, to the type of the other one."""
    return isinstance(side, LITERALS) and convert_other is None and other.base in WHOLE


def _converted(
    literal: Any, convert: Callable[[Any], Any] | None, sql_type: SqlType
) -> Kernel | None:
    if convert is None:
        return None
    try:
        made = convert(literal.value)
        constant(sql_type, made, 0)
    except (*FAILURES, NotExactError):
        return None
    return lambda frame: constant(sql_type, made, len(frame))


def _between(compiler: KernelCompiler, node: nodes.Between) -> Kernel | None:
    first, second = between_as_comparisons(node, node.operand)
    lower, upper = _compared(compiler, first), _compared(compiler, second)
    if lower is None or upper is None:
        return None
    return _both(lower, upper, is_and=True)


# --- conditions ------------------------------------------------------------------------------


def _both(left: Kernel, right: Kernel, *, is_and: bool) -> Kernel:
    """The right one counts, and may be doubted, only where the left one does not decide."""

    def kernel(frame: Frame) -> Vector:
        one = left(frame)
        undecided = one.data if is_and else ~one.data
        other = within(frame, undecided, right)
        data = one.data & other.data if is_and else one.data | other.data
        return Vector(types.BOOLEAN, data)

    return kernel


def within(frame: Frame, where: Mask, kernel: Kernel) -> Vector:
    """Return what a kernel gives; what it doubts outside of `where` does not matter."""
    before = frame.doubt
    frame.doubt = np.zeros(len(frame), np.bool_)
    try:
        vector = kernel(frame)
        before = before | (frame.doubt & where)
    finally:
        frame.doubt = before
    return vector


def _logical(compiler: KernelCompiler, node: nodes.Logical) -> Kernel:
    left, right = compiler.condition(node.left), compiler.condition(node.right)
    return _both(left, right, is_and=node.operator is LogicalOperator.AND)


def _negated(compiler: KernelCompiler, node: nodes.Not) -> Kernel:
    operand = compiler.condition(node.operand)
    return lambda frame: Vector(types.BOOLEAN, ~operand(frame).data)


def _is_null(compiler: KernelCompiler, node: nodes.IsNull) -> Kernel:
    operand = compiler.kernel(node.operand)
    return lambda frame: Vector(types.BOOLEAN, operand(frame).nulls())


def _is_not_null(compiler: KernelCompiler, node: nodes.IsNotNull) -> Kernel:
    operand = compiler.kernel(node.operand)
    return lambda frame: Vector(types.BOOLEAN, ~operand(frame).nulls())


def _in_list(compiler: KernelCompiler, node: nodes.InList) -> Kernel | None:
    sql_type = compiler.type_of(node.operand)
    if sql_type is None or sql_type.base not in (BaseType.STRING, *WHOLE):
        return None
    for item in node.items:
        if not isinstance(item, LITERALS) or not _is_alike(compiler.type_of(item), sql_type):
            return None
    operand = compiler.kernel(node.operand)
    values = [item.value for item in node.items if isinstance(item, LITERALS)]
    try:
        of_values(sql_type, values)
    except NotExactError:
        return None

    def kernel(frame: Frame) -> Vector:
        vector = operand(frame)
        if vector.is_text:
            data = mask_of(pc.is_in(vector.data, pa.array(values, pa.string())))
        else:
            data = np.isin(vector.data, np.array(values, np.int64))
        return Vector(types.BOOLEAN, data if vector.valid is None else data & vector.valid)

    return kernel


def _is_alike(one: SqlType | None, other: SqlType) -> bool:
    """Return whether values of both types are equal as they stand."""
    wholes = (types.INTEGER, types.BIGINT)
    return one == other or (one in wholes and other in wholes)


def _searched_case(compiler: KernelCompiler, node: nodes.SearchedCase) -> Kernel | None:
    sql_type = compiler.type_of(node)
    results = [when.result for when in node.whens]
    default = node.default or nodes.NullLiteral()
    if sql_type is None or sql_type.base not in _CHOSEN:
        return None
    if any(compiler.type_of(result) not in (sql_type, None) for result in (*results, default)):
        return None
    conditions = [compiler.condition(when.condition) for when in node.whens]
    choices = [_chosen(compiler, result, sql_type) for result in (*results, default)]

    def kernel(frame: Frame) -> Vector:
        size = len(frame)
        left = np.ones(size, np.bool_)
        place = np.full(size, len(conditions), np.int64)
        vectors = []
        for number, condition in enumerate(conditions):
            holds = within(frame, left.copy(), condition).data & left
            place[holds] = number
            left &= ~holds
        for number, choice in enumerate(choices):
            vectors.append(within(frame, place == number, choice))
        return _merged(sql_type, place, vectors)

    return kernel


_CHOSEN: Final = (*WHOLE, BaseType.DOUBLE, BaseType.BOOLEAN, BaseType.STRING)


def _chosen(compiler: KernelCompiler, expression: Expression, sql_type: SqlType) -> Kernel:
    if isinstance(expression, nodes.NullLiteral):
        return lambda frame: constant(sql_type, None, len(frame))
    return compiler.kernel(expression)


def _merged(sql_type: SqlType, place: Indexes, vectors: Sequence[Vector]) -> Vector:
    """Of each record the value of the vector whose number is its place."""
    if sql_type.base is BaseType.STRING:
        made = pc.choose(pa.array(place), *(vector.data for vector in vectors))
        return text_vector(sql_type, made)
    data = np.choose(place, [vector.data for vector in vectors]) if len(place) else vectors[0].data
    valid = np.ones(len(place), np.bool_)
    for number, vector in enumerate(vectors):
        if vector.valid is not None:
            valid &= (place != number) | vector.valid
    return Vector(sql_type, data, None if valid.all() else valid)


def _simple_case(compiler: KernelCompiler, node: nodes.SimpleCase) -> Kernel | None:
    return _searched_case(compiler, simple_case_as_searched(node, node.operand))


# --- casts -----------------------------------------------------------------------------------


def _cast(compiler: KernelCompiler, node: nodes.Cast) -> Kernel | None:
    source, target = compiler.type_of(node.operand), node.type
    if source is None:
        return None
    convert = _same if source == target else _CASTS.get((source.base, target.base))
    if convert is None:
        return None
    operand = compiler.kernel(node.operand)

    def kernel(frame: Frame) -> Vector:
        vector = operand(frame)
        return Vector(target, convert(vector), vector.valid)

    return kernel


def _same(vector: Vector) -> Any:
    return vector.data


def _number_texts(vector: Vector) -> Any:
    mask = None if vector.valid is None else ~vector.valid
    return pa.array(vector.data, mask=mask).cast(pa.string())


_CASTS: Final[dict[tuple[BaseType, BaseType], Callable[[Vector], Any]]] = {
    (BaseType.INTEGER, BaseType.BIGINT): _same,
    (BaseType.BIGINT, BaseType.INTEGER): lambda vector: wrap_integers(vector.data),
    (BaseType.INTEGER, BaseType.DOUBLE): lambda vector: vector.data.astype(np.float64),
    (BaseType.BIGINT, BaseType.DOUBLE): lambda vector: vector.data.astype(np.float64),
    (BaseType.INTEGER, BaseType.STRING): _number_texts,
    (BaseType.BIGINT, BaseType.STRING): _number_texts,
}

_MAKERS: Final[dict[type[Any], Callable[[KernelCompiler, Any], Kernel | None]]] = {
    nodes.BooleanLiteral: _literal,
    nodes.IntegerLiteral: _literal,
    nodes.LongLiteral: _literal,
    nodes.DoubleLiteral: _literal,
    nodes.StringLiteral: _literal,
    nodes.ColumnReference: _column,
    nodes.Arithmetic: _arithmetic,
    nodes.Sign: _sign,
    nodes.Comparison: _compared,
    nodes.Between: _between,
    nodes.Logical: _logical,
    nodes.Not: _negated,
    nodes.IsNull: _is_null,
    nodes.IsNotNull: _is_not_null,
    nodes.InList: _in_list,
    nodes.SearchedCase: _searched_case,
    nodes.SimpleCase: _simple_case,
    nodes.Cast: _cast,
}
