"""Where the shell writes: a terminal or a file, and the spool file beside it."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol, TextIO

from barnabas.sql.shell.entities import entity_lines
from barnabas.sql.shell.tables import Grid
from barnabas.sql.syntax.lexer import TokenKind, tokenize

_WIDTH_IF_UNKNOWN = 120


class Console:
    """Shows answers as tables, or as one JSON document a line.

    `write` takes a text without its line's end. `errors` takes what is no result.
    """

    def __init__(
        self,
        write: Callable[[str], None],
        errors: Callable[[str], None],
        *,
        is_json: bool = False,
        width: int | None = None,
    ) -> None:
        self._write = write
        self._errors = errors
        self.is_json = is_json
        self.column_width = 0
        self.wraps = True
        self._width = width
        self._spool: TextIO | None = None
        self.spool_name = ""

    def lines(self, lines: Iterable[str]) -> None:
        """Lines of a result."""
        for line in lines:
            self._write(line)
            self._to_spool(line)

    def note(self, text: str) -> None:
        """A word for people beside the results; scripts that want JSON get none."""
        if not self.is_json:
            self.lines([text])

    def document(self, value: Any) -> None:
        """One JSON document."""
        self.lines([json.dumps(value, ensure_ascii=False)])

    def entity(self, entity: Mapping[str, Any]) -> None:
        """The answer to a statement."""
        if self.is_json:
            self.document(entity)
        else:
            self.lines(entity_lines(entity))

    def error(self, message: str, statement: str = "") -> None:
        """Show an error, with the place in the statement underlined."""
        self.where(message, statement)
        self._errors(message)
        self._to_spool(message)

    def where(self, message: str, statement: str) -> None:
        """The place in the statement that a message names."""
        if shown := underlined(message, statement):
            self._errors(shown)
            self._to_spool(shown)

    def rows(self, header: Mapping[str, Any]) -> Rows:
        """Return what shows the rows that follow a header."""
        names = column_names(str(header.get("schema", "")))
        return JsonRows(self, names) if self.is_json else TableRows(self, names, self._columns())

    def _columns(self) -> int:
        return self._width or shutil.get_terminal_size((_WIDTH_IF_UNKNOWN, 24)).columns

    def start_spool(self, path: str) -> None:
        """Copy all that is shown into a file from now on. Raises OSError."""
        self.stop_spool()
        self._spool = open(path, "a", encoding="utf-8")  # noqa: SIM115  it stays open
        self.spool_name = path

    def stop_spool(self) -> None:
        """End the copy."""
        if self._spool is not None:
            self._spool.close()
        self._spool, self.spool_name = None, ""

    def typed(self, text: str) -> None:
        """Write the user's input to the spool file."""
        self._to_spool(f"ksql> {text}")

    def _to_spool(self, line: str) -> None:
        if self._spool is not None:
            self._spool.write(line + "\n")
            self._spool.flush()


class Rows(Protocol):
    """Shows rows as they arrive."""

    def row(self, values: Sequence[Any], *, is_tombstone: bool) -> None:
        """One row."""
        ...


class JsonRows:
    """Each row is an object by names of columns; a deleted one has the member `@tombstone`."""

    def __init__(self, console: Console, names: Sequence[str]) -> None:
        self._console = console
        self._names = names

    def row(self, values: Sequence[Any], *, is_tombstone: bool) -> None:
        """One row as a document."""
        document = dict(zip(self._names, values, strict=False))
        if is_tombstone:
            document["@tombstone"] = True
        self._console.document(document)


class TableRows:
    """Rows in a frame."""

    def __init__(self, console: Console, names: Sequence[str], width: int) -> None:
        self._console = console
        self._grid = Grid(names, width, column_width=console.column_width, wraps=console.wraps)
        console.lines(self._grid.head())

    def row(self, values: Sequence[Any], *, is_tombstone: bool) -> None:
        """One row; the values that a deleted row has no more are marked."""
        gone = "<TOMBSTONE>" if is_tombstone else "null"
        cells = [gone if value is None else value_text(value) for value in values]
        self._console.lines(self._grid.row(cells))


def value_text(value: Any) -> str:
    """A value of a row as a cell shows it: collections as ksqlDB's shell writes them."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case dict():
            return "{" + ", ".join(f"{k}={value_text(v)}" for k, v in value.items()) + "}"
        case list():
            return "[" + ", ".join(map(value_text, value)) + "]"
    return str(value)


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
