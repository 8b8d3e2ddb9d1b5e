"""The columns that the header of a query's answer names."""

from __future__ import annotations

from barnabas.sql.syntax.lexer import TokenKind, tokenize


def column_names(schema: str) -> list[str]:
    """The names of a schema such as "`ID` INTEGER KEY, `PAIR` STRUCT<`A` INTEGER>"."""
    names: list[str] = []
    depth, is_start = 0, True
    for token in tokenize(schema):
        if token.kind is TokenKind.END:
            break
        if is_start:
            is_quoted = token.kind in (TokenKind.BACKQUOTED, TokenKind.QUOTED)
            names.append(token.value if is_quoted else token.text)
        depth += {"<": 1, "(": 1, ">": -1, ")": -1}.get(token.word, 0)
        is_start = token.word == "," and depth == 0
    return names
