"""Cuts what a user types into statements, and tells what kind each one is."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto

from barnabas.sql.syntax.lexer import Token, TokenKind, tokenize

_QUOTES = ("'", '"', "`")


class Kind(Enum):
    """The handler of a statement, and the form of its answer."""

    QUERY = auto()
    PRINT = auto()
    SET = auto()
    UNSET = auto()
    DEFINE = auto()
    UNDEFINE = auto()
    RUN_SCRIPT = auto()
    STATEMENT = auto()


@dataclass(frozen=True, slots=True)
class Piece:
    """One statement with its `;`, from its first word on."""

    text: str
    kind: Kind


def split(text: str) -> tuple[list[Piece], str]:
    """The statements of a text, and what stands behind the last `;`, without comments alone.

    A string or a comment that is not closed belongs to what is not finished.
    """
    pieces: list[Piece] = []
    begun: list[Token] = []
    for index, token in enumerate(tokens := tokenize(text)):
        if _opens(token, tokens[index + 1 : index + 2]):
            begun = begun or [token]
            return pieces, text[begun[0].start :]
        if token.kind is TokenKind.END:
            break
        if token.word == ";":
            if begun:
                pieces.append(Piece(text[begun[0].start : token.stop], kind_of(begun)))
            begun = []
            continue
        begun.append(token)
    return pieces, text[begun[0].start :].rstrip() if begun else ""


def _opens(token: Token, following: list[Token]) -> bool:
    """Return whether a string, a quoted name or a comment begins here and has no end."""
    if token.kind is TokenKind.UNKNOWN:
        return token.text in _QUOTES
    if token.text != "/" or not following:
        return False
    return following[0].text == "*" and following[0].start == token.stop


def kind_of(tokens: list[Token]) -> Kind:
    """The kind of a statement, by its first words."""
    first = tokens[0].word
    if first == "RUN" and len(tokens) > 1 and tokens[1].word == "SCRIPT":
        return Kind.RUN_SCRIPT
    return {
        "SELECT": Kind.QUERY,
        "PRINT": Kind.PRINT,
        "SET": Kind.SET,
        "UNSET": Kind.UNSET,
        "DEFINE": Kind.DEFINE,
        "UNDEFINE": Kind.UNDEFINE,
    }.get(first, Kind.STATEMENT)
