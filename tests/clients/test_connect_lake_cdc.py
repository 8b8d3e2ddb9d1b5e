"""The CDC example of docs/connect/lakes.md with real events: the table equals the database's."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError

from barnabas.base.config.properties import parse_properties
from barnabas.connect.allowed_paths import allow_paths_of_worker
from barnabas.connect.config.answers import errors_of
from barnabas.connect.config.validation import WorkerRules, validate_connector
from barnabas.connect.testing import ConnectKit
from support.connect.capture import settings
from support.connect.postgres import Postgres

DOCS = Path(__file__).parents[2] / "docs/connect/lakes.md"
WALK = Path(__file__).parents[2] / "docs/postgres-to-iceberg.md"
DATABASE = "kept"
ROW = "CREATE TABLE orders (id int PRIMARY KEY, item text, price numeric(10,2))"


def example() -> dict[str, str]:
    """The page's sink that keeps a table equal."""
    blocks = map(json.loads, re.findall(r"```json\n(.*?)```", DOCS.read_text(), re.DOTALL))
    (found,) = [one for one in blocks if one["name"] == "orders-kept-equal"]
    config: dict[str, str] = found["config"]
    return config


@pytest.fixture
def server(database_server: Postgres) -> Iterator[Postgres]:
    database_server.database(DATABASE)
    database_server.run(ROW, "INSERT INTO orders VALUES (1, 'tea', 2.5)", database=DATABASE)
    try:
        yield database_server
    finally:
        database_server.drop_database(DATABASE)


def test_the_example_is_valid() -> None:
    given = {"name": "orders-kept-equal", **example()}
    assert errors_of(validate_connector(given, WorkerRules(engine="spark"))) == []


def test_the_connectors_of_the_walk_are_valid(server: Postgres) -> None:
    """Those of docs/postgres-to-iceberg.md, the source against a real server."""
    capture, lake = map(json.loads, re.findall(r"```json\n(.*?)```", WALK.read_text(), re.DOTALL))
    here = settings(server, DATABASE)
    given = capture["config"] | {
        name: value for name, value in here.items() if name.startswith("database.")
    }
    server.run("CREATE PUBLICATION dbz_publication FOR TABLE orders", database=DATABASE)
    (properties,) = re.findall(r"```properties\n(bootstrap.*?)```", WALK.read_text(), re.DOTALL)
    allow_paths_of_worker(parse_properties(properties))
    for name, config in (("capture", given), ("lake", lake["config"])):
        verdict = validate_connector({"name": name, **config}, WorkerRules(engine="spark"))
        assert errors_of(verdict) == []


def test_the_table_equals_the_databases(server: Postgres, tmp_path: Path) -> None:
    """On Delta, whose settings are the same behind another prefix."""
    given = {
        re.sub("^iceberg", "delta", name): value
        for name, value in example().items()
        if not name.startswith(("iceberg.catalog", "iceberg.hadoop"))
    }
    given |= {
        "connector.class": "barnabas.connect.DeltaSink",
        "delta.location": str(tmp_path),
        "delta.control.commit.interval-ms": "0",
    }
    converters = {name: value for name, value in given.items() if name.endswith(".converter")}
    capture = settings(server, DATABASE, decimal_handling_mode="double")
    capture |= {"topic.prefix": "shop", **converters}
    capture["connector.class"] = "io.debezium.connector.postgresql.PostgresConnector"

    def table() -> list[dict[str, Any]]:
        try:
            rows = DeltaTable(tmp_path / "shop/orders").to_pyarrow_table().to_pylist()
        except TableNotFoundError:
            return []
        return sorted(({name: row[name] for name in ("id", "item", "price")} for row in rows),
                      key=lambda row: int(row["id"]))  # fmt: skip

    with ConnectKit() as kit:
        kit.start("capture", capture)
        kit.start("orders-kept-equal", given)
        kit.wait_until(lambda: table() == [{"id": 1, "item": "tea", "price": 2.5}])
        server.run(
            "INSERT INTO orders VALUES (2, 'milk', 1), (3, 'salt', 4)",
            "UPDATE orders SET item = 'green tea' WHERE id = 1",
            "DELETE FROM orders WHERE id = 2",
            database=DATABASE,
        )
        wanted = [
            {"id": 1, "item": "green tea", "price": 2.5},
            {"id": 3, "item": "salt", "price": 4.0},
        ]
        kit.wait_until(lambda: table() == wanted)
