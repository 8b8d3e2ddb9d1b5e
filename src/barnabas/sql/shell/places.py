"""Where in a statement an error is: the line, underlined."""

from __future__ import annotations

import re

from barnabas.sql.syntax.lexer import TokenKind, tokenize

_PLACE = re.compile(r"(?i:\bline:? ?)(\d+)(?::|, ?[Cc]ol: ?)(\d+)")


def underlined(message: str, statement: str) -> str:
    """The line of the statement that a message names, with a mark under the place; or nothing."""
    match = _PLACE.search(message)
    lines = statement.splitlines()
    if match is None:
        return ""
    line, column = int(match[1]), int(match[2])
    if not 1 <= line <= len(lines) or not 1 <= column <= len(lines[line - 1]) + 1:
        return ""
    width = 1
    for token in tokenize(statement):
        place = token.place
        if place.line == line and place.column == column and token.kind is not TokenKind.END:
            width = len(token.text.split("\n")[0])
    shown = lines[line - 1]
    # Tabs stay tabs, so that the mark stands under its word.
    indent = "".join("\t" if letter == "\t" else " " for letter in shown[: column - 1])
    return f"  {shown}\n  {indent}{'^' * width}"
