"""The warehouse: replayed batches, upserts, and folds that a crash interrupts anywhere."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypedDict

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from barnabas.demo import topics
from barnabas.demo.spark import warehouse
from barnabas.demo.spark.pipeline import WAREHOUSE_PROPERTY, pipeline
from barnabas.demo.spark.warehouse import WarehouseTable, schema_of

pytestmark = pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")

Rows = list[tuple[str, int]]


class Count(TypedDict):
    key: str
    total: int


def table_at(path: Path) -> WarehouseTable:
    return WarehouseTable(str(path), "counts", schema_of(Count), ["key"])


def write(table: WarehouseTable, batch_id: int, rows: Rows) -> None:
    table.write([{"key": key, "total": total} for key, total in rows], batch_id)


def latest(table: WarehouseTable) -> dict[str, int]:
    return {row["key"]: row["total"] for row in table.read_latest()}


def directories(path: Path) -> set[str]:
    return {entry.name for entry in (path / "counts").iterdir()}


def test_the_latest_batch_decides_about_a_key(tmp_path: Path) -> None:
    table = table_at(tmp_path)
    write(table, 0, [("a", 1), ("b", 1)])
    write(table, 9, [("a", 3)])
    write(table, 10, [("a", 2), ("c", 1)])
    assert latest(table) == {"a": 2, "b": 1, "c": 1}


def test_a_replayed_batch_takes_the_place_of_its_first_try(tmp_path: Path) -> None:
    table = table_at(tmp_path)
    write(table, 0, [("a", 1)])
    write(table, 1, [("a", 2), ("b", 1)])
    write(table_at(tmp_path), 1, [("a", 2)])
    assert latest(table) == {"a": 2}
    assert len(list((tmp_path / "counts").rglob("*.parquet"))) == 2


def test_a_table_without_keys_is_its_last_row(tmp_path: Path) -> None:
    table = WarehouseTable(str(tmp_path), "top", schema_of(topics.TopSearches), ())
    assert table.read_latest() == []
    for batch_id in range(3):
        table.write([{"searches": [{"query": "tent", "count": batch_id}]}], batch_id)
    table.write([], 3)
    table.fold(3)
    assert table.read_latest() == [{"searches": [{"query": "tent", "count": 2}]}]


def test_spark_and_warehouses_that_spark_wrote_are_understood(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = tmp_path / "counts"
    spark.createDataFrame([("a", 1), ("b", 1)], "key string, total long").write.parquet(
        str(path / "batch_id=0")
    )
    table = table_at(tmp_path)
    write(table, 1, [("a", 2)])
    assert latest(table) == {"a": 2, "b": 1}
    read = spark.read.parquet(str(path)).collect()
    assert {(r["key"], r["total"], r["batch_id"]) for r in read} == {
        *(("a", 1, 0), ("b", 1, 0), ("a", 2, 1))
    }


def test_columns_are_those_of_the_documented_row() -> None:
    assert schema_of(topics.TopSearches) == pa.schema(
        [("searches", pa.list_(pa.struct([("query", pa.string()), ("count", pa.int64())])))]
    )
    assert schema_of(topics.EnergyPerMinute).names[:2] == ["city", "window_start_ms"]


def test_folding_keeps_the_rows_and_the_replayable_batch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(warehouse, "FOLD_EVERY", 3)
    table = table_at(tmp_path)
    for batch_id in range(5):
        write(table, batch_id, [("a", batch_id), (f"k{batch_id}", batch_id)])
    assert directories(tmp_path) == {"batch_id=2", "batch_id=3", "batch_id=4"}
    expected = {"a": 4, **{f"k{n}": n for n in range(5)}}
    assert latest(table) == expected
    # The batch that may be replayed is never part of a fold.
    write(table_at(tmp_path), 4, [("a", 4), ("k4", 4)])
    assert latest(table) == expected


@pytest.mark.parametrize("deleted_before_the_crash", [0, 1, 2])
def test_a_fold_that_was_whole_is_finished(tmp_path: Path, deleted_before_the_crash: int) -> None:
    table = table_at(tmp_path)
    for batch_id in range(2):
        write(table, batch_id, [("a", batch_id), (f"k{batch_id}", batch_id)])
    table.fold(1)
    (tmp_path / "counts" / "batch_id=1").rename(tmp_path / "counts" / "_fold_through_1")
    again = table_at(tmp_path / "rewritten")
    for batch_id in range(deleted_before_the_crash, 2):
        write(again, batch_id, [("a", batch_id), (f"k{batch_id}", batch_id)])
        (tmp_path / "rewritten" / "counts" / f"batch_id={batch_id}").rename(
            tmp_path / "counts" / f"batch_id={batch_id}"
        )
    recovered = table_at(tmp_path)
    assert directories(tmp_path) == {"batch_id=1"}
    assert latest(recovered) == {"a": 1, "k0": 0, "k1": 1}


@pytest.mark.parametrize("left", ["_temporary", "_unfinished"])
def test_a_fold_that_was_not_whole_is_dropped(tmp_path: Path, left: str) -> None:
    table = table_at(tmp_path)
    write(table, 0, [("a", 1)])
    write(table, 1, [("b", 1)])
    partial = tmp_path / "counts" / "_fold_through_1" / left
    partial.mkdir(parents=True)
    recovered = table_at(tmp_path)
    assert directories(tmp_path) == {"batch_id=0", "batch_id=1"}
    assert latest(recovered) == {"a": 1, "b": 1}


def test_where_a_connector_keeps_the_warehouse_no_query_does(tmp_path: Path) -> None:
    cases: list[tuple[dict[str, str], list[str]]] = [
        ({}, ["recommendations"]),
        ({WAREHOUSE_PROPERTY: str(tmp_path)}, ["recommendations", "warehouse"]),
    ]
    for properties, names in cases:
        settings = SimpleNamespace(set=lambda name, value: None)
        context: Any = SimpleNamespace(spark=SimpleNamespace(conf=settings), properties=properties)
        assert [query.name for query in pipeline(context)] == names
