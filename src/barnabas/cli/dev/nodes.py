"""`barnabas dev --nodes`: a process per node, started, watched and ended together."""

import asyncio
import json
import logging
import os
import random
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import click

from barnabas.app.local_nodes import (
    CONTROLLER_LISTENER,
    LocalNode,
    PortReservation,
    format_nodes,
    found_nodes,
    new_nodes,
    write_properties,
)
from barnabas.app.secured import Secured
from barnabas.base.clock import SystemClock
from barnabas.base.ending import on_stop_signals
from barnabas.base.local_disk import LocalDisk
from barnabas.base.telemetry import JSON, JsonFormatter
from barnabas.cli.dev.child_process import end_with
from barnabas.cli.dev.secure import METRICS_ON, PORT_HINT, DevWishes, facts, greet, secured_for
from barnabas.cli.errors import CliError, ExitCode
from barnabas.cli.output import Row, print_json, print_table

LINES_KEPT_MAX = 20
PORT_MAX = 65535
OWN_KEYS = frozenset(
    {"node.id", "broker.id", "listeners", "advertised.listeners", "log.dir", "log.dirs"}
    | {"metadata.log.dir"}
)
"""Settings that must differ between nodes, so they cannot be set for all."""


@dataclass(slots=True)
class _Child:
    """A node and its process."""

    node: LocalNode
    process: Process
    metrics: str | None = None
    """The URL of its metrics, once it is ready."""
    last_lines: list[str] = field(default_factory=list)

    @property
    def name(self) -> str:
        return f"node {self.node.node_id}"


def run_nodes(wishes: DevWishes) -> int:
    """Run until a signal or the end of the last node; returns the exit code.

    Raises what keeps the nodes from being prepared or started.
    """
    reservation = PortReservation(wishes.host)
    try:
        secured = secured_for(wishes)
        nodes = prepare_nodes(wishes, reservation, secured)
        return asyncio.run(_Supervisor(wishes, nodes, secured).run())
    finally:
        reservation.close()


def prepare_nodes(
    wishes: DevWishes, reservation: PortReservation, secured: Secured | None = None
) -> list[LocalNode]:
    """The nodes, their directories formatted: those of an earlier run, or new ones.

    Raises CliError where the directory holds another number of nodes or ports are taken.
    """
    for key in wishes.overrides:
        if key in OWN_KEYS:
            raise CliError(
                f"{key} cannot be the same on every node",
                ExitCode.USAGE,
                "leave it out of --override and the environment, or edit a node's "
                "server.properties",
            )
    found = found_nodes(wishes.directory, wishes.overrides)
    if found and len(found) < wishes.count:
        raise CliError(
            f"{wishes.directory} holds a cluster of {len(found)} nodes, not {wishes.count}",
            ExitCode.USAGE,
            f"start it with --nodes {len(found)}; barnabas cluster add adds one while it runs",
        )
    if not found and os.path.exists(os.path.join(wishes.directory, "data")):
        raise CliError(
            f"{wishes.directory} holds a single node", ExitCode.USAGE, "start it without --nodes"
        )
    if found:
        for node in found:
            for entry in node.properties["listeners"].split(","):
                _hold(reservation, int(entry.rpartition(":")[2]))
    else:
        ports, controller_ports = _choose_ports(wishes, reservation)
        found = new_nodes(
            wishes.directory,
            ports,
            controller_ports,
            host=wishes.host,
            racks=wishes.racks,
            overrides=wishes.overrides,
            secured=secured,
        )
    for node in found:
        write_properties(node)
        if secured is not None:
            secured.make_certificate(node.node_id, [wishes.host])
    disk = LocalDisk()
    try:
        format_nodes(
            disk, found, random=random.SystemRandom(), clock=SystemClock(), secured=secured
        )
    finally:
        disk.close()
    return found


def _choose_ports(wishes: DevWishes, reservation: PortReservation) -> tuple[list[int], list[int]]:
    """Consecutive ports, those of the controllers after those for clients; or any free ones."""
    count = wishes.count
    first = wishes.port
    ports = list(range(first, first + count)) if first else reservation.take(count)
    if wishes.controller_port is not None:
        first = wishes.controller_port
    elif first:
        first += count
    controller_ports = list(range(first, first + count)) if first else reservation.take(count)
    if max(*ports, *controller_ports) > PORT_MAX:
        raise CliError(
            f"ports {_span(ports)} and {_span(controller_ports)} do not exist", ExitCode.USAGE
        )
    if not set(ports).isdisjoint(controller_ports):
        raise CliError(
            f"ports {_span(ports)} for clients and {_span(controller_ports)} for controllers "
            "overlap",
            ExitCode.USAGE,
        )
    for port in (*(ports if wishes.port else ()), *(controller_ports if first else ())):
        _hold(reservation, port)
    return ports, controller_ports


def _span(ports: Sequence[int]) -> str:
    return f"{ports[0]}-{ports[-1]}"


def _hold(reservation: PortReservation, port: int) -> None:
    try:
        reservation.hold(port)
    except OSError as error:
        raise CliError(
            f"port {port} cannot be used: {error.strerror}",
            hint=PORT_HINT,
        ) from error


class _Supervisor:
    """Starts the processes, shows what they say, and ends them."""

    def __init__(
        self, wishes: DevWishes, nodes: Sequence[LocalNode], secured: Secured | None = None
    ) -> None:
        self._wishes = wishes
        self._secured = secured
        self._nodes = nodes
        self._children: list[_Child] = []
        self._stopping = asyncio.Event()
        self._is_killed = False

    async def run(self) -> int:
        on_stop_signals(self._on_signal)
        try:
            for node in self._nodes:
                self._children.append(await self._start(node))
            watchers = [asyncio.create_task(self._watch(child)) for child in self._children]
            started = await self._all_ready()
            if started and not self._stopping.is_set():
                self._greet()
            stopping = asyncio.create_task(self._stopping.wait())
            ends = asyncio.gather(*watchers)
            await asyncio.wait((stopping, ends), return_when=asyncio.FIRST_COMPLETED)
            stopping.cancel()
            asked = self._stopping.is_set()
            self._signal_all(signal.SIGTERM)
            self._stopping.set()
            codes = await ends
        finally:
            self._signal_all(signal.SIGKILL)
        if self._is_killed:
            return ExitCode.INTERRUPTED
        return ExitCode.DONE if asked and started and not any(codes) else ExitCode.REFUSED

    async def _start(self, node: LocalNode) -> _Child:
        command = ["start", node.path, "--json", *self._wishes.logs.flags()]
        for key, value in METRICS_ON.items():
            if key not in node.properties:
                command += ["--override", f"{key}={value}"]
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "barnabas", *command),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=PIPE,
            stderr=PIPE,
            start_new_session=True,  # Ctrl-C is ours to pass on
            preexec_fn=end_with(os.getpid()),
        )
        return _Child(node, process)

    async def _all_ready(self) -> bool:
        """Wait for the line with which each node says that it serves; False if one ends first."""
        ready = await asyncio.gather(*(_is_ready(child) for child in self._children))
        if all(ready):
            return True
        if not self._stopping.is_set():
            for child, is_ready in zip(self._children, ready, strict=True):
                if not is_ready:
                    self._say(f"{child.name} did not start: {_last(child)}")
            self._stopping.set()
        return False

    async def _watch(self, child: _Child) -> int:
        """Show what a node says, and that it has ended. Returns its exit code."""
        assert child.process.stderr is not None
        async for line in child.process.stderr:
            text = line.decode(errors="replace").rstrip()
            child.last_lines = [*child.last_lines[-LINES_KEPT_MAX:], text]
            if not self._stopping.is_set():
                self._show(child, text)
        code = await child.process.wait()
        if not self._stopping.is_set():
            self._report_end(child, code)
        elif code not in (0, -signal.SIGTERM) and not self._is_killed:
            self._say(f"{child.name} did not end cleanly ({_end_text(code)}): {_last(child)}")
            return code
        return 0

    def _report_end(self, child: _Child, code: int) -> None:
        if self._wishes.as_json:
            print_json({"node": child.node.node_id, "ended": True, "exit_code": code})
            sys.stdout.flush()
        living = [
            str(item.node.node_id) for item in self._children if item.process.returncode is None
        ]
        rest = f"; {', '.join(living)} continue" if living else "; it was the last one"
        self._say(f"{child.name} has ended ({_end_text(code)}){rest}")
        if living:
            self._say(f"Start it again: barnabas start {child.node.path}")

    def _on_signal(self, number: signal.Signals) -> None:
        if self._stopping.is_set() and number is not signal.SIGHUP:  # which may come twice
            self._is_killed = True
            self._signal_all(signal.SIGKILL)
        self._stopping.set()

    def _signal_all(self, number: signal.Signals) -> None:
        for child in self._children:
            if child.process.returncode is None:
                child.process.send_signal(number)

    def _show(self, child: _Child, line: str) -> None:
        """Show a line that a node printed. One that is JSON gets the node's id as a field."""
        if self._wishes.logs.format == JSON:
            event = None
            with suppress(ValueError):
                event = json.loads(line)
            if isinstance(event, dict):
                whole = {"node": child.node.node_id} | event
                self._print(json.dumps(whole, ensure_ascii=False))
                return
        self._say(f"{child.name}: {line}")

    def _say(self, text: str) -> None:
        if self._wishes.logs.format == JSON:
            facts = {"name": __name__, "levelname": "WARNING", "msg": text}
            text = JsonFormatter().format(logging.makeLogRecord(facts))
        self._print(text)

    def _print(self, line: str) -> None:
        with suppress(OSError):  # a terminal that was closed
            click.echo(line, err=True)

    def _greet(self) -> None:
        bootstrap = ",".join(node.client_address for node in self._nodes)
        rows: list[Row] = [
            {
                "node": child.node.node_id,
                "rack": child.node.rack,
                "clients": child.node.client_address,
                "controller": child.node.address(CONTROLLER_LISTENER),
                "pid": child.process.pid,
                "metrics": child.metrics,
                "directory": child.node.directory,
            }
            for child in self._children
        ]
        if self._wishes.as_json:
            value: dict[str, Any] = {"ready": True, "bootstrap_servers": bootstrap}
            more = facts(self._secured, bootstrap)
            print_json({**value, "directory": self._wishes.directory, "nodes": rows, **more})
        else:
            click.echo(f"Ready: bootstrap.servers={bootstrap}")
            columns = ["node", "clients", "controller", "pid", "metrics", "directory"]
            if self._wishes.racks:
                columns.insert(1, "rack")
            print_table(rows, columns)
            if self._wishes.is_temporary:
                click.echo("Data is temporary and removed at the end.")
            first = self._nodes[0].client_address
            flag = "" if first.endswith(":9092") else f" -b {first}"
            if self._secured is not None:
                greet(self._secured, bootstrap)
                flag = ""
            lead = "Try:  " if self._secured is None else "      "
            click.echo(f"{lead} barnabas cluster status{flag}")
            click.echo("Ctrl-C ends all nodes.")
        sys.stdout.flush()


async def _is_ready(child: _Child) -> bool:
    """Return whether a node says on standard output that it is ready, before it ends."""
    assert child.process.stdout is not None
    line = await child.process.stdout.readline()
    facts = json.loads(line) if line else {}
    child.metrics = facts.get("metrics")
    return bool(facts.get("ready"))


def _last(child: _Child) -> str:
    return child.last_lines[-1] if child.last_lines else "it printed nothing"


def _end_text(code: int) -> str:
    return f"exit code {code}" if code >= 0 else f"killed by {signal.Signals(-code).name}"
