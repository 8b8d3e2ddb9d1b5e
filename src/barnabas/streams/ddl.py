"""Schemas in Spark's DDL, read without Spark: names of columns, and types that do not exist.

What this reads differently than expected is left to Spark, which parses the whole when it runs.
"""

from __future__ import annotations

import re
from typing import Final

from barnabas.streams.errors import PipelineError
from barnabas.streams.names import nearest

_TYPES: Final = (
    *("BOOLEAN", "TINYINT", "BYTE", "SMALLINT", "SHORT", "INT", "INTEGER", "BIGINT", "LONG"),
    *("FLOAT", "REAL", "DOUBLE", "DECIMAL", "DEC", "NUMERIC", "STRING", "CHAR", "CHARACTER"),
    *("VARCHAR", "BINARY", "DATE", "TIME", "TIMESTAMP", "TIMESTAMP_NTZ", "TIMESTAMP_LTZ"),
    *("INTERVAL", "VARIANT", "VOID", "ARRAY", "MAP", "STRUCT", "GEOMETRY", "GEOGRAPHY"),
)
_TOKEN: Final = re.compile(r"\s*(`(?:[^`]|``)*`|'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|\w+|\S)")


class _UnreadableError(Exception):
    """A form that is left to Spark."""


def columns_of(ddl: str) -> tuple[str, ...] | None:
    """Return the names of the columns; None where only Spark can say.

    Raises PipelineError for a type that does not exist, and a column without one.
    """
    reading = _Reading(_TOKEN.findall(ddl), ddl)
    try:
        if reading.peek().upper() == "STRUCT" and reading.peek(1) == "<":
            reading.take()
            return reading.fields("<", ">")
        return reading.fields("", "")
    except _UnreadableError:
        return None


class _Reading:
    def __init__(self, tokens: list[str], ddl: str) -> None:
        self._tokens = tokens
        self._at = 0
        self._ddl = ddl

    def peek(self, ahead: int = 0) -> str:
        at = self._at + ahead
        return self._tokens[at] if at < len(self._tokens) else ""

    def take(self, *wanted: str) -> str:
        token = self.peek()
        if not token or (wanted and token.upper() not in wanted):
            raise _UnreadableError
        self._at += 1
        return token

    def fields(self, opening: str, closing: str) -> tuple[str, ...]:
        """Read columns up to `closing`."""
        if opening:
            self.take(opening)
        names = []
        while self.peek() != closing:
            name = self.take()
            if not re.fullmatch(r"`.*`|\w+", name, re.DOTALL):
                raise _UnreadableError
            names.append(name[1:-1].replace("``", "`") if name[0] == "`" else name)
            if self.peek() == ":":
                self.take()
            if self.peek() in (",", closing):
                raise PipelineError(f"the column {names[-1]} of {self._ddl!r} has no type")
            self._type(names[-1])
            while self.peek() not in (",", closing):
                self.take()  # NOT NULL, COMMENT and others
            if self.peek() == ",":
                self.take()
        if closing:
            self.take(closing)
        return tuple(names)

    def _type(self, column: str) -> None:
        word = self.take()
        kind = word.upper()
        if not re.fullmatch(r"\w+", word):
            raise _UnreadableError
        if kind not in _TYPES:
            raise PipelineError(
                f"the column {column} has the type {word}, which Spark does not have"
                f"{nearest(word, _TYPES)}"
            )
        if kind == "ARRAY":
            self.take("<")
            self._type(column)
            self.take(">")
        elif kind == "MAP":
            self.take("<")
            self._type(column)
            self.take(",")
            self._type(column)
            self.take(">")
        elif kind == "STRUCT":
            self.fields("<", ">")
        elif self.peek() == "(":
            while self.take() != ")":
                pass
