"""The PostgreSQL that other tests are given."""

from __future__ import annotations

import psycopg
import pytest

from support.connect.postgres import HOST, Postgres, insert_many, postgres


def test_it_replicates_logically_and_wants_its_password(database_server: Postgres) -> None:
    assert database_server.run("SHOW wal_level") == [("logical",)]
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        psycopg.connect(
            host=HOST, port=database_server.port, user="postgres", password="wrong", dbname="x"
        )


def test_what_was_committed_outlives_a_crash() -> None:
    with postgres() as server:
        server.run("CREATE TABLE kept (id int)")
        with server.connect() as connection:
            insert_many(connection, "kept", [(1,), (2,)])
        server.crash()
        server.start()
        assert server.run("SELECT id FROM kept ORDER BY id") == [(1,), (2,)]
    assert not server.folder.exists()
