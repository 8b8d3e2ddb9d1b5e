"""What can be wrong with a statement, with the place in its text."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Place:
    """Where a token begins: line and column count from 1, as in ksqlDB's messages."""

    line: int
    column: int

    def __str__(self) -> str:
        return f"line {self.line}:{self.column}"


class SqlError(Exception):
    """A statement cannot be taken; `place` is where its text goes wrong, if one can be named."""

    def __init__(self, message: str, place: Place | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.place = place

    def __str__(self) -> str:
        return f"{self.place}: {self.message}" if self.place else self.message


class ParseError(SqlError):
    """The text is no statement."""


class AnalysisError(SqlError):
    """A statement says what cannot be: an unknown column, types that don't match, …"""


class EvaluationError(Exception):
    """An expression has no value for this record (overflow, a text that is no number, …)."""
