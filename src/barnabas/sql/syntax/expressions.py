"""Expressions: the tree that the parser makes, that types are inferred for, and that is compiled.

Nodes are values: two of the same shape are equal wherever they stood in the text (`place` does not
count), as GROUP BY finds its expressions among those selected.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal
from enum import Enum
from typing import TypeAlias

from barnabas.sql.errors import Place
from barnabas.sql.types import SqlType


@dataclass(frozen=True)
class Node:
    """Anything in a syntax tree, with its place in the text."""

    place: Place | None = field(default=None, compare=False, repr=False, kw_only=True)


@dataclass(frozen=True)
class NullLiteral(Node): ...


@dataclass(frozen=True)
class BooleanLiteral(Node):
    value: bool


@dataclass(frozen=True)
class IntegerLiteral(Node):
    """A whole number in the range of INTEGER."""

    value: int


@dataclass(frozen=True)
class LongLiteral(Node):
    """A whole number beyond the range of INTEGER, in that of BIGINT."""

    value: int


@dataclass(frozen=True)
class DoubleLiteral(Node):
    """A number with an exponent: `1e3`."""

    value: float


@dataclass(frozen=True)
class DecimalLiteral(Node):
    """A number with a point: `1.20` is a DECIMAL(3, 2)."""

    value: Decimal


@dataclass(frozen=True)
class StringLiteral(Node):
    value: str


@dataclass(frozen=True)
class BytesLiteral(Node):
    value: bytes


@dataclass(frozen=True)
class ColumnReference(Node):
    """A column, as `name` or `source.name`."""

    name: str
    source: str | None = None


class ArithmeticOperator(Enum):
    """Signs between two numbers."""

    ADD = "+"
    SUBTRACT = "-"
    MULTIPLY = "*"
    DIVIDE = "/"
    MODULUS = "%"


@dataclass(frozen=True)
class Arithmetic(Node):
    """`left operator right`; `||` is a call of CONCAT."""

    operator: ArithmeticOperator
    left: Expression
    right: Expression


@dataclass(frozen=True)
class Sign(Node):
    """`-operand` or `+operand`."""

    is_minus: bool
    operand: Expression


class ComparisonOperator(Enum):
    """The operators that compare two values."""

    EQUAL = "="
    NOT_EQUAL = "<>"
    LESS_THAN = "<"
    LESS_THAN_OR_EQUAL = "<="
    GREATER_THAN = ">"
    GREATER_THAN_OR_EQUAL = ">="
    IS_DISTINCT_FROM = "IS DISTINCT FROM"
    IS_NOT_DISTINCT_FROM = "IS NOT DISTINCT FROM"


@dataclass(frozen=True)
class Comparison(Node):
    """`left operator right`."""

    operator: ComparisonOperator
    left: Expression
    right: Expression


class LogicalOperator(Enum):
    """The operators that join two conditions."""

    AND = "AND"
    OR = "OR"


@dataclass(frozen=True)
class Logical(Node):
    """`left AND right` or `left OR right`."""

    operator: LogicalOperator
    left: Expression
    right: Expression


@dataclass(frozen=True)
class Not(Node):
    operand: Expression


@dataclass(frozen=True)
class IsNull(Node):
    operand: Expression


@dataclass(frozen=True)
class IsNotNull(Node):
    operand: Expression


@dataclass(frozen=True)
class Between(Node):
    """`NOT BETWEEN` is a Not around it."""

    operand: Expression
    lower: Expression
    upper: Expression


@dataclass(frozen=True)
class InList(Node):
    """`NOT IN` is a Not around it."""

    operand: Expression
    items: tuple[Expression, ...]


@dataclass(frozen=True)
class Like(Node):
    """`NOT LIKE` is a Not around it."""

    operand: Expression
    pattern: Expression
    escape: str | None = None


@dataclass(frozen=True)
class When(Node):
    """One `WHEN condition THEN result` of a CASE."""

    condition: Expression
    result: Expression


@dataclass(frozen=True)
class SearchedCase(Node):
    """`CASE WHEN condition THEN result … [ELSE default] END`."""

    whens: tuple[When, ...]
    default: Expression | None = None


@dataclass(frozen=True)
class SimpleCase(Node):
    """`CASE operand WHEN value THEN result … [ELSE default] END`."""

    operand: Expression
    whens: tuple[When, ...]
    default: Expression | None = None


@dataclass(frozen=True)
class Cast(Node):
    """`CAST(operand AS type)`."""

    operand: Expression
    type: SqlType


@dataclass(frozen=True)
class Subscript(Node):
    """`base[index]`, of an ARRAY (from 1; negative from the end) or a MAP."""

    base: Expression
    index: Expression


@dataclass(frozen=True)
class Dereference(Node):
    """`base->name`, of a STRUCT."""

    base: Expression
    name: str


@dataclass(frozen=True)
class ArrayConstructor(Node):
    items: tuple[Expression, ...]


@dataclass(frozen=True)
class MapConstructor(Node):
    entries: tuple[tuple[Expression, Expression], ...]


@dataclass(frozen=True)
class StructConstructor(Node):
    fields: tuple[tuple[str, Expression], ...]


@dataclass(frozen=True)
class IntervalUnit(Node):
    """A unit of time as an argument: `TIMESTAMPADD(DAYS, 1, t)`; upper case and plural."""

    unit: str


@dataclass(frozen=True)
class Lambda(Node):
    """`(x, y) => body`; in the body its parameters are LambdaVariable nodes."""

    parameters: tuple[str, ...]
    body: Expression


@dataclass(frozen=True)
class LambdaVariable(Node):
    name: str


@dataclass(frozen=True)
class FunctionCall(Node):
    """A scalar function, aggregate or table function; `COUNT(*)` has no arguments."""

    name: str
    arguments: tuple[Expression, ...]


Expression: TypeAlias = (
    NullLiteral
    | BooleanLiteral
    | IntegerLiteral
    | LongLiteral
    | DoubleLiteral
    | DecimalLiteral
    | StringLiteral
    | BytesLiteral
    | ColumnReference
    | Arithmetic
    | Sign
    | Comparison
    | Logical
    | Not
    | IsNull
    | IsNotNull
    | Between
    | InList
    | Like
    | SearchedCase
    | SimpleCase
    | Cast
    | Subscript
    | Dereference
    | ArrayConstructor
    | MapConstructor
    | StructConstructor
    | IntervalUnit
    | Lambda
    | LambdaVariable
    | FunctionCall
)
