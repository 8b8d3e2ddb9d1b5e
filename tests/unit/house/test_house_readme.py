"""The commands and examples in the README and the pages it links to work."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import click
import pytest

from barnabas.cli import main, start
from barnabas.cli.errors import ExitCode
from support.cli import run_cli

ROOT = Path(__file__).parents[3]
README = (ROOT / "README.md").read_text()
CLI, OPERATIONS, PYTHON_PAGE, SECURITY = (
    (ROOT / "docs" / f"{name}.md").read_text()
    for name in ("cli", "operations", "python", "security")
)
PAGES = "\n".join([README, *(path.read_text() for path in sorted((ROOT / "docs").glob("*.md")))])
BLOCK = re.compile(r"```(\w+)\n(.*?)```", re.DOTALL)
BLOCKS = BLOCK.findall(PAGES)
SHELL_LINES = [
    line
    for kind, text in BLOCKS
    if kind == "sh"
    for line in text.replace("\\\n", " ").splitlines()
    if line.strip()
]
COMMANDS = [
    part.strip()
    for line in [*SHELL_LINES, *re.findall(r"`(barnabas [^`]+)`", PAGES)]
    for part in line.split("|")
    if part.strip().startswith("barnabas ")
]
PYTHON = [
    text
    for page in (PYTHON_PAGE, SECURITY)
    for kind, text in BLOCK.findall(page)
    if kind == "python"
]


@pytest.mark.parametrize("line", COMMANDS)
def test_commands_and_their_options_exist(line: str) -> None:
    words = shlex.split(line, comments=True)[1:]
    command: click.Command | None = main.cli
    while isinstance(command, click.Group) and words and not words[0].startswith("-"):
        command = command.get_command(click.Context(command), words.pop(0))
    assert command is not None, line
    known = {option for parameter in command.params for option in parameter.opts}
    assert {word for word in words if re.match(r"--?[a-z]", word)} <= known


def test_the_index_lists_every_page() -> None:
    docs = ROOT / "docs"
    index = (docs / "README.md").read_text()
    pages = {str(path.relative_to(docs)) for path in docs.rglob("*.md")} - {"README.md"}
    assert {
        page for page in pages if f"({page})" not in index and "decisions/" not in page
    } == set()


@pytest.mark.parametrize("target", sorted(set(re.findall(r"make ([a-z]+)", README))))
def test_make_targets_exist(target: str) -> None:
    assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(), re.MULTILINE)


@pytest.mark.parametrize("program", PYTHON, ids=range(len(PYTHON)))
def test_python_examples_run(program: str, tmp_path: Path) -> None:
    path = tmp_path / "test_example.py"
    path.write_text(program)
    runner = ["-m", "pytest", "-q", "-p", "no:cacheprovider"] if "def test_" in program else []
    done = subprocess.run(
        [sys.executable, *runner, str(path)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    if not runner:
        assert done.stderr == ""


KAFKA_S_FILE = """
process.roles=broker,controller
node.id=1
controller.quorum.bootstrap.servers=localhost:9093
listeners=PLAINTEXT://:9092,CONTROLLER://:9093
inter.broker.listener.name=PLAINTEXT
advertised.listeners=PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093
controller.listener.names=CONTROLLER
log.dirs={directory}
"""
"""What config/server.properties of Apache Kafka 4.3 says of roles, addresses and directories."""


def first_format(text: str) -> str:
    """The command to format a node that a text shows, on one line."""
    found = re.search(r"barnabas storage format .*", text.replace("\\\n", " "))
    assert found is not None
    return found[0]


@pytest.mark.parametrize("text", [OPERATIONS, start.EPILOG], ids=["operations.md", "help of start"])
def test_the_file_that_kafka_ships_is_formatted_as_shown(text: str, tmp_path: Path) -> None:
    line = first_format(text)
    path = tmp_path / "server.properties"
    path.write_text(KAFKA_S_FILE.format(directory=tmp_path / "data"))
    identifier = run_cli("storage", "random-uuid").text.strip()
    shown = line.replace("$(barnabas storage random-uuid)", identifier)
    words = [str(path) if word == path.name else word for word in shlex.split(shown)[1:]]
    result = run_cli(*words)
    assert result.code == 0, result.err
    assert (tmp_path / "data" / "meta.properties").exists()


def test_exit_codes_are_told() -> None:
    told = CLI.partition("Exit codes:")[2]
    assert {int(number) for number in re.findall(r"\d+", told)} == {int(code) for code in ExitCode}


def test_all_commands_are_listed() -> None:
    assert [name for name in main.COMMANDS if f"barnabas {name}" not in CLI] == []
