"""Replication slots and publications: made where they are missing, followed and dropped."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import psycopg

from barnabas.connect.cdc.tables import Table
from barnabas.connect.connectors.postgres.positions import lsn_of
from barnabas.connect.connectors.postgres.server import (
    command,
    connect_for_replication,
    quoted,
)
from barnabas.connect.connectors.postgres.settings import PostgresSettings
from barnabas.schemas.data.errors import ConnectError, RetriableError

_log = logging.getLogger(__name__)


@dataclass(slots=True, frozen=True)
class Slot:
    """`confirmed` is where it begins; `is_lost`: the server has removed what it stood for."""

    confirmed: int
    is_lost: bool


def check_server(connection: psycopg.Connection[Any]) -> None:
    """Raises ConnectError if the server writes no log for logical replication."""
    row = connection.execute(b"SHOW wal_level").fetchone()
    if row is not None and row[0] != "logical":
        raise ConnectError(
            f"PostgreSQL's setting wal_level is {row[0]}: change capture needs logical"
        )


def slot_of(connection: psycopg.Connection[Any], settings: PostgresSettings) -> Slot | None:
    """Return the slot, or None. Raises ConnectError if it is another's kind."""
    name = settings["slot.name"]
    row = connection.execute(
        b"SELECT plugin, database, confirmed_flush_lsn::text, coalesce(wal_status, '')"
        b" FROM pg_replication_slots WHERE slot_name = %s",
        (name,),
    ).fetchone()
    if row is None:
        return None
    plugin, database, confirmed, status = row
    if plugin != "pgoutput" or database != settings.database:
        raise ConnectError(
            f"The replication slot {name} is of plugin {plugin} and database {database}: "
            f"it must be of plugin pgoutput and database {settings.database}"
        )
    if confirmed is None:
        raise RetriableError(f"The replication slot {name} is still being created")
    return Slot(lsn_of(confirmed), status == "lost")


def xmin_of(connection: psycopg.Connection[Any], settings: PostgresSettings) -> int | None:
    """Return the oldest transaction that the slot keeps the catalog for."""
    row = connection.execute(
        b"SELECT catalog_xmin::text::bigint FROM pg_replication_slots WHERE slot_name = %s",
        (settings["slot.name"],),
    ).fetchone()
    return None if row is None else row[0]


def make_slot(settings: PostgresSettings) -> Slot:
    """Make the slot; it begins at the log's present end."""
    connection = connect_for_replication(settings)
    try:
        name = quoted(settings["slot.name"])
        rows = command(
            connection, f"CREATE_REPLICATION_SLOT {name} LOGICAL pgoutput NOEXPORT_SNAPSHOT"
        )
        return Slot(lsn_of(rows[0][1] or "0/0"), is_lost=False)
    finally:
        connection.finish()


def drop_slot(settings: PostgresSettings) -> None:
    """Drop the slot if it is there."""
    connection = connect_for_replication(settings)
    try:
        command(connection, f"DROP_REPLICATION_SLOT {quoted(settings['slot.name'])} WAIT")
    finally:
        connection.finish()


def prepare_publication(
    connection: psycopg.Connection[Any], settings: PostgresSettings, tables: Sequence[Table]
) -> None:
    """Make the publication, or let a filtered one have the wanted tables. Raises ConnectError."""
    name, mode = settings["publication.name"], settings["publication.autocreate.mode"]
    root = "true" if settings["publish.via.partition.root"] else "false"
    options = f"WITH (publish_via_partition_root = {root})"
    row = connection.execute(
        b"SELECT puballtables FROM pg_publication WHERE pubname = %s", (name,)
    ).fetchone()
    if row is None:
        if mode == "disabled":
            raise ConnectError(
                f"The publication {name} does not exist, and "
                "publication.autocreate.mode=disabled prevents its creation"
            )
        target = {"all_tables": " FOR ALL TABLES", "no_tables": ""}.get(mode)
        if target is None:
            target = f" FOR TABLE {_listed(tables)}"
        _run(connection, f"CREATE PUBLICATION {quoted(name)}{target} {options}")
    elif mode == "filtered" and not row[0]:
        there = connection.execute(
            b"SELECT prrelid FROM pg_publication_rel r JOIN pg_publication p ON p.oid = r.prpubid"
            b" WHERE pubname = %s",
            (name,),
        ).fetchall()
        if {number for (number,) in there} != {table.oid for table in tables}:
            _run(connection, f"ALTER PUBLICATION {quoted(name)} SET TABLE {_listed(tables)}")


def check_signals(connection: psycopg.Connection[Any], settings: PostgresSettings) -> None:
    """Raises ConnectError if the log does not have the table of signals."""
    if settings.signal_table is None:
        return
    name = ".".join(settings.signal_table)
    there = connection.execute(
        b"SELECT 1 FROM pg_tables WHERE schemaname = %s AND tablename = %s", settings.signal_table
    ).fetchone()
    if there is None:
        _log.warning("The signal table %s does not exist, so no signals are read from it", name)
        return
    row = connection.execute(
        b"SELECT 1 FROM pg_publication_tables"
        b" WHERE pubname = %s AND schemaname = %s AND tablename = %s",
        (settings["publication.name"], *settings.signal_table),
    ).fetchone()
    if row is None:
        raise ConnectError(
            f"The publication {settings['publication.name']} does not have the table of signals"
            f" {name}: no signal would be read there"
        )


def _listed(tables: Sequence[Table]) -> str:
    if not tables:
        raise ConnectError(
            "No table fits the include and exclude lists: a filtered publication needs one"
        )
    return ", ".join(f"{quoted(table.schema)}.{quoted(table.name)}" for table in tables)


def _run(connection: psycopg.Connection[Any], statement: str) -> None:
    connection.execute(statement.encode())
