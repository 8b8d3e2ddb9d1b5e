"""The shell: takes text, cuts it into statements, and shows what a server answers to each."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

from barnabas.sql.errors import SqlError
from barnabas.sql.shell.client import Context, KsqlClient, MissingFileError, ServerError, ShellError
from barnabas.sql.shell.console import Console, Rows
from barnabas.sql.shell.splitting import Kind, Piece, split
from barnabas.sql.syntax import tree
from barnabas.sql.syntax.lexer import TokenKind, tokenize
from barnabas.sql.syntax.parser import parse_one
from barnabas.sql.syntax.variables import substitute_text

_SCRIPTS_DEPTH_MAX = 16
"""A script that runs itself ends here."""


class StatementError(Exception):
    """A statement failed; `reason` says why."""

    def __init__(self, reason: ShellError, statement: str) -> None:
        super().__init__(str(reason))
        self.reason = reason
        self.statement = statement


class Shell:
    """Statements of a user to one server."""

    def __init__(self, client: KsqlClient, console: Console, session: Session) -> None:
        self.client = client
        self.console = console
        self.session = session
        self._depth = 0

    def __enter__(self) -> Shell:
        return self

    def __exit__(self, *_: object) -> None:
        self.client.close()
        self.console.stop_spool()

    def run(self, text: str) -> None:
        """Each statement of a text; the `;` behind the last one may be left out.

        Raises StatementError at the first one that fails: those after it are not sent.
        """
        pieces, rest = split(text)
        if rest:
            pieces += split(rest + "\n;")[0] or [Piece(rest, Kind.STATEMENT)]
        for piece in pieces:
            self.run_one(piece)

    def run_one(self, piece: Piece) -> None:
        """One statement. Raises StatementError; KeyboardInterrupt ends a statement too."""
        try:
            self._run(piece)
        except ShellError as error:
            raise StatementError(error, _named(error, piece)) from error

    def _run(self, piece: Piece) -> None:
        match piece.kind:
            case Kind.QUERY:
                self._query(piece.text)
            case Kind.PRINT:
                self._print(piece.text)
            case Kind.RUN_SCRIPT:
                self.run_script(_path_of(piece.text))
            case Kind.STATEMENT:
                self._statement(piece.text)
            case _:
                told = self.session.change(piece.text, self.client.may_set)
                if told:
                    self.console.note(told)

    def run_script(self, path: str) -> None:
        """The statements of a file. Raises ShellError, StatementError."""
        if self._depth == _SCRIPTS_DEPTH_MAX:
            raise ShellError(f"Scripts run scripts {_SCRIPTS_DEPTH_MAX} deep: {path}")
        try:
            with open(os.path.expanduser(path), encoding="utf-8") as file:
                text = file.read()
        except OSError as error:
            raise MissingFileError(f"Cannot read {path}: {error.strerror or error}") from error
        except UnicodeDecodeError as error:
            raise ShellError(f"{path} is not text in UTF-8") from error
        self._depth += 1
        try:
            self.run(text)
        finally:
            self._depth -= 1

    def _statement(self, text: str) -> None:
        try:
            entities = self.client.statement(text, self.session.context)
        except ServerError as error:
            for entity in error.entities:
                self.console.entity(entity)
            raise
        for entity in entities:
            self.console.entity(entity)
            status = entity.get("commandStatus") or {}
            if status.get("status") == "ERROR":
                raise ServerError(str(status.get("message") or "The statement failed"))

    def _query(self, text: str) -> None:
        rows: Rows | None = None
        # Closing the answer ends the query, also when Ctrl-C comes between two rows.
        with closing(_generator(self.client.query(text, self.session.context))) as parts:
            try:
                for part in parts:
                    if "header" in part:
                        rows = self.console.rows(part["header"])
                    elif "row" in part and rows is not None:
                        row = part["row"]
                        is_tombstone = bool(row.get("tombstone"))
                        rows.row(row.get("columns") or (), is_tombstone=is_tombstone)
                    elif "finalMessage" in part:
                        self.console.note(str(part["finalMessage"]))
            except KeyboardInterrupt:
                self.console.note("")
        self.console.note("Query terminated")

    def _print(self, text: str) -> None:
        with closing(_generator(self.client.lines(text, self.session.context))) as lines:
            try:
                for line in lines:
                    if self.console.is_json:
                        self.console.document({"line": line})
                    else:
                        self.console.lines([line])
            except KeyboardInterrupt:
                self.console.note("")
        self.console.note("Topic printing ceased")


def _generator(given: Iterator[Any]) -> Any:
    return given


def _path_of(text: str) -> str:
    tokens = [token for token in tokenize(text) if token.kind is not TokenKind.END]
    for token in tokens[2:]:
        if token.kind in (TokenKind.STRING, TokenKind.QUOTED):
            return token.value
    path = text[tokens[1].stop :].strip().rstrip(";").strip()
    if not path:
        raise ShellError("RUN SCRIPT needs the path of a file: RUN SCRIPT 'statements.sql';")
    return path


def _named(error: ShellError, piece: Piece) -> str:
    """The text that places in a message count from: what was sent, or what became of it."""
    of_server = error.statement if isinstance(error, ServerError) else ""
    return of_server if of_server and "${" in piece.text else piece.text


# -- the session: values of SET and DEFINE, sent to the server with each statement


_SWITCH = "ksql.variable.substitution.enable"


@dataclass
class Session:
    """Properties and variables, by name."""

    properties: dict[str, str] = field(default_factory=dict)
    variables: dict[str, str] = field(default_factory=dict)

    @property
    def context(self) -> Context:
        """The context of a statement."""
        return Context(self.properties, self.variables)

    def change(self, text: str, check: Callable[[str], None]) -> str:
        """Do a SET, UNSET, DEFINE or UNDEFINE; returns the message to show.

        `check` raises ShellError for a property that cannot be set. Raises ShellError.
        """
        if "${" in text and self.properties.get(_SWITCH, "true").lower() != "false":
            text = substitute_text(text, self.variables)
        try:
            statement = parse_one(text)
        except SqlError as error:
            raise ShellError(str(error)) from error
        match statement:
            case tree.SetProperty(name, value):
                check(name)
                return self._set(name, value)
            case tree.UnsetProperty(name):
                return self._unset(name)
            case tree.DefineVariable(name, value):
                self.variables[name] = value
                return ""
            case tree.UndefineVariable(name):
                if self.variables.pop(name, None) is None:
                    return f"Cannot undefine variable '{name}' which was never defined"
                return ""
        raise ShellError(f"This is no change of the session: {text}")

    def _set(self, name: str, value: str) -> str:
        before = self.properties.get(name)
        self.properties[name] = value
        changed = "" if before is None else f" from '{before}'"
        return (
            f"Successfully changed local property '{name}'{changed} to '{value}'. Use the UNSET "
            "command to revert your change."
        )

    def _unset(self, name: str) -> str:
        before = self.properties.pop(name, None)
        if before is None:
            raise ShellError(f"Cannot unset local property '{name}' which was never set")
        return f"Successfully unset local property '{name}' (value was '{before}')."
