"""`barnabas dev --registry`: a schema registry beside the nodes, in a separate process.

This process runs two others, `barnabas dev` and `barnabas registry start`, and passes on what they
say. The registry starts when the nodes serve, and ends before them.
"""

import asyncio
import json
import os
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import click

from barnabas.base.ending import on_stop_signals
from barnabas.cli.dev.child_process import end_with
from barnabas.cli.errors import ExitCode

READY = "Ready: bootstrap.servers="
REGISTRY_READY = "Schema registry: "


def run_with_registry(
    flags: Sequence[str],
    login: str | None,
    *,
    host: str,
    port: int,
    replicas: int,
    log_level: str,
    as_json: bool,
) -> int:
    """Run `barnabas dev` with `flags` and a registry until a signal; returns the exit code.

    `login` is the registry's properties file where the nodes want a login; they write it.
    """
    shown_host = f"[{host}]" if ":" in host else host
    registry_flags = [
        *([login] if login is not None else []),
        *("--listeners", f"http://{shown_host}:{port}", "--override", f"host.name={host}"),
        *("--override", f"kafkastore.topic.replication.factor={replicas}"),
        *("--log-level", log_level, *(["--json"] if as_json else [])),
    ]
    return asyncio.run(_Pair(flags, registry_flags, as_json).run())


class _Pair:
    """The nodes and the registry, started and ended in order."""

    def __init__(
        self, dev_flags: Sequence[str], registry_flags: Sequence[str], as_json: bool
    ) -> None:
        self._dev_flags = dev_flags
        self._registry_flags = registry_flags
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
        registry = await self._spawn("registry", "start", "-b", bootstrap, *self._registry_flags)
        assert registry.stdout is not None
        ready = await registry.stdout.readline()
        if not ready:
            return await registry.wait()
        if self._as_json:
            url = json.loads(ready)["listeners"][0]
            _say(json.dumps({**facts, "schema_registry_url": url}) + "\n")
        else:
            url = ready.decode().removeprefix(REGISTRY_READY).partition(",")[0]
            _say(first)
            _say(f"       schema.registry.url={url}\n")
        watching = asyncio.create_task(self._watch(registry))
        async for line in dev.stdout:
            _say(line.decode())
        code = await dev.wait()
        watching.cancel()
        return code

    async def _watch(self, registry: Process) -> None:
        code = await registry.wait()
        if not self._stopping.is_set():
            with suppress(OSError):  # a terminal that was closed
                click.echo(f"the schema registry has ended (exit code {code})", err=True)

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
