"""Output of commands: tables at any width, and a reader that closes the pipe."""

from __future__ import annotations

import os
import re
import sys

import click
import pytest

from barnabas.cli.output import print_table, read_or_not, say


def test_a_command_that_changes_something_goes_on_without_its_reader(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w", encoding="utf-8") as out:
        monkeypatch.setattr(sys, "stdout", out)
        with pytest.raises(BrokenPipeError):
            click.echo("line")
        say("one")
        with read_or_not():
            click.echo("two")
        say("three")
        monkeypatch.undo()


ROWS = [
    {"node": 1, "address": "127.0.0.1:9091", "roles": ["broker", "voter"], "leads": 12},
    {"node": 10, "address": "127.0.0.1:9092", "roles": ["broker"], "leads": 3},
]
NATURAL_WIDTH = 4 + 14 + 12 + 5


def shown(
    width: int | None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> list[str]:
    """A table's lines on a terminal so wide, or in a pipe."""
    if width is not None:
        monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
        monkeypatch.setenv("COLUMNS", str(width))
        monkeypatch.setenv("TERM", "xterm")
    print_table(ROWS, ("node", "address", "roles", "leads"))
    text = re.sub("\\x1b[^m]*m", "", capsys.readouterr().out)
    return [line.rstrip() for line in text.splitlines()]


@pytest.mark.parametrize(
    ("width", "row"),
    [
        (None, "   1  127.0.0.1:9091  broker,voter     12"),
        (NATURAL_WIDTH + 8, "   1  127.0.0.1:9091  broker,voter     12"),
        (NATURAL_WIDTH + 3, "   1 127.0.0.1:9091 broker,voter    12"),
    ],
)
def test_a_row_is_a_line_where_there_is_room(
    width: int | None,
    row: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert row in shown(width, monkeypatch, capsys)


def test_cells_are_folded_and_numbers_are_not(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = shown(NATURAL_WIDTH, monkeypatch, capsys)
    assert lines[2].split()[0] == "1"
    assert lines[2].split()[-1] == "12"
    assert "127.0.0.1:9091" not in lines[2]


def test_on_a_narrow_terminal_a_row_is_a_list(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = shown(24, monkeypatch, capsys)
    assert lines[:5] == [
        "NODE     1",
        "ADDRESS  127.0.0.1:9091",
        "ROLES    broker,voter",
        "LEADS    12",
        "",
    ]
    assert lines[5] == "NODE     10"
