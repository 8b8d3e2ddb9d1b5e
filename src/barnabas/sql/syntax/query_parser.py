"""Parsing of SELECT: what is selected, sources and joins, windows, and the clauses behind them."""

from __future__ import annotations

from barnabas.java.time.units import MS_OF_UNIT
from barnabas.sql.errors import PrepareError
from barnabas.sql.syntax import tree
from barnabas.sql.syntax.expression_parser import WINDOW_UNITS, ExpressionParser
from barnabas.sql.syntax.expressions import Expression
from barnabas.sql.syntax.lexer import NUMBERS, TokenKind
from barnabas.sql.syntax.type_parser import whole

_JOINS = {
    "JOIN": tree.JoinKind.INNER,
    "INNER": tree.JoinKind.INNER,
    "LEFT": tree.JoinKind.LEFT,
    "RIGHT": tree.JoinKind.RIGHT,
    "FULL": tree.JoinKind.OUTER,
}


class QueryParser(ExpressionParser):
    """A cursor that can take queries."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.sources: set[str] = set()
        """Names and aliases of the sources taken so far, in the current statement."""

    def query(self, *, is_persistent: bool) -> tree.Query:
        """Take a query; one that is persistent emits changes even if it does not say so."""
        place = self.expect("SELECT").place
        select = self.listed(self._select_item)
        self.expect("FROM")
        source = self._source()
        joins = []
        while self.token.word in _JOINS:
            joins.append(self._join())
        return tree.Query(
            select=select,
            source=source,
            joins=tuple(joins),
            window=self._window() if self.accept("WINDOW") else None,
            where=self.expression() if self.accept("WHERE") else None,
            group_by=self._grouping() if self.accept("GROUP", "BY") else None,
            partition_by=self._grouping() if self.accept("PARTITION", "BY") else None,
            having=self.expression() if self.accept("HAVING") else None,
            emit=self._emit(is_persistent=is_persistent),
            limit=self.whole_number("LIMIT") if self.accept("LIMIT") else None,
            place=place,
        )

    def check_qualifiers(self) -> None:
        """Every name before a point must be that of a source, once all sources are known."""
        for name in self.qualifiers:
            if name not in self.sources:
                raise PrepareError(f"'{name}' is not a valid stream/table name or alias.")

    # --- SELECT … ---------------------------------------------------------------------------------

    def _select_item(self) -> tree.SelectItem:
        place = self.token.place
        if self.accept("*"):
            return tree.AllColumns(place=place)
        if self.is_identifier() and self.ahead().word == "." and self.ahead(2).word == "*":
            source = self.identifier()
            self.expect(".", "*")
            self.qualifiers.append(source)
            return tree.AllColumns(source, place=place)
        expression = self.expression()
        if self.accept("->", "*"):
            return tree.StructAll(expression, place=place)
        if self.accept("AS") or self.is_identifier():
            return tree.SingleColumn(expression, self.identifier(), place=place)
        return tree.SingleColumn(expression, place=place)

    # --- FROM … -----------------------------------------------------------------------------------

    def _source(self) -> tree.Source:
        place = self.token.place
        name = self.source_name()
        alias = name
        if self.accept("AS") or self._is_alias():
            alias = self.source_name()
        self.sources |= {name, alias}
        return tree.Source(name, alias, place=place)

    def _is_alias(self) -> bool:
        """Whether a name comes next, and not a clause that begins with a word that is not a name
        only in its place."""
        if not self.is_identifier():
            return False
        if self.at("EMIT"):
            return self.ahead().word not in ("CHANGES", "FINAL")
        return not self.at("PARTITION", "BY")

    def _join(self) -> tree.Join:
        place = self.token.place
        kind = _JOINS[self.token.word]
        if not self.at("JOIN"):
            self.take()
            if kind is not tree.JoinKind.INNER:
                self.accept("OUTER")
        self.expect("JOIN")
        source = self._source()
        within = self._within() if self.accept("WITHIN") else None
        self.expect("ON")
        return tree.Join(kind, source, self.expression(), within, place=place)

    def _within(self) -> tree.Within:
        place = self.token.place
        if self.accept("("):
            before_ms = self.duration_ms()
            self.expect(",")
            after_ms = self.duration_ms()
            self.expect(")")
        else:
            before_ms = after_ms = self.duration_ms()
        return tree.Within(before_ms, after_ms, self._grace(), place=place)

    def _grace(self) -> int | None:
        return self.duration_ms() if self.accept("GRACE", "PERIOD") else None

    def duration_ms(self) -> int:
        """Take a number and a unit of time, in milliseconds."""
        sign = -1 if self.accept("-") else 1
        if self.token.kind not in NUMBERS:
            self.fail_here()
        token = self.take()
        if self.token.word not in WINDOW_UNITS:
            self.fail_here()
        unit = WINDOW_UNITS[self.take().word]
        if token.kind is not TokenKind.INTEGER:
            raise PrepareError(f'For input string: "{token.text}"', token.place)
        duration_ms = sign * whole(token.text) * MS_OF_UNIT[unit]
        if not -(2**63) <= duration_ms < 2**63:
            raise PrepareError(f"Duration is too long: {token.text} {unit}", token.place)
        return duration_ms

    # --- WINDOW … ---------------------------------------------------------------------------------

    def _window(self) -> tree.Window:
        place = self.token.place
        name = None
        if self.token.kind is TokenKind.WORD and self.ahead().word in _WINDOWS:
            name = self.take().word
        if self.token.word not in _WINDOWS:
            self.fail_here()
        kind = _WINDOWS[self.take().word]
        self.expect("(")
        if kind is not tree.WindowKind.SESSION:
            self.expect("SIZE")
        size_ms = advance_ms = self.duration_ms()
        if kind is tree.WindowKind.HOPPING:
            self.expect(",", "ADVANCE", "BY")
            advance_ms = self.duration_ms()
        retention_ms = self.duration_ms() if self.accept(",", "RETENTION") else None
        grace_ms = self.duration_ms() if self.accept(",", "GRACE", "PERIOD") else None
        self.expect(")")
        return tree.Window(kind, size_ms, advance_ms, retention_ms, grace_ms, name, place=place)

    # --- GROUP BY …, PARTITION BY …, EMIT … -------------------------------------------------------

    def _grouping(self) -> tuple[Expression, ...]:
        """Expressions between commas, all of them in parentheses or none."""
        if self.at("(") and self._parentheses_hold_list():
            return self.values()
        return self._values()

    def _parentheses_hold_list(self) -> bool:
        """Return whether the parentheses that open here hold nothing, or a comma of their own."""
        depth, count = 0, 0
        while (token := self.ahead(count)).kind is not TokenKind.END:
            if token.word in ("(", "["):
                depth += 1
            elif token.word in (")", "]"):
                depth -= 1
            elif token.word == "," and depth == 1:
                return True
            if depth == 0:
                return count == 1
            count += 1
        return False

    def _values(self) -> tuple[Expression, ...]:
        return self.listed(self.value_expression)

    def values(self) -> tuple[Expression, ...]:
        """Take expressions in parentheses."""
        self.expect("(")
        taken = () if self.at(")") else self._values()
        self.expect(")")
        return taken

    def _emit(self, *, is_persistent: bool) -> tree.Emit | None:
        if not self.accept("EMIT"):
            return tree.Emit.CHANGES if is_persistent else None
        if self.accept("FINAL"):
            return tree.Emit.FINAL
        self.expect("CHANGES")
        return tree.Emit.CHANGES


_WINDOWS = {kind.value: kind for kind in tree.WindowKind}
