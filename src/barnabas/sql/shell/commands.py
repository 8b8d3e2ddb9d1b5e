"""Commands of the shell itself: a word at the beginning of a line, no `;` needed."""

from __future__ import annotations

from collections.abc import Callable

from barnabas.sql.shell.client import ShellError
from barnabas.sql.shell.shell import Shell
from barnabas.sql.shell.tables import table

HELP = {
    "help": "List the commands.",
    "exit, quit": "Leave the shell; so does Ctrl-D.",
    "version": "Show the server's version.",
    "server [ADDRESS]": "Show the server's address, or connect to another server.",
    "status": "Show the health of the server and its parts.",
    "output [TABULAR|JSON]": "Show or set the format of results.",
    "run script FILE": "Run the statements of a file.",
    "spool FILE|off": "Copy input and output to a file.",
    "cli [column-width N | wrap on|off]": "Show or set how rows of queries are drawn.",
    "history": "Show the history.",
    "clear": "Clear the screen.",
}


class LeaveError(Exception):
    """The user wants to leave the shell."""


class Commands:
    """`connect` makes a shell ask another server; `history` tells what was typed."""

    def __init__(
        self,
        shell: Shell,
        connect: Callable[[str], None],
        history: Callable[[], list[str]],
    ) -> None:
        self._shell = shell
        self._connect = connect
        self._history = history
        self._known: dict[str, Callable[[list[str]], None]] = {
            "help": self._help,
            "exit": self._leave,
            "quit": self._leave,
            "version": self._version,
            "server": self._server,
            "status": self._status,
            "output": self._output,
            "run": self._run,
            "spool": self._spool,
            "cli": self._cli,
            "history": self._show_history,
            "clear": self._clear,
        }

    def names(self) -> list[str]:
        """The first words."""
        return list(self._known)

    def run(self, line: str) -> bool:
        """Do a command; False if the line is none. Raises ShellError, LeaveError."""
        words = line.strip().rstrip(";").split()
        if not words or words[0].lower() not in self._known:
            return False
        if words[0].lower() == "run" and [w.lower() for w in words[1:2]] != ["script"]:
            return False
        self._known[words[0].lower()](words[1:])
        return True

    def _say(self, *lines: str) -> None:
        self._shell.console.lines(lines)

    def _help(self, words: list[str]) -> None:
        width = max(map(len, HELP))
        self._say(*(f"  {name:<{width}}  {text}" for name, text in HELP.items()), "")
        self._say("All else is SQL, and ends with a semicolon: SHOW STREAMS;")

    def _leave(self, words: list[str]) -> None:
        raise LeaveError

    def _version(self, words: list[str]) -> None:
        self._say(f"Version: {self._shell.client.info().version}")

    def _server(self, words: list[str]) -> None:
        if words:
            self._connect(words[0])
        self._say(self._shell.client.server)

    def _status(self, words: list[str]) -> None:
        client = self._shell.client
        info, health = client.info(), client.health()
        details = health.get("details") or {}
        rows = [["server", info.status], ["service", info.service_id]]
        rows += [["Kafka cluster", info.cluster_id]]
        rows += [
            [name, "healthy" if part.get("isHealthy") else "in trouble"]
            for name, part in details.items()
        ]
        self._say(*table(["Part", "State"], rows))

    def _output(self, words: list[str]) -> None:
        console = self._shell.console
        if words:
            wanted = words[0].strip("'\"").lower()
            if wanted not in ("json", "tabular"):
                raise ShellError(f"There is no output {words[0]}: it is JSON or TABULAR")
            console.is_json = wanted == "json"
        self._say(f"Output format: {'JSON' if console.is_json else 'TABULAR'}")

    def _run(self, words: list[str]) -> None:
        path = " ".join(words[1:]).strip("'\"")
        if not path:
            raise ShellError("run script needs the path of a file")
        self._shell.run_script(path)

    def _spool(self, words: list[str]) -> None:
        console = self._shell.console
        path = " ".join(words).strip("'\"")
        if not path:
            self._say(f"Spooling to {console.spool_name}" if console.spool_name else "No spool")
            return
        if path.lower() == "off":
            console.stop_spool()
            return
        try:
            console.start_spool(path)
        except OSError as error:
            raise ShellError(f"Cannot write {path}: {error.strerror or error}") from error
        self._say(f"Session will be spooled to {path}", "Enter SPOOL OFF to disable")

    def _cli(self, words: list[str]) -> None:
        console = self._shell.console
        match [word.lower() for word in words]:
            case []:
                pass
            case ["column-width", number] if number.isdecimal():
                console.column_width = int(number)
            case ["wrap", "on" | "off" as switch]:
                console.wraps = switch == "on"
            case _:
                raise ShellError("cli takes: column-width N (0: as the terminal is), wrap on|off")
        width = str(console.column_width) if console.column_width else "as the terminal is"
        rows = [["column-width", width], ["wrap", "on" if console.wraps else "off"]]
        self._say(*table(["Setting", "Value"], rows))

    def _show_history(self, words: list[str]) -> None:
        self._say(*(f"{n:>5}  {line}" for n, line in enumerate(self._history(), 1)))

    def _clear(self, words: list[str]) -> None:
        self._say("\033[2J\033[H")
