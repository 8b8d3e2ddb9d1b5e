"""The loop at a terminal: a prompt, statements over several lines, history, completion.

prompt_toolkit gives the editing where it is installed; without it the terminal's own must do.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, Protocol

from barnabas.base.private_files import state_directory
from barnabas.sql.shell.client import ShellError
from barnabas.sql.shell.commands import Commands, LeaveError
from barnabas.sql.shell.completion import Names, completions, word_before
from barnabas.sql.shell.shell import Shell, StatementError
from barnabas.sql.shell.splitting import split

if TYPE_CHECKING:
    from prompt_toolkit.completion import Completion
    from prompt_toolkit.document import Document

PROMPT = "sql> "
MORE = "...> "


class Reader(Protocol):
    """Gives the lines that a user types."""

    def read(self, prompt: str) -> str:
        """The next line. Raises EOFError at the end, KeyboardInterrupt at Ctrl-C."""
        ...

    def history(self) -> list[str]:
        """Return earlier input, the oldest first."""
        ...


class PlainReader:
    """Lines as the terminal gives them."""

    def __init__(self, read_line: Callable[[str], str] = input) -> None:
        self._read_line = read_line
        self._typed: list[str] = []

    def read(self, prompt: str) -> str:
        """The next line."""
        line = self._read_line(prompt)
        self._typed.append(line)
        return line

    def history(self) -> list[str]:
        """Return the input of this session."""
        return list(self._typed)


def edited_reader(names: Names, commands: Callable[[], list[str]]) -> Reader:
    """A reader with editing, history in a file, and completion. Raises ImportError."""
    from prompt_toolkit import PromptSession
    from prompt_toolkit.completion import Completer, Completion, ThreadedCompleter
    from prompt_toolkit.history import FileHistory, History, InMemoryHistory

    class Words(Completer):
        def get_completions(
            self, document: Document, complete_event: object
        ) -> Iterable[Completion]:
            text = document.text_before_cursor
            back = -len(word_before(text))
            for completion in completions(text, names.all(), commands()):
                yield Completion(completion, start_position=back)

    history: History = InMemoryHistory()
    with suppress(OSError):  # a home that cannot be written costs the history, not the shell
        os.makedirs(state_directory(), mode=0o700, exist_ok=True)
        history = FileHistory(os.path.join(state_directory(), "sql_history"))
    session: PromptSession[str] = PromptSession(
        history=history, completer=ThreadedCompleter(Words()), complete_while_typing=False
    )

    class Edited:
        def read(self, prompt: str) -> str:
            return session.prompt(prompt)

        def history(self) -> list[str]:
            return list(session.history.get_strings())

    return Edited()


class Loop:
    """Reads and runs until the user leaves."""

    def __init__(self, shell: Shell, reader: Reader, commands: Commands, names: Names) -> None:
        self._shell = shell
        self._reader = reader
        self._commands = commands
        self._names = names
        self._unfinished = ""

    def run(self) -> None:
        """Until exit, quit or Ctrl-D. Ctrl-C drops what is half typed, or ends a query."""
        while True:
            try:
                line = self._reader.read(MORE if self._unfinished else PROMPT)
            except EOFError:
                return
            except KeyboardInterrupt:
                self._unfinished = ""
                continue
            try:
                self.take(line)
            except LeaveError:
                return
            except KeyboardInterrupt:
                self._unfinished = ""

    def take(self, line: str) -> None:
        """One line: a command, or a part of a statement. Raises LeaveError."""
        console = self._shell.console
        if line.strip():
            console.typed(line)
        try:
            if not self._unfinished and self._commands.run(line):
                return
            pieces, self._unfinished = split(f"{self._unfinished}{line}\n")
            self._unfinished = f"{self._unfinished}\n" if self._unfinished else ""
            for piece in pieces:
                self._names.forget()
                self._shell.run_one(piece)
        except StatementError as error:
            console.error(str(error), error.statement)
        except ShellError as error:
            console.error(str(error))
