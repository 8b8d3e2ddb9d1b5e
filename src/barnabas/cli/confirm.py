"""Asking a person before something cannot be undone."""

import sys

import click

from barnabas.cli.errors import CliError, ExitCode


def confirm(question: str, yes: bool) -> None:
    """Ask a person; raise CliError where nobody can answer or the answer is no."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise CliError("cannot ask for confirmation here", ExitCode.USAGE, "give --yes")
    if not click.confirm(question, err=True):
        raise CliError("nothing was done")
