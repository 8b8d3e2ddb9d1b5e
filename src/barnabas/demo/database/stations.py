"""The stations' table in PostgreSQL: made, filled, changed, and read for the closing figures."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

import psycopg
from psycopg import sql
from psycopg.rows import dict_row

from barnabas.demo.database.place import CAPTURE, OPERATOR, PASSWORD_VARIABLE, Place
from barnabas.demo.database.server import SUPERUSER
from barnabas.demo.topics import Station

DATABASE_NAME: Final = "charging"
TABLE: Final = "stations"
PUBLICATION: Final = "stations"
_CONNECT_SECONDS: Final = 15
"""The server is on this machine: only a busy one takes longer than an instant."""
_RETRY_SECONDS: Final = 0.2

_CREATE: Final = """
CREATE TABLE IF NOT EXISTS stations (
    station_id text PRIMARY KEY,
    name text NOT NULL,
    city text NOT NULL,
    power_w bigint NOT NULL,
    since_ms bigint NOT NULL,
    firmware text NOT NULL
)
"""
_INSERT: Final = """
INSERT INTO stations AS old (station_id, name, city, power_w, since_ms, firmware)
VALUES (%(station_id)s, %(name)s, %(city)s, %(power_w)s, %(since_ms)s, %(firmware)s)
"""
_ADD: Final = f"{_INSERT} ON CONFLICT (station_id) DO NOTHING"
_PUT: Final = f"""
{_INSERT} ON CONFLICT (station_id) DO UPDATE
SET (name, city, power_w, since_ms, firmware) =
    (excluded.name, excluded.city, excluded.power_w, excluded.since_ms, excluded.firmware)
WHERE (old.name, old.city, old.power_w, old.since_ms, old.firmware) IS DISTINCT FROM
    (excluded.name, excluded.city, excluded.power_w, excluded.since_ms, excluded.firmware)
"""


class DatabaseError(Exception):
    """PostgreSQL does not do what is asked; the message is its own."""


def prepare(place: Place, port: int) -> None:
    """Make roles, database, table and publication where they are missing. Raises DatabaseError."""
    admin = place.password("superuser")
    with _connection(port, SUPERUSER, admin, SUPERUSER) as connection:
        for role, rights in ((OPERATOR, "LOGIN"), (CAPTURE, "LOGIN REPLICATION")):
            if not _has(connection, "pg_roles WHERE rolname", role):
                _run(
                    connection,
                    f"CREATE ROLE {{}} {rights} PASSWORD {{}}",
                    sql.Identifier(role),
                    sql.Literal(place.password(role)),
                )
        if not _has(connection, "pg_database WHERE datname", DATABASE_NAME):
            name, owner = sql.Identifier(DATABASE_NAME), sql.Identifier(OPERATOR)
            _run(connection, "CREATE DATABASE {} OWNER {}", name, owner)
    with _connection(port, OPERATOR, place.password(OPERATOR)) as connection:
        _run(connection, _CREATE)
        _run(connection, "GRANT SELECT ON stations TO {}", sql.Identifier(CAPTURE))
        if not _has(connection, "pg_publication WHERE pubname", PUBLICATION):
            name = sql.Identifier(PUBLICATION)
            _run(connection, "CREATE PUBLICATION {} FOR TABLE stations", name)


def answers(place: Place, port: int) -> bool:
    """Return whether the server takes connections, asked once."""
    try:
        with _connection(port, SUPERUSER, place.password("superuser"), SUPERUSER):
            return True
    except DatabaseError:
        return False


class StationsInDatabase:
    """The stations' table, as its operator uses it: few changes, a connection for each."""

    def __init__(self, port: int, password: str) -> None:
        self._port = port
        self._password = password

    @classmethod
    def of_environment(cls, port: int) -> StationsInDatabase:
        """As the demo starts its parts. Raises OSError, KeyError."""
        with open(os.environ[PASSWORD_VARIABLE], encoding="utf-8") as file:
            return cls(port, file.read())

    def add(self, stations: Sequence[Station]) -> None:
        """Insert the rows that are missing. Raises DatabaseError."""
        self._execute(_ADD, stations)

    def put(self, stations: Sequence[Station]) -> None:
        """Insert rows, or change those that differ. Raises DatabaseError."""
        self._execute(_PUT, stations)

    def _execute(self, statement: str, stations: Sequence[Station]) -> None:
        with (
            _connection(self._port, OPERATOR, self._password) as connection,
            connection.transaction(),
            connection.cursor() as cursor,
        ):
            cursor.executemany(statement.encode(), stations)

    def put_patiently(self, stations: Sequence[Station], seconds_max: float) -> None:
        """Do it again while the server is away. Raises DatabaseError."""
        deadline = time.monotonic() + seconds_max
        while True:
            try:
                self.put(stations)
            except DatabaseError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(_RETRY_SECONDS)
            else:
                return

    def rows(self) -> dict[str, dict[str, Any]]:
        """Return all rows, by id. Raises DatabaseError."""
        with _connection(self._port, OPERATOR, self._password) as connection:
            cursor = connection.cursor(row_factory=dict_row)
            cursor.execute(b"SELECT * FROM stations")
            return {row["station_id"]: row for row in cursor}


@contextmanager
def _connection(
    port: int, user: str, password: str, database: str = DATABASE_NAME
) -> Iterator[psycopg.Connection[Any]]:
    try:
        with psycopg.connect(
            host="127.0.0.1",
            port=port,
            user=user,
            password=password,
            dbname=database,
            connect_timeout=_CONNECT_SECONDS,
            autocommit=True,
        ) as connection:
            yield connection
    except psycopg.Error as error:
        raise DatabaseError(f"PostgreSQL: {str(error).strip()}") from error


def _has(connection: psycopg.Connection[Any], where: str, name: str) -> bool:
    row = connection.execute(f"SELECT 1 FROM {where} = %s".encode(), (name,))
    return row.fetchone() is not None


def _run(connection: psycopg.Connection[Any], text: str, *values: sql.Composable) -> None:
    connection.execute(sql.SQL(text).format(*values))
