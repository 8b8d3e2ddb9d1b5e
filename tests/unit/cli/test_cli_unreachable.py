"""Every command that is given a cluster says at once that no broker answers there."""

from __future__ import annotations

import contextlib
import json
import logging
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from barnabas.cli import main
from barnabas.cli.errors import ExitCode
from support.cli import run_cli

NOWHERE = "127.0.0.1:1"
ARGUMENTS = {
    "topic alter": "t --partitions 2",
    "topic create": "t",
    "topic delete": "t --yes",
    "topic describe": "t",
    "topic reassign": "--cancel",
    "topic trim": "t --before 7d --yes",
    "produce": "t",
    "consume": "t",
    "group delete": "g --yes",
    "group describe": "g",
    "group reset-offsets": "g --all-topics --to earliest",
    "group delete-offsets": "g --all-topics --yes",
    "share-group delete": "g --yes",
    "share-group delete-offsets": "g --topic t --yes",
    "share-group describe": "g",
    "share-group reset-offsets": "g --all-topics --to earliest",
    "streams-group delete": "g --yes",
    "streams-group delete-offsets": "g --all-input-topics --yes",
    "streams-group describe": "g",
    "streams-group reset-offsets": "g --all-input-topics --to earliest",
    "transaction abort": "--topic t --partition 0 --start-offset 0 --yes",
    "transaction describe": "x",
    "transaction describe-producers": "--topic t --partition 0",
    "transaction terminate": "x --yes",
    "feature disable": "--feature share.version --yes",
    "feature downgrade": "--feature share.version=0 --yes",
    "feature upgrade": "--release-version 4.3 --yes",
    "perf consume": "t --num-records 1",
    "perf produce": "t --num-records 1 --record-size 1",
    "config delete": "topic t retention.ms",
    "config describe": "topic t",
    "config set": "topic t retention.ms=1",
    "cluster add": "--directory {directory}/node",
    "cluster drain": "1 --yes",
    "cluster remove": "1 --yes",
    "quorum add-voter": "4@127.0.0.1:9093:JEXY6aqzQY-32P5TStzaFg",
    "quorum remove-voter": "1 --yes",
    "user create": "u --generate",
    "user delete": "u --yes",
    "user password": "u --generate",
    "acl add": "--allow-principal User:u --topic t --operation read",
    "acl remove": "--allow-principal User:u --topic t --operation read --yes",
    "quota remove": "--user u producer_byte_rate",
    "quota set": "--user u producer_byte_rate=1",
    "connect start": "{directory}/worker.properties",
    "pipeline run": "{directory}/energy.py",
}
"""The arguments that a command needs besides its cluster."""
WORKER = """
key.converter=org.apache.kafka.connect.json.JsonConverter
value.converter=org.apache.kafka.connect.json.JsonConverter
offset.storage.file.filename={directory}/offsets
listeners=http://127.0.0.1:0
"""
PIPELINE = """
from barnabas.streams import Pipeline, stream

pipeline = Pipeline("energy", stream("charging", schema="kwh DOUBLE").to("out"))
"""
OPTIONS = {"--bootstrap-servers", "--bootstrap"}


def commands(
    command: click.Command = main.cli, words: tuple[str, ...] = ()
) -> Iterator[tuple[str, str]]:
    """Each command that takes a cluster, and the option by which it does."""
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            child = command.get_command(context, name)
            assert child is not None
            yield from commands(child, (*words, name))
    options = {option for parameter in command.params for option in parameter.opts}
    for option in options & OPTIONS:
        yield " ".join(words), option


OTHERS = ("connect status", "console", "doctor")
"""`connect status` asks a worker first, `console` shows it on its page, `doctor` reports it."""
CASES = {name: option for name, option in commands() if name not in OTHERS}


def test_the_commands_are_found() -> None:
    assert set(ARGUMENTS) <= set(CASES)
    assert {"demo", "sql server", "registry start", "pipeline run"} <= set(CASES)


@pytest.mark.parametrize("name", sorted(CASES))
def test_no_broker_answers(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("barnabas.demo.commands.check_requirements", lambda: None)
    monkeypatch.setattr("barnabas.spark.session.start_session", None)
    (tmp_path / "worker.properties").write_text(WORKER.format(directory=tmp_path))
    (tmp_path / "energy.py").write_text(PIPELINE)
    arguments = ARGUMENTS.get(name, "").format(directory=tmp_path).split()
    result = run_cli(*name.split(), *arguments, CASES[name], NOWHERE, "--json", stdin=b"c2VjcmV0\n")
    assert (result.code, result.out) == (ExitCode.UNREACHABLE, b""), result.err
    assert result.err.count("\n") == 1, result.err
    assert f"{NOWHERE} (connection refused)" in json.loads(result.err)["error"]


@pytest.mark.parametrize("name", ["connect start", "pipeline run", "topic list"])
def test_a_port_says_nothing(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("barnabas.spark.session.start_session", None)
    (tmp_path / "worker.properties").write_text(WORKER.format(directory=tmp_path))
    (tmp_path / "energy.py").write_text(PIPELINE)
    arguments = ARGUMENTS.get(name, "").format(directory=tmp_path).split()
    with socket.create_server(("127.0.0.1", 0)) as mute, a_thread_that_logs():
        address = f"127.0.0.1:{mute.getsockname()[1]}"
        result = run_cli(*name.split(), *arguments, CASES[name], address, "--json")
    assert (result.code, result.out) == (ExitCode.UNREACHABLE, b""), result.err
    assert result.err.count("\n") == 1, result.err
    assert f"{address} (connected, but no answer)" in json.loads(result.err)["error"]


@contextlib.contextmanager
def a_thread_that_logs() -> Iterator[None]:
    """Leave one behind as other tests do; its lines are not the command's."""
    ended = threading.Event()

    def log() -> None:
        while not ended.wait(0.05):
            logging.getLogger("barnabas.connect").warning("a task of another test is retried")

    thread = threading.Thread(target=log)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


@pytest.mark.parametrize("name", ["connect start", "doctor", "registry start", "topic list"])
def test_a_port_does_not_answer_the_tls_handshake(name: str, tmp_path: Path) -> None:
    (tmp_path / "worker.properties").write_text(
        WORKER.format(directory=tmp_path) + "security.protocol=SSL\n"
    )
    (tmp_path / "client.properties").write_text("security.protocol=SSL\n")
    given = ARGUMENTS.get(name, "").format(directory=tmp_path).split()
    if name == "registry start":
        given += ["-o", "kafkastore.security.protocol=SSL", "-l", "http://127.0.0.1:0"]
    elif name != "connect start":
        given += ["--command-config", f"{tmp_path}/client.properties"]
    with socket.create_server(("127.0.0.1", 0)) as mute:
        address = f"127.0.0.1:{mute.getsockname()[1]}"
        result = run_cli(*name.split(), *given, "--bootstrap-servers", address, "--json")
    assert result.code == (ExitCode.PROBLEMS if name == "doctor" else ExitCode.UNREACHABLE)
    reason = f"{address} (connected, but no answer to the TLS handshake)"
    assert reason in result.err + result.text
