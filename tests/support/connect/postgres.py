"""A PostgreSQL of a test's own: made by initdb, on a free port, stopped in any case.

It writes its log for logical replication. PostgreSQL refuses to run as root: there it runs as the
user `postgres`. Its superuser is `postgres`, over TCP with the password of the server.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import os
import pwd
import secrets
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import psycopg
import pytest

from support.node_process import wait_until
from support.patience import PATIENCE_S
from support.ports import HOST, free_port

USER = "postgres"
DATABASE = "postgres"
SETTINGS = {
    "wal_level": "logical",
    "listen_addresses": HOST,
    "fsync": "off",  # processes are killed here, machines are not
    "full_page_writes": "off",
    "max_replication_slots": "40",
    "max_wal_senders": "40",
    "max_connections": "100",
    "shared_buffers": "32MB",
    "timezone": "UTC",
    "log_min_messages": "warning",
}
PASSWORD = secrets.token_hex(8)
"""Of all servers of this process."""
PR_SET_PDEATHSIG = 1


def _program(name: str) -> str | None:
    found = shutil.which(name)
    if found is None:  # Debian keeps them out of the way
        folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
        return next((str(f / name) for f in folders if (f / name).exists()), None)
    return found


def _owner() -> str | None:
    """The user that PostgreSQL runs as; None is ourselves."""
    return USER if os.geteuid() == 0 else None


def _why_not() -> str | None:
    if _program("postgres") is None or _program("initdb") is None:
        return "needs PostgreSQL's programs postgres and initdb"
    if (owner := _owner()) is not None:
        try:
            pwd.getpwnam(owner)
        except KeyError:
            return "needs a user postgres, since PostgreSQL does not run as root"
    return None


MISSING = _why_not()
needs_postgres = pytest.mark.skipif(MISSING is not None, reason=MISSING or "")


class Postgres:
    """A server. Its folder is removed at `close`."""

    def __init__(self, **settings: str) -> None:
        if MISSING is not None:
            pytest.skip(MISSING)
        self.password = PASSWORD
        self.port = free_port()
        self.settings = SETTINGS | settings
        self.folder = Path(tempfile.mkdtemp(prefix="barnabas-postgres-"))
        self._process: subprocess.Popen[bytes] | None = None
        try:
            self._make()
            self.start()
        except BaseException:
            self.close()
            raise

    @property
    def url(self) -> str:
        """libpq's URL of the superuser, with the password."""
        return f"postgresql://{USER}:{self.password}@{HOST}:{self.port}/{DATABASE}"

    @property
    def jdbc_url(self) -> str:
        """JDBC's URL; user and password are given beside it."""
        return f"jdbc:postgresql://{HOST}:{self.port}/{DATABASE}"

    def connect(self, database: str = DATABASE) -> psycopg.Connection[Any]:
        """A connection in autocommit mode."""
        return psycopg.connect(
            host=HOST,
            port=self.port,
            user=USER,
            password=self.password,
            dbname=database,
            autocommit=True,
        )

    def run(self, *statements: str, database: str = DATABASE) -> list[tuple[Any, ...]]:
        """Run statements, each in a separate transaction; the rows of the last."""
        rows: list[tuple[Any, ...]] = []
        with contextlib.closing(self.connect(database)) as connection:
            for statement in statements:
                cursor = connection.execute(statement.encode())
                rows = cursor.fetchall() if cursor.description else []
        return rows

    def database(self, name: str) -> None:
        """Make an empty database."""
        self.run(f'CREATE DATABASE "{name}" TEMPLATE template0')

    def drop_database(self, name: str) -> None:
        """Drop a database with its slots, ending who uses them."""
        self.drop_slots("database", name)
        self.run(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')

    def drop_slots(self, column: str, value: str) -> None:
        """Drop the replication slots whose `column` has this value, ending who reads them.

        A reader that has closed its connection may hold its slot for a moment more.
        """
        slots = f"FROM pg_replication_slots WHERE {column} = '{value}'"

        def dropped() -> bool:
            self.run(f"SELECT pg_terminate_backend(active_pid) {slots} AND active_pid IS NOT NULL")
            try:
                self.run(f"SELECT pg_drop_replication_slot(slot_name) {slots}")
            except psycopg.errors.ObjectInUse:
                return False
            return True

        wait_until(dropped, f"a drop of the slots of {value}", shown=self.log)

    @contextlib.contextmanager
    def jdbc_database(self, name: str) -> Iterator[dict[str, str]]:
        """Make an empty database, and drop it in the end. Yields the settings of its connection."""
        self.database(name)
        try:
            yield {
                "connection.url": self.jdbc_url.rpartition("/")[0] + f"/{name}",
                "connection.user": USER,
                "connection.password": self.password,
            }
        finally:
            self.run(f"DROP DATABASE {name} WITH (FORCE)")

    def start(self) -> None:
        """Start it, also after `stop` and `crash`; returns once it takes connections."""
        options = [part for item in self.settings.items() for part in ("-c", "=".join(item))]
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [
                    str(_program("postgres")),
                    *("-D", str(self._data), "-p", str(self.port), "-k", str(self.folder)),
                    *options,
                ],
                cwd=self.folder,
                user=_owner(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # a test's Ctrl-C is not its
                preexec_fn=_die_with_parent,
            )
        wait_until(self._answers, "the start of PostgreSQL", shown=self.log)

    def _answers(self) -> bool:
        try:
            self.connect().close()
        except psycopg.OperationalError:
            assert self._process.poll() is None, self.log()
            return False
        return True

    def stop(self) -> None:
        """Shut it down; sessions are ended."""
        self._end(signal.SIGINT)

    def crash(self) -> None:
        """End it at once; the next start recovers from its write-ahead log."""
        self._end(signal.SIGQUIT)

    def log(self) -> str:
        """The end of what it has written to its log."""
        return (self.folder / "log").read_text(errors="replace")[-4000:]

    def close(self) -> None:
        """Stop it and remove its folder."""
        self._end(signal.SIGQUIT)
        shutil.rmtree(self.folder, ignore_errors=True)

    @property
    def _data(self) -> Path:
        return self.folder / "data"

    def _make(self) -> None:
        shutil.chown(self.folder, _owner() or os.geteuid())
        # It keeps owners and rights, which PostgreSQL looks at.
        subprocess.run(["cp", "-a", str(_template()), str(self._data)], check=True)

    def _end(self, number: signal.Signals) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.send_signal(number)
        try:
            process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@cache
def _template() -> Path:
    """The data of a server that has never run, which initdb takes seconds for."""
    folder = Path(tempfile.mkdtemp(prefix="barnabas-initdb-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    owner = _owner()
    secret = folder / "password"
    secret.write_text(PASSWORD)
    if owner is not None:
        shutil.chown(folder, owner)
        shutil.chown(secret, owner)
    made = subprocess.run(
        [
            str(_program("initdb")),
            *("-D", str(folder / "data"), "-U", USER, "--pwfile", str(secret)),
            *("--auth-host=scram-sha-256", "--auth-local=trust", "--no-sync"),
            *("-E", "UTF8", "--locale=C"),
        ],
        cwd=folder,
        user=owner,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )
    assert made.returncode == 0, made.stderr
    with (folder / "data" / "pg_hba.conf").open("a") as rules:
        rules.write("host replication all 127.0.0.1/32 scram-sha-256\n")
    return folder / "data"


def _die_with_parent() -> None:
    """Tests that are killed leave no server behind."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGQUIT)


@contextlib.contextmanager
def postgres(**settings: str) -> Iterator[Postgres]:
    """A server for the length of a block; skips the test where there is no PostgreSQL."""
    server = Postgres(**settings)
    try:
        yield server
    finally:
        server.close()


def insert_many(
    connection: psycopg.Connection[Any], table: str, rows: Sequence[Sequence[Any]]
) -> None:
    """Fill a table by COPY."""
    with (
        connection.cursor() as cursor,
        cursor.copy(f"COPY {table} FROM STDIN".encode()) as copy,
    ):
        for row in rows:
            copy.write_row(row)


@pytest.fixture(scope="session")
def database_server() -> Iterator[Postgres]:
    """One server for many tests: each makes its own databases and slots."""
    with postgres() as server:
        yield server
