"""The PostgreSQL that other tests are given."""

from __future__ import annotations

import psycopg
import pytest

from support.connect.postgres import HOST, Postgres


def test_it_replicates_logically_and_wants_its_password(database_server: Postgres) -> None:
    assert database_server.run("SHOW wal_level") == [("logical",)]
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        psycopg.connect(
            host=HOST, port=database_server.port, user="postgres", password="wrong", dbname="x"
        )
