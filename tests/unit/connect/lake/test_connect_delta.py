"""Delta's sink: rows, upserts, deletes, new columns, and each record once despite failures."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

import duckdb
import pytest
from deltalake import DeltaTable

from barnabas.connect.connectors.delta.connectors import DeltaTables
from barnabas.connect.connectors.lake.sink import LakeWriter
from barnabas.connect.testing import ConnectKit
from barnabas.schemas.data.errors import ConnectError
from support.connect.s3 import ACCESS_KEY, REGION, SECRET_KEY, s3_server

JSON = "org.apache.kafka.connect.json.JsonConverter"
FIELDS = [
    {"field": "id", "type": "int64"},
    {"field": "city", "type": "string", "optional": True},
]


def row(id_: int, city: str | None = None, **more: Any) -> bytes:
    fields = FIELDS + [{"field": name, "type": "string", "optional": True} for name in more]
    schema = {"type": "struct", "name": "Row", "fields": fields}
    return json.dumps({"schema": schema, "payload": {"id": id_, "city": city, **more}}).encode()


def sink(location: object, **more: str) -> dict[str, str]:
    return {
        "connector.class": "barnabas.connect.DeltaSink",
        "topics": "orders",
        "value.converter": JSON,
        "delta.location": str(location),
        "delta.tables": "sales.orders",
        "delta.tables.auto-create-enabled": "true",
        "delta.tables.evolve-schema-enabled": "true",
        "delta.control.commit.interval-ms": "0",
        **more,
    }


def rows(location: Path, table: str = "sales/orders") -> list[dict[str, Any]]:
    found = DeltaTable(location / table).to_pyarrow_table().to_pylist()
    return sorted(found, key=lambda one: one["id"])


def test_rows_are_appended_and_columns_added(tmp_path):
    with ConnectKit() as kit:
        for number in range(3):
            kit.produce("orders", row(number, "Oslo"))
        kit.produce("orders", row(3, "Rome", tip="much"))
        kit.produce("orders", None)
        kit.start("lake", sink(tmp_path))
        kit.wait_until(lambda: kit.committed("lake") == {("orders", 0): 5})

    oslo = [{"id": number, "city": "Oslo", "tip": None} for number in range(3)]
    assert rows(tmp_path) == [*oslo, {"id": 3, "city": "Rome", "tip": "much"}]
    files = DeltaTable(tmp_path / "sales/orders").file_uris()
    read = duckdb.sql(f"SELECT count(*) FROM read_parquet({files}, union_by_name=true)")
    assert read.fetchall() == [(4,)]


@pytest.mark.parametrize("is_evolved", [False, True])
def test_columns_that_records_lack_are_null(tmp_path, is_evolved):
    plain = {
        "value.converter.schemas.enable": "false",
        "delta.tables.evolve-schema-enabled": str(is_evolved).lower(),
    }
    with ConnectKit() as kit:
        kit.start("lake", sink(tmp_path, **plain))
        values = [{"id": 0, "city": "Oslo"}, {"id": 1, "city": None}, {"id": 2, "tip": "much"}]
        for number, value in enumerate(values, 1):
            kit.produce("orders", json.dumps(value).encode())
            done = {("orders", 0): number}
            kit.wait_until(lambda done=done: kit.committed("lake") == done)
    tips = [None, None, "much"]
    more = [{"tip": tip} if is_evolved else {} for tip in tips]
    cities = ["Oslo", None, None]
    expected = [{"id": n, "city": city, **more[n]} for n, city in enumerate(cities)]
    assert rows(tmp_path) == expected


def test_rows_are_replaced_and_deleted_by_id(tmp_path):
    upserts = {
        "delta.tables.default-id-columns": "id",
        "delta.tables.cdc-field": "op",
    }
    with ConnectKit() as kit:
        kit.start("lake", sink(tmp_path, **upserts))
        for batch in (
            [(1, "Oslo", "c"), (2, "Rome", "c"), (3, "Bari", "r")],
            [(1, "Bergen", "u"), (2, None, "d"), (9, None, "d"), (4, "x", "c"), (4, "Pisa", "u")],
            [(2, "Rimini", "c")],
        ):
            last = [kit.produce("orders", row(id_, city, op=op)) for id_, city, op in batch][-1]
            done = {("orders", 0): last.offset + 1}
            kit.wait_until(lambda done=done: kit.committed("lake") == done)

    cities = {one["id"]: one["city"] for one in rows(tmp_path)}
    assert cities == {1: "Bergen", 2: "Rimini", 3: "Bari", 4: "Pisa"}


def test_a_field_says_the_table(tmp_path):
    routes = {
        "delta.tables": "",
        "delta.tables.dynamic-enabled": "true",
        "delta.tables.route-field": "kind",
    }
    with ConnectKit() as kit:
        kit.produce("orders", row(1, kind="Sold"))
        kit.produce("orders", row(2, kind="Lost"))
        kit.produce("orders", row(3, kind="Sold"))
        kit.start("lake", sink(tmp_path, **routes))
        kit.wait_until(lambda: kit.committed("lake") == {("orders", 0): 3})
    assert [one["id"] for one in rows(tmp_path, "sold")] == [1, 3]
    assert [one["id"] for one in rows(tmp_path, "lost")] == [2]


@pytest.mark.parametrize("is_upserted", [False, True])
@pytest.mark.parametrize("step", ["before", "after", "answer"])
def test_each_record_is_a_row_once_when_a_step_fails(tmp_path, monkeypatch, step, is_upserted):
    owner, name = (LakeWriter if step == "answer" else DeltaTables), "commit"
    call, left = getattr(owner, name), [1, 3]
    calls = [0]

    def failing(*args: Any) -> Any:
        calls[0] += 1
        fails = left and calls[0] >= left[0]
        result = None if fails and step == "before" else call(*args)
        if fails:
            left.pop(0)
            raise InjectedError
        return result

    monkeypatch.setattr(owner, name, failing)
    both = {"delta.tables": "one,two"}
    if is_upserted:
        both |= {
            "delta.tables.upsert-mode-enabled": "true",
            "delta.tables.default-id-columns": "id",
        }
    with ConnectKit() as kit:
        for batch in range(2):
            for number in range(10):
                kit.produce("orders", row(batch * 10 + number))
            done = {("orders", 0): batch * 10 + 10}
            for _ in range(4):
                running = kit.start("lake", sink(tmp_path, **both))
                with contextlib.suppress(InjectedError):
                    kit.wait_until(lambda done=done: kit.committed("lake") == done)
                running.stop()
                running.logs.clear()
            assert kit.committed("lake") == done
    assert not left
    for table in ("one", "two"):
        assert [one["id"] for one in rows(tmp_path, table)] == list(range(20))


class InjectedError(ConnectError):
    """Ends a task, as a crash would."""


def test_tables_are_in_a_bucket(tmp_path):
    with s3_server() as server, ConnectKit() as kit:
        server.make_bucket("lake")
        storage = {
            "AWS_ENDPOINT_URL": server.endpoint,
            "AWS_ACCESS_KEY_ID": ACCESS_KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
            "AWS_REGION": REGION,
            "AWS_ALLOW_HTTP": "true",
        }
        more = {f"delta.storage.{name}": value for name, value in storage.items()}
        kit.produce("orders", row(1))
        kit.start("lake", sink("s3://lake/tables", **more))
        kit.wait_until(lambda: kit.committed("lake") == {("orders", 0): 1})
        table = DeltaTable("s3://lake/tables/sales/orders", storage_options=storage)
        assert table.to_pyarrow_table().to_pylist() == [{"id": 1, "city": None}]

        if server.kind != "moto":  # it checks no keys
            wrong = {**more, "delta.storage.AWS_SECRET_ACCESS_KEY": "another-secret"}
            running = kit.start("wrong", sink("s3://lake/tables", **wrong))
            error = str(kit.wait_for_failure(running))
            assert "table sales.orders" in error
            assert "another-secret" not in error
            running.logs.clear()


def test_a_table_that_is_not_there_is_said(tmp_path):
    with ConnectKit() as kit:
        kit.produce("orders", row(1))
        none = {"delta.tables.auto-create-enabled": "false"}
        running = kit.start("lake", sink(tmp_path, **none))
        error = kit.wait_for_failure(running)
        assert "table sales.orders is not at" in str(error)
        running.logs.clear()
