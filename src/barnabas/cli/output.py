"""Output of commands: tables for people, JSON for scripts."""

import json
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import click

Row = dict[str, Any]
COLUMN_MIN = 8
"""Narrower than this no column is folded."""


json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON for scripts.")
"""The --json flag, as the argument `as_json`."""


def row_of(item: object, columns: Iterable[str]) -> Row:
    """The attributes of an object that have the names of columns."""
    return {column: getattr(item, column) for column in columns}


def counted(number: int, noun: str, plural: str = "") -> str:
    """A number and what it counts: "1 topic", "2 topics"."""
    return f"{number} {noun if number == 1 else plural or noun + 's'}"


def first_few(names: Sequence[object], shown_max: int = 3) -> str:
    """Names the first things of a list, for a message, and says how many more there are."""
    named = ", ".join(map(str, names[:shown_max]))
    more_count = len(names) - shown_max
    return f"{named} and {more_count} more" if more_count > 0 else named


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

    def details(self, row: Row) -> None:
        """One thing as a line for each of its values; nothing with --json."""
        if not self.as_json:
            width = max(map(len, row))
            for name, value in row.items():
                click.echo(f"{name.replace('_', ' ').ljust(width)}  {cell_text(value)}")

    def note(self, text: str) -> None:
        """A word beside the result: on standard error, and not with --json."""
        if text and not self.as_json:
            click.echo(text, err=True)


def say(text: str) -> None:
    """A line of a command that goes on whether or not somebody reads it."""
    with read_or_not():
        click.echo(text)


@contextmanager
def read_or_not() -> Iterator[None]:
    """For output of commands that change something: `| head` must not end them half-way."""
    try:
        yield
    except BrokenPipeError:
        drop_output()


def drop_output() -> None:
    """The reader of our output has gone (`| head`): write the rest nowhere."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


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
    widths = _widths(headings, cells)
    for line in [headings, *cells]:
        padded = [
            text.rjust(width) if is_right else text.ljust(width)
            for text, width, is_right in zip(line, widths, right, strict=True)
        ]
        click.echo("  ".join(padded).rstrip())


def _widths(headings: list[str], cells: list[list[str]]) -> list[int]:
    return [max(map(len, column)) for column in zip(headings, *cells, strict=True)]


def _print_rich(headings: list[str], cells: list[list[str]], right: list[bool]) -> None:
    """A table as wide as the terminal; where that is too narrow for one, a list for each row."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(soft_wrap=False)
    widths = _widths(headings, cells)
    if sum(min(width, COLUMN_MIN) + 1 for width in widths) > console.width:
        _print_lists(headings, cells)
        return
    gap = 1 if sum(widths) + 2 * len(widths) <= console.width else 0
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, gap, 0, 0))
    for heading, is_right in zip(headings, right, strict=True):
        table.add_column(heading, justify="right" if is_right else "left", overflow="fold")
    for row in cells:
        table.add_row(*(Text(cell) for cell in row))
    console.print(table)


def _print_lists(headings: list[str], cells: list[list[str]]) -> None:
    width = max(map(len, headings))
    for row in cells:
        for heading, text in zip(headings, row, strict=True):
            click.echo(f"{heading.ljust(width)}  {text}")
        click.echo()


def cell_text(value: Any) -> str:
    """A value as a table's cell."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return ",".join(map(str, value)) or "-"
    return str(value)
