"""Kafka's Java tools, run in one JVM as if each were a process.

A JVM takes a second to start and a tool's classes another; here one JVM serves a whole test
session (`java/ToolHost.java`). Needs `java`, `javac` and Kafka's jars in `.cache/kafka-4.3*/libs`.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from barnabas.base.config.properties import parse_properties
from support import client_logins
from support.apache_kafka import QUICK_JVM

ROOT = Path(__file__).parents[2]
SOURCES = Path(__file__).with_name("java")
LIBS = sorted(ROOT.glob(".cache/kafka-4.3*/libs"))
JAVA = shutil.which("java")
JAVAC = shutil.which("javac")
AVAILABLE = bool(LIBS) and JAVA is not None and JAVAC is not None
MISSING = "needs java, javac and Kafka's jars in .cache/kafka-4.3*/libs"
needs_java = pytest.mark.skipif(not AVAILABLE, reason=MISSING)
TIMEOUT_S = 60.0
SHOWN_CHARACTERS = 2000
SERVERS, SERVERS_SETTING = "--bootstrap-server", "bootstrap.servers="
COMMAND_CONFIG = "--command-config"

TOOLS = {
    "kafka-acls": "org.apache.kafka.tools.AclCommand",
    "kafka-broker-api-versions": "org.apache.kafka.tools.BrokerApiVersionsCommand",
    "kafka-cluster": "org.apache.kafka.tools.ClusterTool",
    "kafka-configs": "kafka.admin.ConfigCommand",
    "kafka-console-consumer": "org.apache.kafka.tools.consumer.ConsoleConsumer",
    "kafka-console-producer": "org.apache.kafka.tools.ConsoleProducer",
    "kafka-console-share-consumer": "org.apache.kafka.tools.consumer.ConsoleShareConsumer",
    "kafka-consumer-groups": "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
    "kafka-consumer-perf-test": "org.apache.kafka.tools.ConsumerPerformance",
    "kafka-delegation-tokens": "org.apache.kafka.tools.DelegationTokenCommand",
    "kafka-delete-records": "org.apache.kafka.tools.DeleteRecordsCommand",
    "kafka-e2e-latency": "org.apache.kafka.tools.EndToEndLatency",
    "kafka-features": "org.apache.kafka.tools.FeatureCommand",
    "kafka-get-offsets": "org.apache.kafka.tools.GetOffsetShell",
    "kafka-groups": "org.apache.kafka.tools.GroupsCommand",
    "kafka-leader-election": "org.apache.kafka.tools.LeaderElectionCommand",
    "kafka-log-dirs": "org.apache.kafka.tools.LogDirsCommand",
    "kafka-metadata-quorum": "org.apache.kafka.tools.MetadataQuorumCommand",
    "kafka-producer-perf-test": "org.apache.kafka.tools.ProducerPerformance",
    "kafka-reassign-partitions": "org.apache.kafka.tools.reassign.ReassignPartitionsCommand",
    "kafka-share-groups": "org.apache.kafka.tools.consumer.group.ShareGroupCommand",
    "kafka-streams-groups": "org.apache.kafka.tools.streams.StreamsGroupCommand",
    "kafka-topics": "org.apache.kafka.tools.TopicCommand",
    "kafka-transactions": "org.apache.kafka.tools.TransactionsCommand",
    "kafka-verifiable-consumer": "org.apache.kafka.tools.VerifiableConsumer",
    "kafka-verifiable-producer": "org.apache.kafka.tools.VerifiableProducer",
    "client-compatibility-test": "org.apache.kafka.tools.ClientCompatibilityTest",
    "client-steps": "ClientSteps",
    "group-steps": "GroupSteps",
    "share-steps": "ShareSteps",
    "transaction-steps": "TransactionSteps",
}
"""The scripts of Kafka's bin directory, and the class each starts."""


@dataclass(slots=True, frozen=True)
class ToolResult:
    """The result of a tool that has ended."""

    exit_code: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        """Lines on standard output that are not blank."""
        return [line.rstrip() for line in self.out.splitlines() if line.strip()]

    @property
    def table(self) -> list[list[str]]:
        """Standard output as rows of words."""
        return [line.split() for line in self.lines]


class ToolRun:
    """A tool that runs."""

    def __init__(self, host: JavaHost, number: int, name: str) -> None:
        self._host = host
        self._number = number
        self._name = name
        self._changed = host.changed
        self._text = {"out": "", "err": ""}
        self._exit_code: int | None = None

    @property
    def out(self) -> str:
        """Standard output so far."""
        return self._text["out"]

    def __str__(self) -> str:
        with self._changed:
            ends = {stream: text[-SHOWN_CHARACTERS:] for stream, text in self._text.items()}
        return f"{self._name} ({self._exit_code})\n{ends['out']}\n--- stderr\n{ends['err']}"

    def json_lines(self) -> list[dict[str, Any]]:
        """The JSON objects of standard output, as the verifiable tools print them."""
        whole = self.out.rpartition("\n")[0]
        return [json.loads(line) for line in whole.splitlines() if line.startswith("{")]

    def wait_until(self, condition: Callable[[], bool], timeout_s: float = TIMEOUT_S) -> None:
        """Wait until output, of this tool or others, fulfils a condition.

        Raises AssertionError if none comes, or this tool ends before.
        """
        with self._changed:
            met = self._changed.wait_for(
                lambda: condition() or self._exit_code is not None, timeout_s
            )
        assert met, f"no sign of it in time: {self}"
        assert condition(), f"ended before: {self}"

    def wait_for(self, pattern: str, timeout_s: float = TIMEOUT_S) -> None:
        """Wait for a regular expression on standard output."""
        self.wait_until(lambda: re.search(pattern, self.out) is not None, timeout_s)

    def wait(self, timeout_s: float = TIMEOUT_S) -> ToolResult:
        """Wait for the end. Raises AssertionError if it does not come."""
        with self._changed:
            ended = self._changed.wait_for(lambda: self._exit_code is not None, timeout_s)
        assert ended, f"still running: {self}"
        assert self._exit_code is not None
        return ToolResult(self._exit_code, self._text["out"], self._text["err"])

    def stop(self) -> ToolResult:
        """Do what SIGTERM does, and wait for the end."""
        if self._exit_code is None:
            self._host.send({"id": self._number, "stop": True})
        return self.wait()

    def _receive(self, message: dict[str, Any]) -> None:
        with self._changed:
            for stream in ("out", "err"):
                if stream in message:
                    self._text[stream] += message[stream]
            if "exit" in message:
                self._exit_code = message["exit"]
            self._changed.notify_all()


class JavaHost:
    """A JVM with Kafka's tools, while a `with` block lasts."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._runs: dict[int, ToolRun] = {}
        self._sending = threading.Lock()
        self.changed = threading.Condition()
        self._directory = tempfile.TemporaryDirectory()
        self.token_file = Path(self._directory.name, "token")
        """The only file that clients may take a bearer token from: Java has a list of them."""

    def start(self, tool: str, *arguments: str, stdin: str = "") -> ToolRun:
        """Start a tool and leave it running; it logs in where `client_logins` says how."""
        given = _with_login(tool, arguments)
        with self._sending:
            number = len(self._runs)
            run = self._runs[number] = ToolRun(self, number, " ".join((tool, *given)))
        self.send({"id": number, "run": TOOLS[tool], "args": given, "stdin": stdin})
        return run

    def run(
        self, tool: str, *arguments: str, stdin: str = "", exit_code: int | None = 0
    ) -> ToolResult:
        """Run a tool to its end. Raises AssertionError unless it exits with `exit_code`."""
        run = self.start(tool, *arguments, stdin=stdin)
        result = run.wait()
        assert exit_code is None or result.exit_code == exit_code, str(run)
        return result

    def send(self, command: dict[str, Any]) -> None:
        """Hand the JVM a command."""
        assert self._process is not None
        assert self._process.stdin is not None
        with self._sending:
            self._process.stdin.write(json.dumps(command) + "\n")
            self._process.stdin.flush()

    def _read(self) -> None:
        assert self._process is not None
        assert self._process.stdout is not None
        for line in self._process.stdout:
            message = json.loads(line)
            self._runs[message["id"]]._receive(message)

    def __enter__(self) -> JavaHost:
        self._process = subprocess.Popen(
            _command(self.token_file),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
        )
        self._reader.start()
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process is not None
        with self._process as process:
            assert process.stdin is not None
            process.stdin.close()
            process.wait(TIMEOUT_S)
            self._reader.join()
        self._directory.cleanup()


def _with_login(tool: str, arguments: Sequence[str]) -> Sequence[str]:
    """The arguments with the login that the servers among them ask for.

    Our own programs take a properties file in place of the servers.
    """
    if tool.endswith("-steps"):
        file = client_logins.java_file(arguments[0])
        return arguments if file is None else (file, *arguments[1:])
    left, given = [*arguments], {}
    if COMMAND_CONFIG in left:
        place = left.index(COMMAND_CONFIG)
        given = parse_properties(Path(left[place + 1]).read_text())
        del left[place : place + 2]
    at, servers = 0, ""
    if SERVERS in left:
        at = left.index(SERVERS) + 2
        servers = left[at - 1]
    for argument in left:
        if argument.startswith(SERVERS_SETTING):
            servers = argument.removeprefix(SERVERS_SETTING)
    file = client_logins.java_file(servers, given)
    if file is None or "security.protocol" in given:
        return arguments
    return (*left[:at], COMMAND_CONFIG, file, *left[at:])


def _command(token_file: Path) -> Sequence[str]:
    assert JAVA is not None
    return (
        JAVA,
        *("-Xmx384m", *QUICK_JVM),
        *("--add-opens", "java.base/java.lang=ALL-UNNAMED"),
        f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={token_file.as_uri()}",
        f"-Dlog4j2.configurationFile={SOURCES / 'log4j2.properties'}",
        *("-cp", f"{compiled_tools()}:{LIBS[-1]}/*"),
        "ToolHost",
    )


def quick_javac() -> Sequence[str]:
    """The compiler, in a JVM as the others."""
    assert JAVAC is not None
    return (JAVAC, *(f"-J{option}" for option in QUICK_JVM))


def compiled_tools() -> Path:
    """A directory of classes, compiled again if the sources have changed."""
    sources = sorted(SOURCES.glob("*.java"))
    digest = hashlib.sha256(b"\0".join(source.read_bytes() for source in sources)).hexdigest()
    directory = ROOT / ".cache" / "java-tests" / digest[:16]
    if not directory.exists():
        partial = directory.with_name(f"{digest[:16]}.{os.getpid()}.partial")
        subprocess.run(
            [
                *(*quick_javac(), "-Xlint:all,-options", "-Werror"),
                *("-cp", f"{LIBS[-1]}/*", "-d", str(partial), *map(str, sources)),
            ],
            check=True,
        )
        try:
            partial.rename(directory)
        except OSError:
            if not directory.exists():
                raise
            shutil.rmtree(partial)  # tests beside these compiled the same
    return directory
