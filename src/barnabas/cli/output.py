"""What commands print: tables for people, JSON for scripts."""

import json
import sys
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click

Row = dict[str, Any]
Function = TypeVar("Function", bound=Callable[..., Any])


def json_option(function: Function) -> Function:
    """The --json flag, as the argument `as_json`."""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON for scripts.")(function)


class Output:
    """Prints one command's result in the form that was asked for."""

    def __init__(self, as_json: bool) -> None:
        self.as_json = as_json

    def rows(self, rows: Sequence[Row], columns: Sequence[str], empty: str = "") -> None:
        """A table of `columns`; with --json an array of the whole rows."""
        if self.as_json:
            print_json(list(rows))
        elif not rows:
            self.note(empty)
        else:
            print_table(rows, columns)

    def result(self, value: Any, text: str) -> None:
        """`text` for people, or `value` with --json."""
        if self.as_json:
            print_json(value)
        else:
            click.echo(text)

    def note(self, text: str) -> None:
        """A word beside the result: on standard error, and not with --json."""
        if text and not self.as_json:
            click.echo(text, err=True)


def print_json(value: Any) -> None:
    """One JSON document, indented when a person looks."""
    indent = 2 if sys.stdout.isatty() else None
    click.echo(json.dumps(value, indent=indent, ensure_ascii=False, default=str))


def print_table(rows: Sequence[Row], columns: Sequence[str]) -> None:
    """Columns under headings; coloured on a terminal, plain otherwise. Numbers to the right."""
    cells = [[cell_text(row.get(column)) for column in columns] for row in rows]
    right = [
        all(isinstance(row.get(column), int | float | None) for row in rows) for column in columns
    ]
    headings = [column.replace("_", " ").upper() for column in columns]
    if sys.stdout.isatty():
        _print_rich(headings, cells, right)
        return
    widths = [
        max(len(heading), *(len(row[index]) for row in cells))
        for index, heading in enumerate(headings)
    ]
    for line in [headings, *cells]:
        padded = [
            text.rjust(width) if is_right else text.ljust(width)
            for text, width, is_right in zip(line, widths, right, strict=True)
        ]
        click.echo("  ".join(padded).rstrip())


def _print_rich(headings: list[str], cells: list[list[str]], right: list[bool]) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for heading, is_right in zip(headings, right, strict=True):
        table.add_column(heading, justify="right" if is_right else "left", overflow="fold")
    for row in cells:
        table.add_row(*(Text(cell) for cell in row))
    Console(soft_wrap=False).print(table)


def cell_text(value: Any) -> str:
    """A value as a table's cell."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return ",".join(map(str, value)) or "-"
    return str(value)
