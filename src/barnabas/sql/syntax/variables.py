"""Substitution of variables: `${name}` in a statement, by what DEFINE said.

A variable may stand for a name, for a literal, or inside a string; nowhere else, and what it holds
must fit its place, so that a value cannot change the statement's form. Unknown variables inside
strings stay as they are. `$${name}` is not replaced: it stands for the text `${name}`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from barnabas.sql.errors import Place, PrepareError
from barnabas.sql.syntax.lexer import Token, TokenKind
from barnabas.sql.syntax.statement_parser import StatementParser

_VARIABLE = re.compile(r"\$\{([^${}]*)\}")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_@]*\Z")
_NUMBER = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?\Z")


def substitute(text: str, variables: Mapping[str, str], *, is_test: bool = False) -> str:
    """The text of one statement with its variables replaced.

    Raises ParseError if the text is not a statement, or if a value does not fit its place.
    """
    if "${" not in text:
        return text
    finder = _VariableFinder(text, variables, is_test=is_test)
    finder.statement()
    finder.end_of_statement()
    return replace(text, finder.found)


def statement_texts(text: str) -> list[str]:
    """The text of each statement of a text, with variables in it. Raises ParseError."""
    splitter = _Splitter(text)
    texts = []
    while splitter.token.kind is not TokenKind.END:
        start = splitter.token.start
        splitter.statement()
        texts.append(text[start : splitter.end_of_statement()])
    return texts


def substitute_text(text: str, variables: Mapping[str, str]) -> str:
    """A text of any kind with its variables replaced."""
    return replace(text, {name: _escaped(value) for name, value in variables.items()})


def replace(text: str, values: Mapping[str, str], *, within: tuple[str, ...] = ()) -> str:
    """The text with `${name}` replaced, also within the values; `$${` stands for `${`.

    `within` names the variables whose values are being looked at.
    """
    parts, position = [], 0
    while (start := text.find("${", position)) >= 0:
        if start > position and text[start - 1] == "$":
            parts.append(text[position:start])
            position = start + 1
            continue
        end = text.find("}", start)
        if end < 0:
            break
        name = text[start + 2 : end]
        if name in within:
            loop = "->".join((*within, name))
            raise PrepareError(f"Infinite loop in property interpolation of {name}: {loop}")
        parts.append(text[position:start])
        value = values.get(name)
        parts.append(
            text[start : end + 1]
            if value is None
            else replace(value, values, within=(*within, name))
        )
        position = end + 1
    return "".join(parts) + text[position:]


class _Splitter(StatementParser):
    """Parses statements to see where they end."""

    def check_source_name(self, name: str, place: Place) -> None:
        """Names are checked once variables are replaced."""


class _VariableFinder(StatementParser):
    """Parses a statement to see where its variables stand."""

    def __init__(self, text: str, variables: Mapping[str, str], *, is_test: bool) -> None:
        super().__init__(text, is_test=is_test)
        self._variables = variables
        self.found: dict[str, str] = {}

    def check_source_name(self, name: str, place: Place) -> None:
        """Names are checked once they are replaced."""

    def note_text(self, token: Token) -> None:
        for name in _VARIABLE.findall(token.text):
            if name in self._variables:
                self.found.setdefault(name, _escaped(self._variables[name]))

    def note_identifier(self, token: Token) -> None:
        value = self._variables.get(token.text[2:-1], token.text)
        is_quoted = len(value) > 1 and value[0] == value[-1] and value[0] in '"`'
        if not _NAME.match(value[1:-1] if is_quoted else value):
            raise PrepareError(
                f"Illegal argument at {_sentence(token.place)}. Identifier names cannot start with "
                f"'@' and may only contain alphanumeric values and '_'. Got: '{value}'",
                statement=self.text,
            )
        self.found.setdefault(token.text[2:-1], value)

    def note_literal(self, token: Token) -> None:
        value = self._variables.get(token.text[2:-1], token.text)
        is_string = len(value) > 1 and value.startswith("'") and value.endswith("'")
        if not (is_string or value.lower() in ("true", "false") or _NUMBER.match(value)):
            raise PrepareError(
                f"Illegal argument at {_sentence(token.place)}. Got: '{value}'", statement=self.text
            )
        self.found.setdefault(token.text[2:-1], _escaped(value))


def _sentence(place: Place) -> str:
    return f"Line: {place.line}, Col: {place.column}"


def _escaped(value: str) -> str:
    """The value with its single quotes doubled, except the pair around it."""
    if len(value) > 1 and value.startswith("'") and value.endswith("'"):
        return "'" + value[1:-1].replace("''", "'").replace("'", "''") + "'"
    return value.replace("'", "''")
