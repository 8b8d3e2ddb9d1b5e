"""The lexer: splits text into tokens with their places, without comments and white space.

Tokens are those of ksqlDB's grammar: as there, the longest match wins (`1e3` is a number, `1e3x`
a name that begins with a digit), and case does not matter. A character that begins no token becomes
an unknown token, so that the parser can point to it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum, auto

from barnabas.sql.errors import Place


class TokenKind(Enum):
    """The kind of a token."""

    WORD = auto()  # a name or a word of the language
    QUOTED = auto()  # "name"
    BACKQUOTED = auto()  # `name`
    DIGIT_NAME = auto()  # 1name
    VARIABLE = auto()  # ${name}
    STRING = auto()
    INTEGER = auto()
    DECIMAL = auto()
    FLOAT = auto()
    SYMBOL = auto()
    UNKNOWN = auto()
    END = auto()


NAMES = frozenset({TokenKind.QUOTED, TokenKind.BACKQUOTED, TokenKind.DIGIT_NAME})
"""Kinds that are names and nothing else."""

NUMBERS = frozenset({TokenKind.INTEGER, TokenKind.DECIMAL, TokenKind.FLOAT})


@dataclass(frozen=True, slots=True)
class Token:
    """`text` is as written; `word` is what to compare: upper case for words, else the text of
    symbols, and nothing for the rest. `start` is the token's offset in the whole text."""

    kind: TokenKind
    text: str
    word: str
    place: Place
    start: int

    @property
    def stop(self) -> int:
        """The offset behind the token."""
        return self.start + len(self.text)

    @property
    def shown(self) -> str:
        """The token as messages show it."""
        return "<EOF>" if self.kind is TokenKind.END else self.text

    @property
    def value(self) -> str:
        """The text between the quotes of a string or a quoted name."""
        quote = self.text[0]
        return self.text[1:-1].replace(quote * 2, quote)


_SKIPPED = r"(?:[ \t\r\n]+|--[^\r\n]*|/\*.*?\*/)+"
_TOKEN = re.compile(
    rf"""(?P<skip>{_SKIPPED})
    |(?P<FLOAT>(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)E[+-]?[0-9]+(?![A-Z0-9_@]))
    |(?P<DECIMAL>[0-9]+\.[0-9]*|\.[0-9]+)
    |(?P<DIGIT_NAME>[0-9]+[A-Z_@][A-Z0-9_@]*)
    |(?P<INTEGER>[0-9]+)
    |(?P<WORD>[A-Z_][A-Z0-9_@]*)
    |(?P<QUOTED>"(?:[^"]|"")*")
    |(?P<BACKQUOTED>`(?:[^`]|``)*`)
    |(?P<STRING>'(?:[^']|'')*')
    |(?P<VARIABLE>\$\{{[A-Z_][A-Z0-9_@]*\}})
    |(?P<SYMBOL><>|!=|<=|>=|\|\||:=|->|=>|[=<>+\-*/%()\[\],.;])
    |(?P<UNKNOWN>.)""",
    re.IGNORECASE | re.DOTALL | re.VERBOSE | re.ASCII,
)
_KINDS = {kind.name: kind for kind in TokenKind}


def tokenize(text: str) -> list[Token]:
    """The tokens of a text; the last one is END, placed behind the last character."""
    tokens = []
    line, line_start = 1, 0
    for match in _TOKEN.finditer(text):
        name, start = match.lastgroup or "", match.start()
        matched = match.group()
        if name != "skip":
            kind = _KINDS[name]
            word = matched.upper() if kind is TokenKind.WORD else ""
            if kind is TokenKind.SYMBOL:
                word = "<>" if matched == "!=" else matched
            tokens.append(Token(kind, matched, word, Place(line, start - line_start + 1), start))
        if (newlines := matched.count("\n")) > 0:
            line += newlines
            line_start = start + matched.rindex("\n") + 1
    end = Place(line, len(text) - line_start + 1)
    tokens.append(Token(TokenKind.END, "", "", end, len(text)))
    return tokens
