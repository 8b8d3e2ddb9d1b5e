"""The warehouse: replayed batches, upserts, and folds that a crash interrupts anywhere."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from barnabas.pipeline import warehouse
from barnabas.pipeline.warehouse import WarehouseTable

pytestmark = pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")

Rows = list[tuple[str, int]]


def table_at(spark: SparkSession, path: Path) -> WarehouseTable:
    return WarehouseTable(spark, str(path), "counts", ["key"])


def write(spark: SparkSession, table: WarehouseTable, batch_id: int, rows: Rows) -> None:
    table.write(spark.createDataFrame(rows, "key string, total long"), batch_id)


def latest(table: WarehouseTable) -> dict[str, int]:
    return {row["key"]: row["total"] for row in table.read_latest().collect()}


def directories(path: Path) -> set[str]:
    return {entry.name for entry in (path / "counts").iterdir()}


def test_the_latest_batch_decides_about_a_key(spark: SparkSession, tmp_path: Path) -> None:
    table = table_at(spark, tmp_path)
    write(spark, table, 0, [("a", 1), ("b", 1)])
    write(spark, table, 9, [("a", 3)])
    write(spark, table, 10, [("a", 2), ("c", 1)])
    assert latest(table) == {"a": 2, "b": 1, "c": 1}


def test_a_replayed_batch_takes_the_place_of_its_first_try(
    spark: SparkSession, tmp_path: Path
) -> None:
    table = table_at(spark, tmp_path)
    write(spark, table, 0, [("a", 1)])
    write(spark, table, 1, [("a", 2)])
    write(spark, table_at(spark, tmp_path), 1, [("a", 2)])
    assert table.read_latest().count() == 1
    assert spark.read.parquet(str(tmp_path / "counts")).count() == 2


def test_folding_keeps_the_rows_and_the_replayable_batch(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(warehouse, "FOLD_EVERY", 3)
    table = table_at(spark, tmp_path)
    for batch_id in range(5):
        write(spark, table, batch_id, [("a", batch_id), (f"k{batch_id}", batch_id)])
    assert directories(tmp_path) == {"batch_id=2", "batch_id=3", "batch_id=4"}
    expected = {"a": 4, **{f"k{n}": n for n in range(5)}}
    assert latest(table) == expected
    # The batch that may be replayed is never part of a fold.
    write(spark, table_at(spark, tmp_path), 4, [("a", 4), ("k4", 4)])
    assert latest(table) == expected


@pytest.mark.parametrize("deleted_before_the_crash", [0, 1, 2])
def test_a_fold_that_was_whole_is_finished(
    spark: SparkSession, tmp_path: Path, deleted_before_the_crash: int
) -> None:
    table = table_at(spark, tmp_path)
    for batch_id in range(2):
        write(spark, table, batch_id, [("a", batch_id), (f"k{batch_id}", batch_id)])
    table.fold(1)
    (tmp_path / "counts" / "batch_id=1").rename(tmp_path / "counts" / "_fold_through_1")
    again = table_at(spark, tmp_path / "rewritten")
    for batch_id in range(deleted_before_the_crash, 2):
        write(spark, again, batch_id, [("a", batch_id), (f"k{batch_id}", batch_id)])
        (tmp_path / "rewritten" / "counts" / f"batch_id={batch_id}").rename(
            tmp_path / "counts" / f"batch_id={batch_id}"
        )
    recovered = table_at(spark, tmp_path)
    assert directories(tmp_path) == {"batch_id=1"}
    assert latest(recovered) == {"a": 1, "k0": 0, "k1": 1}


def test_a_fold_that_was_not_whole_is_dropped(spark: SparkSession, tmp_path: Path) -> None:
    table = table_at(spark, tmp_path)
    write(spark, table, 0, [("a", 1)])
    write(spark, table, 1, [("b", 1)])
    partial = tmp_path / "counts" / "_fold_through_1" / "_temporary"
    partial.mkdir(parents=True)
    recovered = table_at(spark, tmp_path)
    assert directories(tmp_path) == {"batch_id=0", "batch_id=1"}
    assert latest(recovered) == {"a": 1, "b": 1}
