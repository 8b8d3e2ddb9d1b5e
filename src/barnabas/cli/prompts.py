"""Asking a person before something cannot be undone."""

import secrets
import sys

import click

from barnabas.cli.errors import CliError, ExitCode


def confirm(question: str, yes: bool) -> None:
    """Ask for confirmation; raise CliError if there is no terminal or the user declines."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise CliError("cannot ask for confirmation here", ExitCode.USAGE, "give --yes")
    if not click.confirm(question, err=True):
        raise CliError("nothing was done")


# Passwords that a command is given: asked for, read from a pipe, or made up. Never an argument,
# which other users of the machine see.


PASSWORD_SIZE_MAX = 4096
GENERATED_SIZE_BYTES = 24


def read_password(prompt: str, *, is_new: bool = True) -> str:
    """From a person, twice if it is new, or the first line of standard input. Raises CliError."""
    if sys.stdin.isatty():
        password: str = click.prompt(
            prompt, hide_input=True, confirmation_prompt=is_new, err=True, default=""
        )
    else:
        password = sys.stdin.readline(PASSWORD_SIZE_MAX + 2).rstrip("\r\n")
    if not password:
        raise CliError("the password is empty", ExitCode.USAGE, "type it, or pipe it in as a line")
    if len(password) > PASSWORD_SIZE_MAX:
        raise CliError(f"the password is longer than {PASSWORD_SIZE_MAX}", ExitCode.USAGE)
    return password


def new_password() -> str:
    """A password that nobody guesses, of characters that no file has to escape."""
    return secrets.token_urlsafe(GENERATED_SIZE_BYTES)
