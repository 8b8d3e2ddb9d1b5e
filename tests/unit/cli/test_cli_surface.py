"""What all commands have in common: help with examples, --json, exit codes, quick imports."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import click
import pytest
from confluent_kafka import KafkaError, KafkaException

import barnabas
from barnabas.app.runner import StartError
from barnabas.base.disk import DirectoryInUseError
from barnabas.base.errors import ConfigError
from barnabas.cli import main
from barnabas.cli.balance.model import PlanError
from barnabas.cli.errors import CliError, ExitCode, from_exception, from_kafka
from barnabas.node.raft.snapshot_files import SnapshotError
from barnabas.schemas.data.errors import ConfigError as ConnectConfigError
from barnabas.schemas.data.errors import ConnectError
from barnabas.web.listening import CannotListenError, ListenAddress
from support.cli import run_cli

HEAVY_MODULES = (
    "confluent_kafka",
    "rich",
    "uvloop",
    "asyncio",
    "barnabas.app",
    "barnabas.node.broker",
    "barnabas.node.log",
    "barnabas.node.metadata",
    "barnabas.node.net",
)


def all_commands() -> Iterator[tuple[str, click.Command]]:
    """Every command that does something, with the words that call it."""
    for name in main.COMMANDS:
        command = main.cli.get_command(click.Context(main.cli), name)
        assert command is not None
        yield from leaves(name, command)


def leaves(name: str, command: click.Command) -> Iterator[tuple[str, click.Command]]:
    if isinstance(command, click.Group):
        for inner, subcommand in command.commands.items():
            yield from leaves(f"{name} {inner}", subcommand)
    else:
        yield name, command


COMMANDS = dict(all_commands())


@pytest.mark.parametrize("words", COMMANDS)
def test_help_has_an_example(words: str) -> None:
    shown = run_cli(*words.split(), "--help")
    assert shown.code == 0
    assert "Example" in shown.text
    assert f"barnabas {words}" in shown.text
    assert all(option.help for option in COMMANDS[words].params if isinstance(option, click.Option))


@pytest.mark.parametrize("words", COMMANDS)
def test_help_reads_as_one_types_it(words: str) -> None:
    """Lines of an example that goes on are as far in; what the text calls an argument is one."""
    shown = run_cli(*words.split(), "--help").text
    usage, _, text = shown.partition("\n\n")
    for before, after in pairwise(text.splitlines()):
        if before.endswith("\\"):
            assert re.match("      (?! )", after), after
    for argument in re.findall(r"Without ([A-Z]{2,})\b", text):
        assert argument in usage


@pytest.mark.parametrize("words", COMMANDS)
def test_every_command_speaks_json(words: str) -> None:
    assert "as_json" in [option.name for option in COMMANDS[words].params]


def test_the_list_of_commands_matches_the_commands() -> None:
    listed = run_cli("--help").text
    for name, (help_text, module) in main.COMMANDS.items():
        assert f"  {name} " in listed
        assert help_text in " ".join(listed.split())
        path = f"{module.replace('.', '/')}.py"
        assert os.path.exists(os.path.join(os.path.dirname(main.__file__), path))


def test_every_exit_code_is_documented() -> None:
    documented = " ".join(run_cli("--help").text.split())
    for code in ExitCode:
        assert f"{int(code)} " in documented.partition("Exit codes:")[2]


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["nonsense"], 2, "No such command"),
        (["topc"], 2, "Did you mean topic?"),
        (["topic", "create"], 2, "barnabas topic create --help"),
        (["topic", "list", "-b", "localhost:1"], 3, "no broker answers"),
        (["topic", "list", "-b", "nonsense"], 3, "not host:port"),
        (["topic", "list", "--match", "("], 2, "--match"),
        (["topic", "list", "--client-config", "/no/such/file"], 4, "No such file"),
        (["log", "dump", "/no/such/file"], 2, "does not exist"),
        (["start", "/no/such/file"], 4, "/no/such/file"),
        (["produce", "t", "-H", "=x"], 2, "NAME=VALUE"),
        (["consume", "t", "--from", "whenever"], 2, "not a position"),
        (["consume", "t", "-n", "0"], 2, "--count"),
        (["config", "set", "topic", "t", "novalue"], 2, "key=value"),
        (["cluster", "status", "-b", " ,"], 2, "no address is given"),
        (["cluster", "status", "-b", "localhost:1,"], 3, "no node answers at localhost:1 (conn"),
        (["topic", "list", "--timeout", "-1"], 2, "--timeout"),
        (["topic", "list", "--timeout", "0"], 2, "--timeout"),
        (["topic", "list", "--timeout", "nan"], 2, "'nan' is not a time"),
        (["rebalance", "--timeout", "inf"], 2, "--timeout"),
        (["cluster", "remove", "1", "--wait", "nan"], 2, "'nan' is not a time"),
        (["dev", "--nodes", "3", "--port", "65533"], 2, "65536-65538 do not exist"),
        (["dev", "--nodes", "3", "--port", "65536"], 2, "--port"),
        (["dev", "--nodes", "3", "--port", "7001", "--controller-port", "7003"], 2, "overlap"),
        (["dev", "--nodes", "2", "-o", "log.dirs=/x"], 2, "log.dirs cannot be the same on every"),
        (["dev", "--nodes", "2", "-o", "node.id=7"], 2, "node.id cannot be the same on every"),
        (["dev", "--nodes", "2", "-o", "listeners=PLAINTEXT://:1"], 2, "listeners cannot be"),
    ],
)
def test_failures_are_one_line(arguments: list[str], code: int, words: str) -> None:
    result = run_cli(*arguments)
    assert (result.code, result.out) == (code, b"")
    assert result.err.startswith("barnabas: ")
    assert result.err.count("\n") == 1
    assert words in result.err


@pytest.mark.parametrize("words", ["topic", "connect offsets"])
def test_a_group_without_a_command_shows_its_help(words: str) -> None:
    result = run_cli(*words.split())
    assert result.code == ExitCode.USAGE
    assert result.err.startswith(f"Usage: barnabas {words} ")
    assert "\nCommands:\n" in result.err


def test_failures_in_json() -> None:
    result = run_cli("topic", "list", "-b", "localhost:1", "--json")
    shown = json.loads(result.err)
    assert shown["exit_code"] == result.code == 3
    assert "localhost:1" in shown["error"]


def test_a_fault_of_ours_is_one_line_too(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("oops")

    monkeypatch.setattr(main.cli, "main", broken)
    monkeypatch.delenv(main.TRACEBACK_VARIABLE, raising=False)
    result = run_cli("topic", "list")
    assert result.code == ExitCode.INTERNAL
    assert result.err.count("\n") == 1
    assert "ZeroDivisionError: oops" in result.err
    monkeypatch.setenv(main.TRACEBACK_VARIABLE, "1")
    with pytest.raises(ZeroDivisionError):
        run_cli("topic", "list")


def test_ctrl_c(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(main.cli, "main", interrupted)
    assert run_cli("topic", "list").code == ExitCode.INTERRUPTED


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (KafkaError.UNKNOWN_TOPIC_OR_PART, ExitCode.NOT_FOUND),
        (KafkaError.GROUP_ID_NOT_FOUND, ExitCode.NOT_FOUND),
        (KafkaError._TRANSPORT, ExitCode.UNREACHABLE),
        (KafkaError._TIMED_OUT, ExitCode.UNREACHABLE),
        (KafkaError.TOPIC_ALREADY_EXISTS, ExitCode.REFUSED),
    ],
)
def test_exit_codes_of_the_clients_errors(code: int, expected: ExitCode) -> None:
    error = KafkaError(code)
    assert from_kafka(error).code == from_kafka(KafkaException(error)).code == expected
    shown = from_exception(KafkaException(error))
    assert shown is not None
    assert shown.code == expected


@pytest.mark.parametrize(
    ("code", "text", "line"),
    [
        (
            KafkaError.UNKNOWN_TOPIC_OR_PART,
            None,
            "t: This node knows no such topic or partition [UNKNOWN_TOPIC_OR_PARTITION]",
        ),
        (
            KafkaError.TOPIC_ALREADY_EXISTS,
            "Topic 't' already exists.",
            "t: Topic 't' already exists. [TOPIC_ALREADY_EXISTS]",
        ),
        (
            KafkaError.MSG_SIZE_TOO_LARGE,
            None,
            "t: A record batch is larger than max.message.bytes allows [MESSAGE_TOO_LARGE]",
        ),
        (
            KafkaError._ALL_BROKERS_DOWN,
            "1/1 brokers are down",
            "t: no broker can be reached [NETWORK_EXCEPTION]",
        ),
        (
            KafkaError._TRANSPORT,
            "FindCoordinator response error: Local: Broker transport failure",
            (
                "t: the connection to the broker failed: FindCoordinator response error: Broker "
                "transport failure [NETWORK_EXCEPTION]"
            ),
        ),
        (
            KafkaError._RESOLVE,
            "[thrd:a:1/boot]: a:1: Failed to resolve 'a'",
            (
                "t: the host name of a broker cannot be resolved: a:1: Failed to resolve 'a' "
                "[NETWORK_EXCEPTION]"
            ),
        ),
        (KafkaError._TIMED_OUT, None, "t: no answer in time [REQUEST_TIMED_OUT]"),
        (
            KafkaError._UNKNOWN_PARTITION,
            None,
            "t: there is no such partition [UNKNOWN_TOPIC_OR_PARTITION]",
        ),
    ],
)
def test_errors_have_kafkas_names(code: int, text: str | None, line: str) -> None:
    error = KafkaError(code) if text is None else KafkaError(code, text)
    assert from_kafka(error, "t").line() == line


def test_errors_that_a_product_took_from_the_client_have_kafkas_names(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fails(*_: object, **__: object) -> None:
        try:
            raise KafkaException(KafkaError(KafkaError._TRANSPORT))
        except KafkaException as error:
            try:
                raise RuntimeError(f"b:1 does not answer: {error.args[0].str()}") from error
            except RuntimeError as wrapped:
                raise CliError(str(wrapped)) from wrapped

    monkeypatch.setattr(main.cli, "main", fails)
    line = "b:1 does not answer: the connection to the broker failed [NETWORK_EXCEPTION]"
    assert run_cli("pipeline", "run").err == f"barnabas: {line}\n"
    assert json.loads(run_cli("pipeline", "run", "--json").err)["error"] == line

    def is_told(*_: object, **__: object) -> None:
        raise CliError("the topic t cannot be read: Broker: Unknown topic or partition")

    monkeypatch.setattr(main.cli, "main", is_told)
    assert "read: Unknown topic or partition\n" in run_cli("pipeline", "run").err


def test_every_error_of_the_client_is_without_its_library_s_words() -> None:
    """No name of librdkafka's, and not where librdkafka found it."""
    codes = [value for name, value in vars(KafkaError).items() if isinstance(value, int)]
    assert len(codes) > 100
    for code in codes:
        line = from_kafka(KafkaError(code)).line()
        assert not re.search(r"\b_[A-Z]|Local:|Broker:|UNKNOWN_TOPIC_OR_PART\b", line), line
        assert line


def test_exit_codes_of_other_errors(tmp_path: Path) -> None:
    def code_of(error: Exception) -> int | None:
        known = from_exception(error)
        return None if known is None else known.code

    assert code_of(ConfigError("key", "wrong")) == ExitCode.USAGE
    assert code_of(FileNotFoundError(2, "No such file", "x")) == ExitCode.NOT_FOUND
    assert code_of(PermissionError(13, "denied", "x")) == ExitCode.REFUSED
    assert code_of(RuntimeError("ours")) is None
    assert CliError("a\nb", hint="c").line() == "a b; c"


def test_help_and_start_import_nothing_heavy() -> None:
    program = (
        "import sys, barnabas.cli.main as m; m.run(['--help']); "
        "import barnabas.cli.start; print([n for n in sys.modules if n in "
        f"{HEAVY_MODULES!r}], file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stderr == "[]\n"


def test_version() -> None:
    assert run_cli("--version").text == f"barnabas, version {barnabas.__version__}\n"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion(shell: str) -> None:
    assert "_BARNABAS_COMPLETE" in run_cli("completion", shell).text


def test_completion_knows_the_commands() -> None:
    environment = {
        **os.environ,
        "_BARNABAS_COMPLETE": "bash_complete",
        "COMP_WORDS": "barnabas topic cr",
        "COMP_CWORD": "2",
    }
    done = subprocess.run(
        [sys.executable, "-m", "barnabas"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.strip() == "plain,create"


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (StartError("no quorum"), ExitCode.REFUSED),
        (DirectoryInUseError("data is in use"), ExitCode.REFUSED),
        (SnapshotError("torn"), ExitCode.REFUSED),
        (ConfigError("node.id", "is missing"), ExitCode.USAGE),
        (PlanError("too few nodes"), ExitCode.REFUSED),
        (ConnectError("a topic is missing"), ExitCode.REFUSED),
        (ConnectConfigError("tasks.max is no number"), ExitCode.USAGE),
    ],
    ids=lambda value: type(value).__name__,
)
def test_failures_that_a_person_can_cure_are_one_line(error: Exception, code: ExitCode) -> None:
    shown = from_exception(error)
    assert shown is not None
    assert (shown.message, shown.code, shown.hint) == (str(error), code, None)


def test_a_taken_address_is_one_line_with_a_hint() -> None:
    shown = from_exception(CannotListenError(ListenAddress("127.0.0.1", 8081), "it is in use"))
    assert shown is not None
    assert shown.code is ExitCode.REFUSED
    assert shown.line() == (
        "cannot listen at http://127.0.0.1:8081: it is in use; "
        "choose another address with --listeners"
    )


def test_other_exceptions_are_defects() -> None:
    assert from_exception(ValueError("a defect")) is None
