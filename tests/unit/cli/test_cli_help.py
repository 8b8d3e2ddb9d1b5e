"""Help texts at 80 columns: whole summaries, groups of commands, colours."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from barnabas.cli import main
from barnabas.cli.help import use_colours
from support.cli import run_cli

ROOT = Path(__file__).parents[3]
GOLDEN = ROOT / "tests/golden/cli/help.txt"
COLUMNS = 80
ESCAPE = re.compile(r"\x1b\[[0-9;]*m")


def groups_of(words: str, command: click.Command) -> Iterator[str]:
    if isinstance(command, click.Group):
        yield words
        for name, inner in command.commands.items():
            yield from groups_of(f"{words} {name}", inner)


def all_groups() -> Iterator[str]:
    for name in main.COMMANDS:
        command = main.cli.get_command(click.Context(main.cli), name)
        assert command is not None
        yield from groups_of(name, command)


def leaves_of(words: str, command: click.Command) -> Iterator[str]:
    if isinstance(command, click.Group):
        for name, inner in command.commands.items():
            yield from leaves_of(f"{words} {name}", inner)
    else:
        yield words


def all_leaves() -> Iterator[str]:
    for name in main.COMMANDS:
        command = main.cli.get_command(click.Context(main.cli), name)
        assert command is not None
        yield from leaves_of(name, command)


@pytest.fixture(autouse=True)
def columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(COLUMNS))


def test_the_help_of_barnabas(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = run_cli("--help").text
    assert max(map(len, shown.splitlines())) <= COLUMNS
    assert shown == GOLDEN.read_text()


def test_each_command_is_one_line() -> None:
    lines = run_cli("--help").lines
    for name, (summary, _) in main.COMMANDS.items():
        assert [line for line in lines if line.split() == [name, *summary.split()]], name


@pytest.mark.parametrize("words", list(all_groups()))
def test_summaries_are_whole(words: str) -> None:
    lines = run_cli(*words.split(), "--help").lines
    assert max(map(len, lines)) <= COLUMNS
    commands = lines[lines.index("Commands:") + 1 :]
    assert [line for line in commands if line.endswith("...")] == []


@pytest.mark.parametrize("words", list(all_leaves()))
def test_no_help_is_wider_than_a_terminal(words: str) -> None:
    assert [line for line in run_cli(*words.split(), "--help").lines if len(line) > COLUMNS] == []


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Output as on a terminal: click takes no colours out."""
    monkeypatch.setattr("click.utils.should_strip_ansi", lambda *_, **__: False)
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")


def test_colours_in_help_and_errors(terminal: None) -> None:
    plain = "\n".join(GOLDEN.read_text().split("\n"))
    shown = run_cli("--help").text
    assert "\x1b[1mTopics and records\x1b[0m:" in shown
    assert ESCAPE.sub("", shown) == plain
    inner = run_cli("topic", "create", "--help").text
    assert "\x1b[1mUsage: \x1b[0m" in inner
    assert run_cli("topic").err.startswith("\x1b[1mUsage: ")
    failed = run_cli("topic", "list", "-b", "localhost:1")
    assert failed.err.startswith("\x1b[31m\x1b[1mbarnabas:\x1b[0m no broker answers")


@pytest.mark.parametrize(("name", "value"), [("NO_COLOR", "1"), ("TERM", "dumb")])
def test_no_colours_where_they_are_not_wanted(
    terminal: None, monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(name, value)
    for arguments in (["--help"], ["topic", "--help"], ["topic"], ["topic", "lst"], ["nonsense"]):
        result = run_cli(*arguments)
        assert "\x1b" not in result.text + result.err


def test_no_colours_in_json_and_pipes(terminal: None, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "\x1b" not in run_cli("topic", "list", "-b", "localhost:1", "--json").err
    monkeypatch.undo()
    assert "\x1b" not in run_cli("--help").text


def test_colours_reach_inner_groups() -> None:
    inner = click.Command("inner", help="An inner command.")
    group = click.Group("outer", commands={"inner": inner})
    use_colours(group)
    assert inner.context_class is group.context_class is main.cli.context_class
