"""Validation names the rights that a task would fail by, and the SQL that it shows grants them."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from barnabas.connect.connectors.postgres.connector import PostgresConnector
from support.connect.capture import settings
from support.connect.postgres import Postgres
from support.connect.reading import SourceDriver

DATABASE = "guarded"
USER = "capture me"
TABLES = (
    "CREATE SCHEMA shop AUTHORIZATION shop_owner",
    "CREATE TABLE shop.orders (id int PRIMARY KEY)",
    "ALTER TABLE shop.orders OWNER TO shop_owner",
    "INSERT INTO shop.orders VALUES (1)",
    "CREATE TABLE signals (id varchar(42) PRIMARY KEY, type varchar(32), data varchar(2048))",
)
SLOT = f"slot_{DATABASE}"


@pytest.fixture
def server(database_server: Postgres) -> Iterator[Postgres]:
    database_server.database(DATABASE)
    roles = (f"CREATE ROLE \"{USER}\" LOGIN PASSWORD 'known'", "CREATE ROLE shop_owner")
    database_server.run(*roles, *TABLES, database=DATABASE)
    try:
        yield database_server
    finally:
        database_server.drop_database(DATABASE)
        for role in (USER, f"{USER}_owners", "shop_owner"):
            database_server.run(f'DROP ROLE IF EXISTS "{role}"')


def given(server: Postgres, **more: str) -> dict[str, str]:
    own = {"database.user": USER, "database.password": "known", "table.include.list": "shop.*"}
    return settings(server, DATABASE, **more) | own


def findings(config: dict[str, str]) -> dict[str, list[str]]:
    return {name: list(texts) for name, texts in PostgresConnector().validate(config).items()}


def remedies(found: dict[str, list[str]]) -> list[str]:
    """The SQL; of two ways the second."""
    texts = [text.partition("; or ")[2] or text for texts in found.values() for text in texts]
    return [sql for text in texts for sql in re.findall(r"(?:ALTER|GRANT|CREATE) [^;]*;", text)]


def reads_rows(config: dict[str, str]) -> None:
    driver = SourceDriver(PostgresConnector(), config)
    try:
        (record,) = driver.until(lambda records: records)
    finally:
        driver.reader.stop()
    assert record.key.get("id") == 1


def test_each_missing_right_is_named_and_the_sql_grants_it(server: Postgres) -> None:
    config = given(server, publication_autocreate_mode="filtered")
    found = findings(config)
    assert sorted(found) == ["database.user", "publication.autocreate.mode"]
    first, second = found["database.user"]
    assert first == f'The user {USER} may not replicate: ALTER ROLE "{USER}" REPLICATION;'
    assert f'GRANT USAGE ON SCHEMA "shop" TO "{USER}";' in second
    assert f'GRANT SELECT ON TABLE "shop"."orders" TO "{USER}";' in second
    create, own = found["publication.autocreate.mode"]
    assert create.endswith(f'GRANT CREATE ON DATABASE "{DATABASE}" TO "{USER}";')
    assert 'CREATE PUBLICATION "dbz_publication" FOR TABLE "shop"."orders"; or ' in own
    server.run(*remedies(found), database=DATABASE)
    assert findings(config) == {}
    reads_rows(config)


@pytest.mark.parametrize("mode", ["filtered", "all_tables", "disabled"])
def test_a_publication_that_another_has_made_needs_none_of_its_rights(
    server: Postgres, mode: str
) -> None:
    config = given(server, publication_autocreate_mode=mode)
    found = findings(config)
    user = {name: texts for name, texts in found.items() if name == "database.user"}
    (text,) = found["publication.autocreate.mode"][-1:]
    (make, *_) = re.findall(r"CREATE PUBLICATION [^;]*;", text)
    server.run(make, *remedies(user), database=DATABASE)
    assert findings(config) == {}
    reads_rows(config)


def test_a_publication_of_other_tables_is_its_owners_to_change(server: Postgres) -> None:
    config = given(server, publication_autocreate_mode="filtered")
    server.run("CREATE PUBLICATION dbz_publication FOR TABLE public.signals", database=DATABASE)
    (text,) = findings(config)["publication.autocreate.mode"]
    assert "only its owner postgres" in text
    server.run(*remedies(findings(config)), database=DATABASE)
    assert findings(config) == {}
    reads_rows(config)


@pytest.mark.parametrize(
    ("more", "rights"),
    [
        ({}, "INSERT"),
        ({"incremental_snapshot_watermarking_strategy": "insert_delete"}, "INSERT, DELETE"),
        ({"read_only": "true"}, None),
    ],
)
def test_marks_are_written_to_the_table_of_signals(
    server: Postgres, more: dict[str, str], rights: str | None
) -> None:
    config = given(server, signal_data_collection="public.signals", **more)
    found = findings(config)
    assert ("signal.data.collection" in found) is (rights is not None)
    if rights is not None:
        (text,) = found["signal.data.collection"]
        assert text.endswith(f'GRANT {rights} ON TABLE "public"."signals" TO "{USER}";')
        server.run(*remedies({"": [text]}), database=DATABASE)
        assert "signal.data.collection" not in findings(config)


@pytest.mark.parametrize("mode", ["no_data", "never"])
def test_without_a_snapshot_no_table_is_read(server: Postgres, mode: str) -> None:
    found = findings(given(server, snapshot_mode=mode))
    assert [text for text in found["database.user"] if "SELECT" in text] == []


def test_a_superuser_lacks_nothing(server: Postgres) -> None:
    assert findings(settings(server, DATABASE)) == {}
