"""`barnabas demo` on the command line: one clear line where it cannot run."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import socket
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from barnabas.demo.commands import MODULES, MissingError, check_requirements
from barnabas.demo.workspace import Workspace


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "barnabas", "demo", *arguments],
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
        timeout=60,
        check=False,
    )


def test_without_java_it_says_so_in_one_line(tmp_path: Path) -> None:
    done = run("--directory", str(tmp_path / "demo"), JAVA_HOME=str(tmp_path))
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1
    assert "Java 17" in done.stderr
    assert "apt-get install" in done.stderr
    assert not (tmp_path / "demo").exists()


def test_without_java_on_the_path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MissingError, match="none on the PATH"):
        check_requirements()


@pytest.mark.parametrize("module", MODULES)
def test_without_a_library_it_names_the_extra_of_the_checkout(
    monkeypatch: pytest.MonkeyPatch, module: str
) -> None:
    found = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == module else found(name)
    )
    with pytest.raises(MissingError, match=rf"needs {module}.*pip install '\.\[demo\]'"):
        check_requirements()


INCLUDED = ("connect", "console", "registry", "sql", "spark")
"""Extras that the demo's includes, or that those include."""


def test_the_extra_has_all_that_the_demo_needs() -> None:
    """Names in pyproject.toml are of distributions: those of their modules, but with hyphens."""
    content = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text())
    project = content["project"]
    extras = project["optional-dependencies"]
    lines = [line for name in ("demo", *INCLUDED) for line in extras[name]]
    lines += project["dependencies"]
    whole = {re.split("[>=]=", line)[0] for line in lines}
    names = whole | {line.split("[")[0] for line in whole}
    assert {module.replace("_", "-") for module in MODULES} <= names
    assert {
        "barnabas[connect,console,sql]",
        "barnabas[registry,spark]",
        "barnabas[spark]",
        "confluent-kafka[avro,json,protobuf,schemaregistry]",
    } <= names


@pytest.fixture
def java(tmp_path: Path) -> dict[str, Any]:
    """Something that passes for a Java installation, which these tests never start."""
    binary = tmp_path / "java" / "bin" / "java"
    binary.parent.mkdir(parents=True)
    binary.write_text("#!/bin/sh\n")
    binary.chmod(0o755)
    return {"JAVA_HOME": str(tmp_path / "java")}


def test_a_second_demo_in_the_same_directory_is_refused(
    tmp_path: Path, java: dict[str, Any]
) -> None:
    pytest.importorskip("pyspark")
    workspace = Workspace(str(tmp_path / "demo"))
    workspace.lock()
    done = run("--directory", workspace.directory, "--json", **java)
    workspace.close()
    assert done.returncode == 1
    assert f"pid {os.getpid()}" in json.loads(done.stderr)["error"]


def test_a_cluster_that_does_not_answer_ends_the_run(tmp_path: Path, java: dict[str, Any]) -> None:
    """Ctrl-C's signal while it still waits: everything ends, with the shell's exit code.

    The server answers the first question, whether anybody is there, and no other.
    """
    pytest.importorskip("pyspark")
    silent = socket.create_server(("127.0.0.1", 0))
    address = f"127.0.0.1:{silent.getsockname()[1]}"
    command = [sys.executable, "-m", "barnabas", "demo", "--bootstrap", address]
    with (
        silent,
        subprocess.Popen(
            [*command, "--directory", str(tmp_path / "demo")],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **java},
        ) as process,
    ):
        assert process.stdout is not None
        first, _ = silent.accept()
        first.sendall(b"\0")
        first.close()
        for line in process.stdout:
            if f"asking {address}" in line:
                break
        process.send_signal(2)
        rest = process.stdout.read()
        assert process.wait(30) == 130
    assert "goes on from here" in rest


def test_help_names_what_can_be_chosen() -> None:
    done = run("--help")
    assert done.returncode == 0
    for word in ("--seconds", "--directory", "--bootstrap", "--json", "Exit codes"):
        assert word in done.stdout
