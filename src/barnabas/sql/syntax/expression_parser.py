"""Parsing of expressions by precedence: OR, AND, NOT, one predicate, `||`, `+ -`, `* / %`, signs,
AT TIME ZONE, and what stands by itself."""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal

from barnabas.sql.errors import Place, PrepareError
from barnabas.sql.syntax import expressions as nodes
from barnabas.sql.syntax.expressions import Expression
from barnabas.sql.syntax.lexer import NUMBERS, Token, TokenKind
from barnabas.sql.syntax.type_parser import TypeParser, whole

COMPARISONS = {operator.value: operator for operator in nodes.ComparisonOperator}
ARITHMETIC = {operator.value: operator for operator in nodes.ArithmeticOperator}

_BINDING = {"||": 1, "+": 2, "-": 2, "*": 3, "/": 3, "%": 3, "AT": 5}
_SIGN_BINDING = 4
"""The precedence of operators on values; all of them are left-associative."""

_CHAIN_MAX = 16

WINDOW_UNITS = {
    unit + ending: unit + "S"
    for unit in ("DAY", "HOUR", "MINUTE", "SECOND", "MILLISECOND")
    for ending in ("", "S")
}
"""Units of time as they may be written, to how they count."""

_UNIT_ARGUMENTS = frozenset({"DAYS", "HOURS", "MINUTES", "SECONDS", "MILLISECOND", "MILLISECONDS"})
"""Units that are arguments of functions; the others (`DAY`) are names there, as of columns."""


class ExpressionParser(TypeParser):
    """A cursor that can take expressions."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.qualifiers: list[str] = []
        """Names before a point, in order: each must be the name or alias of a source."""
        self._lambda_parameters: list[str] = []

    # --- logic ------------------------------------------------------------------------------------

    def expression(self) -> Expression:
        """Take any expression."""
        return self._or()

    def expressions(self) -> tuple[Expression, ...]:
        """Take one or more expressions, between commas."""
        return self.listed(self.expression)

    def _or(self) -> Expression:
        operands, places = [self._and()], []
        while self.at("OR"):
            places.append(self.take().place)
            operands.append(self._and())
        return _chain(nodes.LogicalOperator.OR, operands, places)

    def _and(self) -> Expression:
        operands, places = [self._not()], []
        while self.at("AND"):
            places.append(self.take().place)
            operands.append(self._not())
        return _chain(nodes.LogicalOperator.AND, operands, places)

    def _not(self) -> Expression:
        if self.at("NOT"):
            place = self.take().place
            self.open_level()
            operand = self._not()
            self.close_level()
            return nodes.Not(operand, place=place)
        return self._predicate(self.value_expression())

    def _predicate(self, operand: Expression) -> Expression:
        place = self.token.place
        if self.token.word in COMPARISONS:
            operator = COMPARISONS[self.take().word]
            return nodes.Comparison(operator, operand, self.value_expression(), place=place)
        if self.accept("IS"):
            return self._is(operand, place)
        negated = self.at("NOT") and self.accept("NOT")
        result: Expression
        if self.accept("BETWEEN"):
            lower = self.value_expression()
            self.expect("AND")
            result = nodes.Between(operand, lower, self.value_expression(), place=place)
        elif self.accept("IN"):
            self.expect("(")
            result = nodes.InList(operand, self.expressions(), place=place)
            self.expect(")")
        elif self.accept("LIKE"):
            pattern = self.value_expression()
            result = nodes.Like(operand, pattern, self._escape(), place=place)
        elif negated:
            self.fail_here()
        else:
            return operand
        return nodes.Not(result, place=place) if negated else result

    def _is(self, operand: Expression, place: Place) -> Expression:
        negated = self.accept("NOT")
        if self.accept("NULL"):
            return (nodes.IsNotNull if negated else nodes.IsNull)(operand, place=place)
        self.expect("DISTINCT", "FROM")
        operator = nodes.ComparisonOperator.IS_DISTINCT_FROM
        result = nodes.Comparison(operator, operand, self.value_expression(), place=place)
        return nodes.Not(result, place=place) if negated else result

    def _escape(self) -> str | None:
        if not self.accept("ESCAPE"):
            return None
        place = self.token.place
        escape = self.string()
        if len(escape) != 1:
            raise PrepareError(
                f"Line: {place.line}, Col: {place.column}: Expected single character escape but "
                f"got: {escape}"
            )
        return escape

    # --- values -----------------------------------------------------------------------------------

    def value_expression(self, binding_min: int = 0) -> Expression:
        """Take an expression of values: no logic and no comparison, except in parentheses."""
        self.open_level()
        left = self._signed()
        while (binding := _BINDING.get(self.token.word, -1)) >= max(binding_min, 1):
            token = self.take()
            if token.word == "AT":
                self.expect("TIME", "ZONE")
                self.string()
                raise PrepareError("AT TIME ZONE is not supported; use CONVERT_TZ", token.place)
            right = self.value_expression(binding + 1)
            if token.word == "||":
                left = nodes.FunctionCall("CONCAT", (left, right), place=token.place)
            else:
                left = nodes.Arithmetic(ARITHMETIC[token.word], left, right, place=token.place)
        self.close_level()
        return left

    def _signed(self) -> Expression:
        if not self.at_any("-", "+"):
            return self._postfix(self._primary())
        if self.at("-") and self.ahead().kind in NUMBERS:
            return self._postfix(self.number())
        sign = self.take()
        return nodes.Sign(sign.word == "-", self.value_expression(_SIGN_BINDING), place=sign.place)

    def _postfix(self, base: Expression) -> Expression:
        while True:
            place = self.token.place
            if self.accept("["):
                base = nodes.Subscript(base, self.value_expression(), place=place)
                self.expect("]")
            elif self.at("->") and not self.at("->", "*"):
                self.expect("->")
                base = nodes.Dereference(base, self.identifier(), place=place)
            else:
                return base

    def _primary(self) -> Expression:
        token = self.token
        if token.word in _PRIMARIES and token.kind is not TokenKind.UNKNOWN:
            opener = _OPENERS.get(token.word)
            if opener is None or self.ahead().word == opener:
                return _PRIMARIES[token.word](self)
        if token.kind in NUMBERS:
            return self.number()
        if token.kind is TokenKind.STRING:
            return nodes.StringLiteral(self.string(), place=token.place)
        if token.kind is TokenKind.VARIABLE and self.ahead().word not in (".", "("):
            self.note_literal(self.take())
            return nodes.StringLiteral(token.text, place=token.place)
        if not self.is_identifier():
            self.fail_here()
        return self._named()

    def _parenthesized(self) -> Expression:
        self.expect("(")
        inner = self.expression()
        self.expect(")")
        return inner

    def _null(self) -> Expression:
        return nodes.NullLiteral(place=self.take().place)

    def _boolean(self) -> Expression:
        token = self.take()
        return nodes.BooleanLiteral(token.word == "TRUE", place=token.place)

    def number(self) -> Expression:
        """Take a number, with a minus before it or without."""
        place = self.token.place
        sign = "-" if self.accept("-") else ""
        if self.token.kind not in NUMBERS:
            self.fail_here()
        token = self.take()
        return number_literal(token, sign + token.text, place)

    # --- names, functions, constructors -----------------------------------------------------------

    def _named(self) -> Expression:
        place = self.token.place
        name = self.identifier()
        if self.at("("):
            return nodes.FunctionCall(name, self._arguments(), place=place)
        if self.token.kind is TokenKind.STRING:
            return self._typed_literal(name, place)
        if self.at(".") and not self.at(".", "*"):
            self.expect(".")
            self.qualifiers.append(name)
            return nodes.ColumnReference(self.identifier(), name, place=place)
        if name in self._lambda_parameters:
            return nodes.LambdaVariable(name, place=place)
        return nodes.ColumnReference(name, place=place)

    def _typed_literal(self, name: str, place: Place) -> Expression:
        text = self.string()
        if name == "DECIMAL":
            return nodes.DecimalLiteral(Decimal(text), place=place)
        raise PrepareError(f"Unknown type: {name}", place)

    def _arguments(self) -> tuple[Expression, ...]:
        self.expect("(")
        if self.accept("*", ")") or self.accept(")"):
            return ()
        taken = [self._argument(is_first=True)]
        while self.accept(","):
            taken.append(self._argument(is_first=False))
        self.expect(")")
        return tuple(taken)

    def _argument(self, *, is_first: bool) -> Expression:
        if self.token.word in _UNIT_ARGUMENTS:
            token = self.take()
            return nodes.IntervalUnit(WINDOW_UNITS[token.word], place=token.place)
        if not is_first and self._is_lambda():
            return self._lambda()
        return self.expression()

    def _is_lambda(self) -> bool:
        if self.is_identifier():
            return self.ahead().word == "=>"
        if not self.at("("):
            return False
        count = 1
        while self.is_identifier(count) and self.ahead(count + 1).word == ",":
            count += 2
        return self.is_identifier(count) and [
            self.ahead(count + 1).word,
            self.ahead(count + 2).word,
        ] == [")", "=>"]

    def _lambda(self) -> Expression:
        place = self.token.place
        if self.accept("("):
            parameters = self.listed(self.identifier)
            self.expect(")")
        else:
            parameters = (self.identifier(),)
        self.expect("=>")
        outer = self._lambda_parameters
        self._lambda_parameters = [*outer, *parameters]
        body = self.expression()
        self._lambda_parameters = outer
        return nodes.Lambda(parameters, body, place=place)

    def _case(self) -> Expression:
        place = self.expect("CASE").place
        operand = None if self.at("WHEN") else self.value_expression()
        whens: list[nodes.When] = []
        while self.at("WHEN") or not whens:
            when = self.expect("WHEN").place
            condition = self.expression()
            self.expect("THEN")
            whens.append(nodes.When(condition, self.expression(), place=when))
        default = self.expression() if self.accept("ELSE") else None
        self.expect("END")
        if operand is None:
            return nodes.SearchedCase(tuple(whens), default, place=place)
        return nodes.SimpleCase(operand, tuple(whens), default, place=place)

    def _cast(self) -> Expression:
        place = self.token.place
        self.expect("CAST", "(")
        operand = self.expression()
        self.expect("AS")
        target = self.type()
        self.expect(")")
        return nodes.Cast(operand, target, place=place)

    def _array(self) -> Expression:
        place = self.token.place
        self.expect("ARRAY", "[")
        items = () if self.at("]") else self.expressions()
        self.expect("]")
        return nodes.ArrayConstructor(items, place=place)

    def _map(self) -> Expression:
        place = self.token.place
        self.expect("MAP", "(")
        entries: list[tuple[Expression, Expression]] = []
        while not self.at(")"):
            if entries:
                self.expect(",")
            key = self.expression()
            self.expect(":=")
            entries.append((key, self.expression()))
        self.expect(")")
        return nodes.MapConstructor(tuple(entries), place=place)

    def _struct(self) -> Expression:
        place = self.token.place
        self.expect("STRUCT", "(")
        fields: list[tuple[str, Expression]] = []
        while not self.at(")"):
            if fields:
                self.expect(",")
            name = self.identifier()
            self.expect(":=")
            fields.append((name, self.expression()))
        self.expect(")")
        return nodes.StructConstructor(tuple(fields), place=place)


_PRIMARIES = {
    "(": ExpressionParser._parenthesized,
    "NULL": ExpressionParser._null,
    "TRUE": ExpressionParser._boolean,
    "FALSE": ExpressionParser._boolean,
    "CASE": ExpressionParser._case,
    "CAST": ExpressionParser._cast,
    "ARRAY": ExpressionParser._array,
    "MAP": ExpressionParser._map,
    "STRUCT": ExpressionParser._struct,
}
_OPENERS = {"ARRAY": "[", "MAP": "(", "STRUCT": "("}
"""Words that are names unless this follows them."""


def _chain(
    operator: nodes.LogicalOperator, operands: Sequence[Expression], places: Sequence[Place]
) -> Expression:
    """Operands with the operator between each two. A long chain is split in its middle, so that
    its tree is shallow; a short one groups to the left, as ksqlDB shows it."""
    if len(operands) > _CHAIN_MAX:
        middle = len(operands) // 2
        return nodes.Logical(
            operator,
            _chain(operator, operands[:middle], places[: middle - 1]),
            _chain(operator, operands[middle:], places[middle:]),
            place=places[middle - 1],
        )
    left = operands[0]
    for right, place in zip(operands[1:], places, strict=True):
        left = nodes.Logical(operator, left, right, place=place)
    return left


def number_literal(token: Token, text: str, place: Place) -> Expression:
    """The literal of a token that is a number; `text` is its text with its sign.

    A number out of range is said to stand one column further, as in ksqlDB's message.
    """
    behind = Place(place.line, place.column + 1)
    if token.kind is TokenKind.DECIMAL:
        return nodes.DecimalLiteral(Decimal(text), place=place)
    if token.kind is TokenKind.FLOAT:
        value = float(text)
        if math.isinf(value):
            raise PrepareError(f"Number overflows DOUBLE: {text}", behind)
        return nodes.DoubleLiteral(value, place=place)
    number = whole(text)
    if -(2**31) <= number < 2**31:
        return nodes.IntegerLiteral(number, place=place)
    if -(2**63) <= number < 2**63:
        return nodes.LongLiteral(number, place=place)
    raise PrepareError(f"Invalid numeric literal: {text}", behind)
