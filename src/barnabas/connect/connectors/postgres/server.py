"""Connections to the server, and what its errors mean."""

from __future__ import annotations

from typing import Any, Final

import psycopg
from psycopg import pq
from psycopg.pq.abc import PGconn

from barnabas.connect.connectors.postgres.settings import PostgresSettings
from barnabas.schemas.data.errors import ConnectError, RetriableError

TEXT_SETTINGS: Final = {
    "datestyle": "ISO,YMD",
    "intervalstyle": "postgres",
    "timezone": "UTC",
    "extra_float_digits": "3",
    "bytea_output": "hex",
    "client_encoding": "UTF8",
    "lc_monetary": "C",
}
"""The text output that `types` reads."""
_LASTING: Final = (
    "password authentication failed",
    "no password supplied",
    "no pg_hba.conf entry",
    "does not exist",
    "must be superuser",
    "permission denied",
    "server does not support SSL",
    "certificate",
)
_CLASSES_THAT_HEAL: Final = ("08", "53", "57", "40", "55")
"""SQLSTATE's classes: connection, resources, operator, rollback, object in use."""


def conninfo(settings: PostgresSettings, **more: Any) -> str:
    """Return libpq's connection string, with the password."""
    options = " ".join(f"-c {name}={value}" for name, value in TEXT_SETTINGS.items())
    timeout_s = -(-int(settings["connect.timeout.ms"]) // 1000)
    parts = {
        "host": settings["database.hostname"],
        "port": settings["database.port"],
        "user": settings["database.user"],
        "password": settings["database.password"].value or None,
        "dbname": settings.database,
        "sslmode": settings["database.sslmode"],
        "sslcert": settings["database.sslcert"],
        "sslkey": settings["database.sslkey"],
        "sslrootcert": settings["database.sslrootcert"],
        "sslpassword": getattr(settings["database.sslpassword"], "value", None),
        "keepalives": int(settings["database.tcpKeepAlive"]),
        "connect_timeout": max(2, timeout_s),
        "application_name": f"barnabas {settings.topic_prefix}",
        "options": options,
        **more,
    }
    return psycopg.conninfo.make_conninfo(
        **{name: value for name, value in parts.items() if value is not None}
    )


def connect(settings: PostgresSettings) -> psycopg.Connection[Any]:
    """Open an ordinary connection, in autocommit mode. Raises RetriableError, ConnectError."""
    try:
        connection = psycopg.connect(conninfo(settings), autocommit=True, prepare_threshold=None)
    except psycopg.Error as error:
        raise failure(error) from error
    try:
        if statements := settings["database.initial.statements"]:
            connection.execute(statements.encode())
    except psycopg.Error as error:
        connection.close()
        raise failure(error) from error
    return connection


def connect_for_replication(settings: PostgresSettings) -> PGconn:
    """Open a connection that speaks replication. Raises RetriableError, ConnectError."""
    connection = pq.PGconn.connect(conninfo(settings, replication="database").encode())
    if connection.status != pq.ConnStatus.OK:
        text = connection.get_error_message()
        connection.finish()
        raise of_text(text)
    return connection


def command(connection: PGconn, text: str) -> list[list[str | None]]:
    """Run a command on a replication connection. Raises RetriableError, ConnectError."""
    result = connection.exec_(text.encode())
    if result.status in (pq.ExecStatus.COMMAND_OK, pq.ExecStatus.COPY_BOTH):
        return []
    if result.status != pq.ExecStatus.TUPLES_OK:
        state = (result.error_field(pq.DiagnosticField.SQLSTATE) or b"").decode()
        raise of_text(result.get_error_message(), state)
    return [
        [
            None if (value := result.get_value(row, column)) is None else value.decode()
            for column in range(result.nfields)
        ]
        for row in range(result.ntuples)
    ]


def failure(error: psycopg.Error) -> ConnectError:
    """Return what an error of psycopg means."""
    return of_text(str(error), error.sqlstate or "", is_lost=isinstance(error, _LOST))


_LOST: Final = (psycopg.OperationalError, psycopg.InterfaceError)


def of_text(text: str, state: str = "", *, is_lost: bool = True) -> ConnectError:
    """Return what a server's or libpq's message means: without a state, a connection was lost."""
    text = f"PostgreSQL: {' '.join(text.split())}"
    if state:
        heals = state.startswith(_CLASSES_THAT_HEAL) and state not in ("55000", "57014")
    else:
        heals = is_lost and not any(sign in text for sign in _LASTING)
    return RetriableError(text) if heals else ConnectError(text)


def quoted(name: str) -> str:
    """Return an identifier in quotes."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """Return a text in quotes."""
    return "'" + text.replace("'", "''") + "'"
