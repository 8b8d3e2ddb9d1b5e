"""`barnabas dev --registry --connect --sql --console`: services beside the nodes, each a process.

This process runs others, `barnabas dev`, `barnabas registry start`, `barnabas connect start`,
`barnabas sql server` and `barnabas console`, and passes on what they say. Services start when the
nodes serve, and end before them.
"""

import asyncio
import json
import os
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import click

from barnabas.base.ending import on_stop_signals
from barnabas.base.telemetry import Logs
from barnabas.cli.dev.child_process import end_with
from barnabas.cli.errors import ExitCode

READY = "Ready: bootstrap.servers="
REGISTRY, CONNECT, SQL, CONSOLE = "schema.registry.url", "connect.url", "sql.url", "console.url"
"""The services, by the names of their addresses in the output of `dev`."""
REPLICAS_MAX = 3
WRITE_TIMEOUT_MS = 30_000
"""Of the registry: one machine runs all, and may be busy for longer than the default, 500 ms."""
_JAVA = "org.apache.kafka.connect"


@dataclass(frozen=True, slots=True)
class Service:
    """A service beside the nodes: its command, and what it says when it serves."""

    name: str
    command: Sequence[str]
    ready: str
    key: str
    """The name of its address in the output of `dev`."""
    flags: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """The flags by which it learns the addresses of others that run, with {} for the address."""


@dataclass(frozen=True, slots=True)
class Beside:
    """Settings that all services beside the nodes share."""

    host: str
    nodes: int
    registry_login: str | None
    """The registry's properties file if the nodes want a login; they write it."""
    login: str | None
    """A client's properties file if the nodes want a login."""

    @property
    def replicas(self) -> int:
        """Of the topics that keep the state of services."""
        return min(self.nodes, REPLICAS_MAX)

    def registry(self, port: int) -> Service:
        """A registry."""
        command = [
            *("registry", "start", *_given(self.registry_login)),
            *("--listeners", self._listener(port), "--override", f"host.name={self.host}"),
            *("--override", f"kafkastore.topic.replication.factor={self.replicas}"),
            *("--override", f"kafkastore.timeout.ms={WRITE_TIMEOUT_MS}"),
        ]
        return Service("schema registry", command, "Schema registry: ", REGISTRY)

    def connect(self, port: int, *, has_registry: bool) -> Service:
        """A worker of connectors that keeps its state in the cluster, and needs no Spark."""
        values = {
            "group.id": "connect-dev",
            "config.storage.topic": "connect-configs",
            "offset.storage.topic": "connect-offsets",
            "status.storage.topic": "connect-status",
            **{
                f"{kind}.storage.replication.factor": str(self.replicas)
                for kind in ("config", "offset", "status")
            },
            "key.converter": f"{_JAVA}.storage.StringConverter",
            "value.converter": "io.confluent.connect.avro.AvroConverter"
            if has_registry
            else f"{_JAVA}.json.JsonConverter",
            "barnabas.connect.engine": "local",
        }
        command = [
            *("connect", "start", self.login or os.devnull),  # all settings are flags
            *("--listeners", self._listener(port)),
            *_overrides(values),
        ]
        flags = {REGISTRY: _overrides({"value.converter.schema.registry.url": "{}"})}
        return Service("Connect worker", command, "Connect worker: ", CONNECT, flags)

    def sql(self, port: int, directory: str) -> Service:
        """A SQL server, which keeps Spark's checkpoints below `directory`."""
        values = {
            "ksql.streams.state.dir": os.path.join(directory, "sql"),
            "ksql.internal.topic.replicas": str(self.replicas),
            "ksql.streams.auto.offset.reset": "earliest",
        }
        command = [
            *("sql", "server", "--listeners", self._listener(port), *_overrides(values)),
            *self._command_config,
        ]
        flags = {REGISTRY: ("--schema-registry-url", "{}")}
        return Service("SQL server", command, "SQL server: ", SQL, flags)

    def console(self, port: int) -> Service:
        """A console of all of them. It has no users, so it is on loopback."""
        command = ["console", "--listeners", f"http://127.0.0.1:{port}", *self._command_config]
        flags = {
            REGISTRY: ("--registry-url", "{}"),
            CONNECT: ("--connect-url", "{}"),
            SQL: ("--sql-url", "{}"),
        }
        return Service("console", command, "Console: ", CONSOLE, flags)

    @property
    def _command_config(self) -> list[str]:
        return [] if self.login is None else ["--command-config", self.login]

    def _listener(self, port: int) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{port}"


def _given(word: str | None) -> list[str]:
    return [] if word is None else [word]


def _overrides(values: Mapping[str, str]) -> list[str]:
    return [word for key, value in values.items() for word in ("--override", f"{key}={value}")]


def run_with_services(
    flags: Sequence[str], services: Sequence[Service], *, logs: Logs, as_json: bool
) -> int:
    """Run `barnabas dev` with `flags` and services until a signal; returns the exit code."""
    return asyncio.run(_Family(flags, services, logs, as_json).run())


class _Family:
    """The nodes and the services beside them, started and ended in order."""

    def __init__(
        self,
        dev_flags: Sequence[str],
        services: Sequence[Service],
        logs: Logs,
        as_json: bool,
    ) -> None:
        self._dev_flags = dev_flags
        self._services = services
        self._service_flags = [*logs.flags(), *(["--json"] if as_json else [])]
        self._as_json = as_json
        self._stopping = asyncio.Event()
        self._children: list[Process] = []

    async def run(self) -> int:
        on_stop_signals(self._on_signal)
        stopping = asyncio.create_task(self._stopping.wait())
        serving = asyncio.create_task(self._serve())
        try:
            await asyncio.wait((stopping, serving), return_when=asyncio.FIRST_COMPLETED)
            codes = await self._end()
            served = await serving
        finally:
            stopping.cancel()
            self._signal_all(signal.SIGKILL)
        if -signal.SIGKILL in codes:
            return ExitCode.INTERRUPTED
        # SIGTERM may come before a process is ready for it.
        failed = (code for code in (served, *codes) if code not in (0, -signal.SIGTERM))
        return next(failed, ExitCode.DONE)

    async def _serve(self) -> int:
        """Until the nodes have ended; returns the exit code of what failed to start, else 0."""
        dev = await self._spawn("dev", *self._dev_flags)
        assert dev.stdout is not None
        first = (await dev.stdout.readline()).decode()
        if not first or self._stopping.is_set():
            return await dev.wait()
        facts: dict[str, Any] = json.loads(first) if self._as_json else {}
        bootstrap = facts.get("bootstrap_servers") or first.removeprefix(READY).strip()
        urls: dict[str, str] = {}
        watching = []
        for service in self._services:
            known = [
                word.format(urls[key])
                for key, words in service.flags.items()
                if key in urls
                for word in words
            ]
            command = [*service.command, "-b", bootstrap, *known, *self._service_flags]
            process = await self._spawn(*command)
            assert process.stdout is not None
            ready = (await process.stdout.readline()).decode()
            if not ready:
                return await process.wait()
            if self._as_json:
                url = json.loads(ready)["listeners"][0]
            else:
                url = ready.removeprefix(service.ready).split(" ")[0].rstrip(",")
            urls[service.key] = url
            watching.append(asyncio.create_task(self._watch(service, process)))
        if self._as_json:
            named = {key.replace(".", "_"): url for key, url in urls.items()}
            _say(json.dumps({**facts, **named}) + "\n")
        else:
            _say(first)
            for key, url in urls.items():
                _say(f"       {key}={url}\n")
        async for line in dev.stdout:
            _say(line.decode())
        code = await dev.wait()
        for task in watching:
            task.cancel()
        return code

    async def _watch(self, service: Service, process: Process) -> None:
        code = await process.wait()
        if not self._stopping.is_set():
            with suppress(OSError):  # a terminal that was closed
                click.echo(f"the {service.name} has ended (exit code {code})", err=True)

    async def _spawn(self, *arguments: str) -> Process:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "barnabas", *arguments),
            stdin=DEVNULL,
            stdout=PIPE,
            start_new_session=True,  # Ctrl-C is ours to pass on
            preexec_fn=end_with(os.getpid()),
        )
        self._children.append(process)
        if self._stopping.is_set():
            process.terminate()
        return process

    async def _end(self) -> list[int]:
        """End the last that was started first. Returns the exit codes."""
        self._stopping.set()
        codes = []
        for process in reversed(self._children):
            _signal(process, signal.SIGTERM)
            codes.append(await process.wait())
        return codes

    def _on_signal(self, number: signal.Signals) -> None:
        if self._stopping.is_set() and number is not signal.SIGHUP:  # which may come twice
            self._signal_all(signal.SIGKILL)
        self._stopping.set()

    def _signal_all(self, number: signal.Signals) -> None:
        for process in self._children:
            _signal(process, number)


def _signal(process: Process, number: signal.Signals) -> None:
    if process.returncode is None:
        with suppress(ProcessLookupError):
            process.send_signal(number)


def _say(text: str) -> None:
    with suppress(OSError):
        click.echo(text, nl=False)
        sys.stdout.flush()
