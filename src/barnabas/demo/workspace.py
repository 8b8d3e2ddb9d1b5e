"""The demo's directory: what is kept in it, and the lock that keeps a second run out.

broker/            server.properties and the broker's log directory; broker-<n>/ with several
warehouse/         Parquet tables, or
bucket/            the S3 server's settings and keys, and the objects of the bucket with Iceberg's
checkpoints/       Spark's checkpoints
connect/           the workers' and their connectors' properties, and the offsets of sources
functions/         the functions of SQL that the statements use
generators/        the generators' state and truth
postgres/          PostgreSQL's cluster, and the passwords of its users
logs/  pids/       one file per child process
demo.json          what must stay the same from run to run (ports, seed, cluster id)
"""

from __future__ import annotations

import base64
import contextlib
import fcntl
import json
import os
import shutil
import uuid
from dataclasses import asdict, dataclass
from typing import IO

SETTINGS_FILE = "demo.json"
LOCK_FILE = "demo.lock"
FIRST_BROKER_PORT = 19092
FIRST_DASHBOARD_PORT = 8088
FIRST_REGISTRY_PORT = 18081
FIRST_SQL_PORT = 18088
FIRST_CONNECT_PORT = 18083
FIRST_DATABASE_PORT = 15432
FIRST_BUCKET_PORT = 19000
FIRST_WAREHOUSE_PORT = 18085
FIRST_CONSOLE_PORT = 8090
PARQUET, ICEBERG = "parquet", "iceberg"


class WorkspaceBusyError(Exception):
    """Another demo runs in this directory; the message names its pid."""


@dataclass(slots=True)
class Settings:
    """The settings that all runs in one directory share."""

    seed: int
    rate: int
    acceleration: int
    cluster_id: str
    broker_ports: list[int]
    """One for each node; node n has the nth."""
    controller_ports: list[int]
    dashboard_port: int
    registry_port: int | None = None
    """None in a directory of before there was a schema registry."""
    sql_port: int | None = None
    """None in a directory of before the pipelines were statements of SQL."""
    exactly_once: bool = False
    """True if the pipeline writes its results in transactions."""
    secure: bool = False
    """True if its cluster wants TLS and logins, and each part has its own rights."""
    database_port: int | None = None
    """None in a directory of before the stations could be in PostgreSQL: there they are not."""
    connect_port: int | None = None
    """The port of the worker of connectors. """
    warehouse: str = PARQUET
    """PARQUET or ICEBERG, which is what is tried first."""
    bucket_port: int | None = None
    """The port of the S3 server with Iceberg's tables. """
    warehouse_port: int | None = None
    """The port of the worker of the warehouse's connector. """
    console_port: int | None = None
    """None in a directory of before there was a console, whose users may not include its own."""
    database_directory: str | None = None
    """PostgreSQL's own; None before it is chosen."""
    bounded_from_seconds: int | None = None
    """The beginning of an unfinished bounded run; None without one."""

    @property
    def nodes(self) -> int:
        """The number of the cluster's nodes."""
        return len(self.broker_ports)

    @property
    def registry_url(self) -> str:
        """The schema registry's address."""
        return f"http://127.0.0.1:{self.registry_port}"

    @property
    def sql_url(self) -> str:
        """The SQL server's address."""
        return f"http://127.0.0.1:{self.sql_port}"

    @property
    def connect_url(self) -> str:
        """The address of the worker of connectors."""
        return f"http://127.0.0.1:{self.connect_port}"

    @property
    def warehouse_url(self) -> str:
        """The address of the worker of the warehouse's connector."""
        return f"http://127.0.0.1:{self.warehouse_port}"

    @property
    def console_url(self) -> str:
        """The console's address. It has no users, so it is always on loopback."""
        return f"http://127.0.0.1:{self.console_port}"

    @property
    def bootstrap(self) -> str:
        """The cluster's bootstrap servers."""
        return ",".join(f"127.0.0.1:{port}" for port in self.broker_ports)


NODES_MAX = 5
DATA_NAMES = (
    *("broker", *(f"broker-{node_id}" for node_id in range(1, NODES_MAX + 1))),
    *(
        "bucket",
        "checkpoints",
        "connect",
        "functions",
        "generators",
        "logs",
        "pids",
        "pipeline",
        "postgres",
        "security",
        "warehouse",
    ),
)


class Workspace:
    """Paths and settings of one demo directory, locked while open."""

    def __init__(self, directory: str) -> None:
        self.directory = os.path.abspath(directory)
        self._lock: IO[str] | None = None

    def path(self, *parts: str) -> str:
        """Return a path inside the directory."""
        return os.path.join(self.directory, *parts)

    def lock(self) -> None:
        """Create the directory and lock it; the lock ends with this process, however it ends.

        Raises WorkspaceBusyError where another demo holds it.
        """
        os.makedirs(self.directory, exist_ok=True)
        lock = open(self.path(LOCK_FILE), "a+", encoding="utf-8")  # noqa: SIM115 - held open
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.seek(0)
            holder = lock.read().strip() or "unknown"
            lock.close()
            raise WorkspaceBusyError(
                f"a demo already runs in {self.directory} (pid {holder}); end it, or give another "
                "--directory"
            ) from None
        lock.truncate(0)
        lock.write(str(os.getpid()))
        lock.flush()
        self._lock = lock

    def close(self) -> None:
        """Give the directory free."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def load_settings(self) -> Settings | None:
        """Return the settings of earlier runs, None in a new directory."""
        path = self.path(SETTINGS_FILE)
        if not os.path.exists(path):
            return None
        with open(path, encoding="utf-8") as source:
            content = json.load(source)
        for kind in ("broker", "controller"):  # of before there could be several
            if f"{kind}_port" in content:
                content[f"{kind}_ports"] = [content.pop(f"{kind}_port")]
        return Settings(**content)

    def save_settings(self, settings: Settings) -> None:
        """Write the settings so that a kill leaves the old or the new ones."""
        path = self.path(SETTINGS_FILE)
        with open(f"{path}.new", "w", encoding="utf-8") as out:
            json.dump(asdict(settings), out, indent=2)
            out.flush()
            os.fsync(out.fileno())
        os.replace(f"{path}.new", path)

    def clear(self) -> None:
        """Remove what earlier runs left, and nothing that is not the demo's."""
        with contextlib.suppress(TypeError, ValueError):  # settings of another version
            settings = self.load_settings()
            if settings is not None and settings.database_directory is not None:
                shutil.rmtree(settings.database_directory, ignore_errors=True)
        for name in DATA_NAMES:
            if os.path.isdir(self.path(name)):
                shutil.rmtree(self.path(name))
        if os.path.exists(self.path(SETTINGS_FILE)):
            os.remove(self.path(SETTINGS_FILE))


def new_cluster_id() -> str:
    """Return a random cluster id in Kafka's form: 22 characters of URL-safe base64."""
    while True:
        text = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        if not text.startswith("-"):  # a tool would take it for an option
            return text
