"""Rights that the connector's user lacks: each finding names the SQL that grants it.

Validation asks, so that no task starts only to fail with PostgreSQL's "permission denied". Rights
are those of CREATE PUBLICATION, ALTER PUBLICATION and CREATE_REPLICATION_SLOT (PostgreSQL 17).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import psycopg

from barnabas.connect.cdc.tables import Table
from barnabas.connect.connectors.postgres.server import failure, quoted
from barnabas.connect.connectors.postgres.settings import PostgresSettings

USER: Final = "database.user"
PUBLICATION: Final = "publication.autocreate.mode"
SIGNALS: Final = "signal.data.collection"
_SHOWN_MAX: Final = 20
"""Tables in a statement; the rest is `…`."""
_ROLE: Final = b"""
SELECT current_user, rolsuper, rolreplication OR EXISTS (
  SELECT 1 FROM pg_roles r WHERE r.rolname = 'rds_replication' AND pg_has_role(r.oid, 'MEMBER')),
  has_database_privilege(current_database(), 'CREATE')
FROM pg_roles WHERE rolname = current_user
"""
_TABLES: Final = b"""
SELECT c.oid, pg_get_userbyid(c.relowner), pg_has_role(c.relowner, 'USAGE'),
  has_schema_privilege(c.relnamespace, 'USAGE'), has_any_column_privilege(c.oid, 'SELECT')
FROM pg_class c WHERE c.oid = ANY(%s)
"""
_PUBLICATION: Final = b"""
SELECT puballtables, pg_get_userbyid(pubowner), pg_has_role(pubowner, 'USAGE'),
  ARRAY(SELECT prrelid FROM pg_publication_rel WHERE prpubid = p.oid)
FROM pg_publication p WHERE pubname = %s
"""
_SIGNAL_TABLE: Final = b"""
SELECT has_table_privilege(c.oid, 'INSERT'), has_table_privilege(c.oid, 'DELETE')
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = %s AND c.relname = %s AND has_schema_privilege(n.oid, 'USAGE')
"""
_WITHOUT_SNAPSHOT: Final = ("no_data", "never")


@dataclass(slots=True, frozen=True)
class _Role:
    name: str
    is_super: bool
    may_replicate: bool
    may_create: bool
    """In the database."""


@dataclass(slots=True, frozen=True)
class _Access:
    """The user's rights on a table."""

    table: Table
    owner: str
    owns: bool
    enters: bool
    """Its schema."""
    reads: bool


def missing_rights(
    connection: psycopg.Connection[Any], settings: PostgresSettings, tables: Sequence[Table]
) -> dict[str, list[str]]:
    """Return findings by the names of settings. Raises ConnectError."""
    try:
        row = connection.execute(_ROLE).fetchone()
        assert row is not None
        role = _Role(*row)
        known = {table.oid: table for table in tables}
        rows = connection.execute(_TABLES, (list(known),)).fetchall()
        access = sorted(
            (_Access(known[oid], *rest) for oid, *rest in rows),
            key=lambda one: one.table.full_name,
        )
        user = [*_of_role(role), *_of_tables(role, settings, access)]
        publication = _of_publication(connection, role, settings, access)
        signals = _of_signals(connection, role, settings)
    except psycopg.Error as error:
        raise failure(error) from error
    every = {USER: user, PUBLICATION: publication, SIGNALS: signals}
    return {name: texts for name, texts in every.items() if texts}


def _of_role(role: _Role) -> list[str]:
    if role.is_super or role.may_replicate:
        return []
    return [f"The user {role.name} may not replicate: ALTER ROLE {quoted(role.name)} REPLICATION;"]


def _of_tables(role: _Role, settings: PostgresSettings, access: Sequence[_Access]) -> list[str]:
    if str(settings["snapshot.mode"]).lower() in _WITHOUT_SNAPSHOT:
        return []
    closed = [one for one in access if not (one.enters and one.reads)]
    if not closed:
        return []
    schemas = sorted({one.table.schema for one in closed if not one.enters})
    unread = [one.table for one in closed if not one.reads]
    to = f"TO {quoted(role.name)};"
    grants = [f"GRANT USAGE ON SCHEMA {', '.join(map(quoted, schemas))} {to}"] if schemas else []
    if unread:
        grants.append(f"GRANT SELECT ON TABLE {_sql(unread)} {to}")
    names = _names(one.table for one in closed)
    return [f"The user {role.name} may not read {names}: {' '.join(grants)}"]


def _of_publication(
    connection: psycopg.Connection[Any],
    role: _Role,
    settings: PostgresSettings,
    access: Sequence[_Access],
) -> list[str]:
    name, mode = settings["publication.name"], str(settings[PUBLICATION]).lower()
    tables = [one.table for one in access]
    row = connection.execute(_PUBLICATION, (name,)).fetchone()
    if row is not None:
        has_all, owner, owns, there = row
        if mode != "filtered" or has_all or set(there) == {table.oid for table in tables}:
            return []
        if owns and all(one.owns for one in access):
            return []
        return [
            (
                f"The publication {name} has other tables, and only its owner {owner}, who must "
                f"also own the tables, can change it: ALTER PUBLICATION {quoted(name)} SET TABLE "
                f"{_sql(tables)};"
            )
        ]
    make = f"CREATE PUBLICATION {quoted(name)}"
    if mode == "disabled":
        target = f"FOR TABLE {_sql(tables)}" if tables else "FOR ALL TABLES"
        return [f"The publication {name} does not exist: {make} {target};"]
    findings = []
    if not role.may_create:
        database = quoted(settings.database)
        findings.append(
            f"The user {role.name} may not make the publication {name}: "
            f"GRANT CREATE ON DATABASE {database} TO {quoted(role.name)};"
        )
    if mode == "all_tables" and not role.is_super:
        findings.append(
            f"Only a superuser makes a publication of all tables: let one run {make} FOR ALL "
            f"TABLES; or set {PUBLICATION}=filtered"
        )
    if mode == "filtered" and not tables:
        findings.append("No table fits the include and exclude lists: there is nothing to publish")
    foreign = [one for one in access if not one.owns]
    if mode == "filtered" and foreign:
        findings.append(_to_own(role, make, foreign, tables))
    return findings


def _to_own(role: _Role, make: str, foreign: Sequence[_Access], tables: Sequence[Table]) -> str:
    """A publication of single tables needs their owner: two ways to get one."""
    group = quoted(f"{role.name}_owners")
    members = ", ".join(quoted(name) for name in sorted({role.name, *(o.owner for o in foreign)}))
    alter = " ".join(
        f"ALTER TABLE {_sql([one.table])} OWNER TO {group};" for one in foreign[:_SHOWN_MAX]
    )
    more = " …" if len(foreign) > _SHOWN_MAX else ""
    return (
        f"Only the owner of {_names(one.table for one in foreign)} may publish it, which "
        f"{role.name} is not. Either let the owner run {make} FOR TABLE {_sql(tables)}; or "
        "share the ownership: "
        f"CREATE ROLE {group}; GRANT {group} TO {members}; {alter}{more}"
    )


def _of_signals(
    connection: psycopg.Connection[Any], role: _Role, settings: PostgresSettings
) -> list[str]:
    if settings.signal_table is None or settings["read.only"]:
        return []
    row = connection.execute(_SIGNAL_TABLE, settings.signal_table).fetchone()
    if row is None:  # the task logs that it does not exist
        return []
    inserts, deletes = row
    needed = [("INSERT", inserts)]
    if settings.marks_are_deleted:
        needed.append(("DELETE", deletes))
    lacking = ", ".join(right for right, is_there in needed if not is_there)
    if not lacking:
        return []
    schema, name = settings.signal_table
    return [
        (
            f"The user {role.name} may not write to the table of signals: GRANT {lacking} ON TABLE "
            f"{quoted(schema)}.{quoted(name)} TO {quoted(role.name)};"
        )
    ]


def _sql(tables: Sequence[Table]) -> str:
    shown = [f"{quoted(one.schema)}.{quoted(one.name)}" for one in tables[:_SHOWN_MAX]]
    return ", ".join(shown) + (", …" if len(tables) > _SHOWN_MAX else "")


def _names(tables: Any) -> str:
    names = [table.full_name for table in tables]
    more = len(names) - _SHOWN_MAX
    return ", ".join(names[:_SHOWN_MAX]) + (f" and {more} more" if more > 0 else "")
