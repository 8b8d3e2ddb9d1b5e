"""From a user's wishes to a run: the workspace is locked, its settings are found or made.

No other demo of this machine takes the ports of one. Each part listens some time after its port was
chosen, so a look at what is free is not enough: two demos that start together would choose the
same. Who chooses a port of TCP therefore binds the port of UDP with the same number, which nobody
else can, and which is free again when the process ends, however it ends.
"""

from __future__ import annotations

import contextlib
import socket
from dataclasses import dataclass
from typing import Final

from rich.console import Console

from barnabas.demo.contract import DEFAULT_ACCELERATION, DEFAULT_RATE, DEFAULT_SEED
from barnabas.demo.orchestrator import PARTS, DemoRun
from barnabas.demo.outcome import Outcome
from barnabas.demo.parts.part import RunOptions
from barnabas.demo.processes import Children
from barnabas.demo.terminal import Screen
from barnabas.demo.workspace import (
    FIRST_BROKER_PORT,
    FIRST_BUCKET_PORT,
    FIRST_CONNECT_PORT,
    FIRST_CONSOLE_PORT,
    FIRST_DASHBOARD_PORT,
    FIRST_DATABASE_PORT,
    FIRST_REGISTRY_PORT,
    FIRST_SQL_PORT,
    FIRST_WAREHOUSE_PORT,
    ICEBERG,
    Settings,
    Workspace,
    new_cluster_id,
)

LOOPBACK: Final = "127.0.0.1"
_PORTS_TRIED_MAX: Final = 200


class SettingsConflictError(Exception):
    """The directory belongs to runs with other settings; the message names them."""


@dataclass(slots=True, frozen=True)
class Wishes:
    """The options of the command line; None for those not given."""

    directory: str
    seconds: int | None = None
    bootstrap: str | None = None
    host: str = "127.0.0.1"
    port: int | None = None
    seed: int | None = None
    rate: int | None = None
    acceleration: int | None = None
    fresh: bool = False
    nodes: int | None = None
    exactly_once: bool | None = None
    secure: bool | None = None
    warehouse: str | None = None


def launch(wishes: Wishes, console: Console) -> Outcome:
    """Run the demo to its end; returns how it went.

    Raises WorkspaceBusyError where another demo runs in the directory, SettingsConflictError where
    the directory's runs had other nodes, or another seed, rate, acceleration or way of writing.
    """
    workspace = Workspace(wishes.directory)
    workspace.lock()
    with contextlib.closing(workspace), Ports() as ports:
        screen = Screen(console, PARTS)
        children = Children(workspace.path("logs"), workspace.path("pids"))
        leftovers = children.end_leftovers()
        if leftovers:
            screen.say(f"Ended what a killed run left: {', '.join(leftovers)}")
        if wishes.fresh:
            workspace.clear()
        settings = find_settings(workspace, wishes, ports)
        options = RunOptions(wishes.seconds, wishes.bootstrap, wishes.host)
        children = Children(workspace.path("logs"), workspace.path("pids"))
        return DemoRun(workspace, settings, options, children, screen).run()


def find_settings(workspace: Workspace, wishes: Wishes, ports: Ports) -> Settings:
    """Return the directory's settings, or new ones, with ports that are nobody's; saves them.

    Raises SettingsConflictError where the wishes contradict earlier runs, OSError without a port.
    """
    settings = workspace.load_settings()
    if settings is None:
        settings = Settings(
            seed=DEFAULT_SEED if wishes.seed is None else wishes.seed,
            rate=wishes.rate or DEFAULT_RATE,
            acceleration=wishes.acceleration or DEFAULT_ACCELERATION,
            cluster_id=new_cluster_id(),
            broker_ports=[FIRST_BROKER_PORT + 2 * n for n in range(wishes.nodes or 1)],
            controller_ports=[FIRST_BROKER_PORT + 2 * n + 1 for n in range(wishes.nodes or 1)],
            dashboard_port=FIRST_DASHBOARD_PORT,
            registry_port=FIRST_REGISTRY_PORT,
            sql_port=FIRST_SQL_PORT,
            database_port=FIRST_DATABASE_PORT,
            connect_port=FIRST_CONNECT_PORT,
            exactly_once=bool(wishes.exactly_once),
            secure=bool(wishes.secure),
            warehouse=wishes.warehouse or ICEBERG,
            bucket_port=FIRST_BUCKET_PORT,
            warehouse_port=FIRST_WAREHOUSE_PORT,
            console_port=FIRST_CONSOLE_PORT,
        )
    for name in ("nodes", "seed", "rate", "acceleration", "exactly_once", "secure", "warehouse"):
        wish = getattr(wishes, name)
        if wish is not None and wish != getattr(settings, name):
            raise SettingsConflictError(
                f"{workspace.directory} holds a run with {name.replace('_', '-')} "
                f"{getattr(settings, name)}; "
                f"add --fresh to start again, or give another --directory"
            )
    if settings.registry_port is None or settings.sql_port is None:
        raise SettingsConflictError(
            f"{workspace.directory} holds a run whose results have another form, of before the "
            f"pipelines were SQL: add --fresh to start again, or give another --directory"
        )
    if wishes.port is None:
        settings.dashboard_port = ports.choose(settings.dashboard_port)
    else:
        settings.dashboard_port = wishes.port
        ports.claim(wishes.port)
    settings.broker_ports = [ports.choose(port) for port in settings.broker_ports]
    settings.controller_ports = [ports.choose(port) for port in settings.controller_ports]
    settings.registry_port = ports.choose(settings.registry_port)
    settings.sql_port = ports.choose(settings.sql_port)
    if settings.database_port is not None and settings.connect_port is not None:
        settings.database_port = ports.choose(settings.database_port)
        settings.connect_port = ports.choose(settings.connect_port)
    if settings.bucket_port is not None and settings.warehouse_port is not None:
        settings.bucket_port = ports.choose(settings.bucket_port)
        settings.warehouse_port = ports.choose(settings.warehouse_port)
    if settings.console_port is not None:
        settings.console_port = ports.choose(settings.console_port)
    workspace.save_settings(settings)
    return settings


class Ports:
    """Ports of loopback that are this demo's until `close`, or the end of its process."""

    def __init__(self) -> None:
        self._claims: dict[int, socket.socket] = {}

    def __enter__(self) -> Ports:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def choose(self, preferred: int) -> int:
        """Claim the first port from `preferred` on that is nobody's.

        Raises OSError if none of the next 200 is free.
        """
        for port in range(preferred, preferred + _PORTS_TRIED_MAX):
            if self.claim(port):
                if _is_free(port):
                    return port
                self._claims.pop(port).close()
        raise OSError(f"no free port from {preferred} to {preferred + _PORTS_TRIED_MAX - 1}")

    def claim(self, port: int) -> bool:
        """Keep other demos from choosing a port; False where it is chosen already."""
        claim = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        try:
            claim.bind((LOOPBACK, port))
        except OSError:
            claim.close()
            return False
        self._claims[port] = claim
        return True

    def close(self) -> None:
        """Give all of them back."""
        for claim in self._claims.values():
            claim.close()
        self._claims.clear()


def _is_free(port: int) -> bool:
    """Return whether nobody listens there now."""
    with socket.socket() as probe:
        # Connections of a demo that has just ended hold nobody up.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
    return True
