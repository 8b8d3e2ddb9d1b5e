"""`barnabas sql`: a shell for SQL over streams, and what belongs to it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from barnabas.cli.errors import CliError, ExitCode, extra_packages
from barnabas.cli.sql.server import server_command
from barnabas.cli.sql.test import test_command

if TYPE_CHECKING:
    from barnabas.sql.shell.client import KsqlClient, ShellError
    from barnabas.sql.shell.shell import Shell, StatementError

DEFAULT_SERVER = "http://localhost:8088"
SERVER_VARIABLE = "BARNABAS_SQL_SERVER"
USER_VARIABLE = "BARNABAS_SQL_USER"
PASSWORD_VARIABLE = "BARNABAS_SQL_PASSWORD"
EPILOG = """\b
Examples:
  barnabas sql
  barnabas sql --server http://ksqldb:8088 -e 'SHOW STREAMS;'
  barnabas sql -f clicks.sql
  barnabas sql --json -e "SELECT * FROM per_user WHERE user = 'ann';"

Statements end with a semicolon. In the shell, `help` lists its own commands.
"""


@click.group(invoke_without_command=True, epilog=EPILOG)
@click.option(
    "--server",
    "-s",
    default=DEFAULT_SERVER,
    envvar=SERVER_VARIABLE,
    metavar="URL",
    help=f"The SQL server; by default {SERVER_VARIABLE}, then {DEFAULT_SERVER}.",
)
@click.option(
    "--execute",
    "-e",
    "statements",
    multiple=True,
    metavar="STATEMENTS",
    help="Run these statements and exit; may be repeated.",
)
@click.option(
    "--file",
    "-f",
    "files",
    multiple=True,
    type=click.Path(dir_okay=False, allow_dash=True),
    help="Run the statements of a file after those of -e, and exit; may be repeated.",
)
@click.option(
    "--define",
    "-d",
    "defines",
    multiple=True,
    metavar="NAME=VALUE",
    help="Define a variable, as DEFINE does; may be repeated.",
)
@click.option(
    "--user",
    envvar=USER_VARIABLE,
    metavar="NAME[:PASSWORD]",
    help=f"For a server that asks for a password; by default {USER_VARIABLE}.",
)
@click.option(
    "--password",
    envvar=PASSWORD_VARIABLE,
    metavar="PASSWORD",
    help=f"The password, if --user has none; by default {PASSWORD_VARIABLE}.",
)
@click.option(
    "--ca-file",
    type=click.Path(exists=True, dir_okay=False),
    help="PEM file with the authorities to trust for https.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document per line.")
@click.pass_context
def command(
    context: click.Context,
    server: str,
    statements: tuple[str, ...],
    files: tuple[str, ...],
    defines: tuple[str, ...],
    user: str | None,
    password: str | None,
    ca_file: str | None,
    as_json: bool,
) -> None:
    """Query a SQL server in an interactive shell, or by a script.

    It works with any server that has ksqlDB's REST interface.
    """
    if context.invoked_subcommand is not None:
        return
    variables = _variables(defines)
    if user is not None and password is not None and ":" not in user:
        user = f"{user}:{password}"
    with extra_packages("sql", "the shell needs"):
        from barnabas.sql.shell.client import KsqlClient, ShellError
    from barnabas.sql.shell.console import Console
    from barnabas.sql.shell.shell import Session, Shell, StatementError

    def connect(address: str) -> KsqlClient:
        return KsqlClient(address, user=user, ca_file=ca_file)

    console = Console(click.echo, _echo_error, is_json=as_json)
    try:
        shell = Shell(connect(server), console, Session(variables=variables))
        with shell:
            shell.client.info()
            texts = [*statements, *(_read(path) for path in files)]
            if not texts and not sys.stdin.isatty():
                texts = [sys.stdin.read()]
            if not texts:
                _interact(shell, connect)
            for text in texts:
                shell.run(text)
    except StatementError as error:
        raise _failure(shell, error) from error
    except ShellError as error:
        raise CliError(str(error), _exit_code(error), "give its address with --server") from error


command.add_command(server_command)
command.add_command(test_command)


def _interact(shell: Shell, connect: Callable[[str], KsqlClient]) -> None:
    """The loop at a terminal."""
    from barnabas.sql.shell.commands import Commands
    from barnabas.sql.shell.completion import Names
    from barnabas.sql.shell.interactive import Loop, PlainReader, Reader, edited_reader

    names = Names(shell.client)

    def reconnect(address: str) -> None:
        client = connect(address)
        try:
            client.info()
        except BaseException:
            client.close()
            raise
        shell.client.close()
        shell.client = names.client = client
        names.forget()

    reader: Reader = PlainReader()
    commands = Commands(shell, reconnect, lambda: reader.history())
    try:
        reader = edited_reader(names, commands.names)
    except ImportError:
        import readline  # noqa: F401  importing it gives `input` a history and editing
    info = shell.client.info()
    click.echo(f"SQL server {info.version} at {shell.client.server} ({info.service_id})")
    click.echo("Statements end with a semicolon; `help` tells the rest, `exit` leaves.")
    Loop(shell, reader, commands, names).run()


def _variables(defines: tuple[str, ...]) -> dict[str, str]:
    variables = {}
    for define in defines:
        name, equals, value = define.partition("=")
        if not equals or not name.strip():
            raise CliError(f"--define {define}: it is NAME=VALUE", ExitCode.USAGE)
        variables[name.strip()] = value
    return variables


def _read(path: str) -> str:
    if path == "-":
        return sys.stdin.read()
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except UnicodeDecodeError as error:
        raise CliError(f"{path} is not text in UTF-8", ExitCode.USAGE) from error


def _failure(shell: Shell, error: StatementError) -> CliError:
    """The error as one line; the place in the statement goes before it, for people."""
    if not shell.console.is_json:
        shell.console.where(str(error), error.statement)
    return CliError(str(error), _exit_code(error.reason))


def _exit_code(error: ShellError) -> ExitCode:
    from barnabas.sql.shell.client import MissingFileError, UnreachableError

    if isinstance(error, UnreachableError):
        return ExitCode.UNREACHABLE
    return ExitCode.NOT_FOUND if isinstance(error, MissingFileError) else ExitCode.REFUSED


def _echo_error(text: str) -> None:
    click.echo(text, err=True)
