"""Iceberg's sink on Spark, with a bucket as its warehouse, read back by other libraries."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from support.connect.s3 import S3Server, s3_server
from support.spark import needs_spark

TESTS = Path(__file__).parents[1]
TIMEOUT_S = 900
"""The first run fetches Iceberg's packages."""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(TIMEOUT_S),
    needs_spark,
]


def drive(given: dict[str, Any]) -> dict[str, Any]:
    path = os.pathsep.join([str(TESTS), *sys.path])
    done = subprocess.run(
        [sys.executable, "-m", "support.connect.iceberg_driver"],
        input=json.dumps(given),
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
    )
    assert done.returncode == 0, done.stderr[-5000:]
    return json.loads(done.stdout.splitlines()[-1])


def check(found: dict[str, Any]) -> None:
    appended = [[number, "Oslo"] for number in range(5)]
    appended += [[number, "Rome"] for number in range(5, 10)]
    appended.append([10, None])
    assert found["appended"] == appended
    assert found["second"] == appended
    audited = [*appended, [0, "Lima"], [1, "Lima"]]
    assert sorted(found["audited"], key=str) == sorted(audited, key=str)
    assert found["merged"] == [[0, "Oslo"], [1, "Rome"], [3, "Oslo"], [4, "Oslo"], [5, "Oslo"]]
    assert found["committed"] == [11, 11]
    assert "is not in catalog" in found["refused"]
    assert found["late"] == list(range(45))
    assert found["late_upserts"] == [42, 43, 44]
    assert found["branches"] == ["barnabas_offsets_late", "main"]
    assert found["forgotten"] == 0
    assert found["kept"] == [0, 1, 2, 3, 100]
    assert found["tended"] == list(range(12))
    assert found["tended_files"] < 5  # of which Iceberg joins no fewer
    assert found["tended_snapshots"] < 5
    taken_over, passed = found["refusals"][::2], found["refusals"][1::2]
    assert all("another task has written orders-0" in text for text in taken_over)
    assert all("Cannot fast-forward" in text for text in passed)


def test_rows_are_there_once_in_a_directory_and_others_read_them(tmp_path: Path) -> None:
    from pyiceberg.table import StaticTable  # takes a second, which every run would wait for

    warehouse = tmp_path / "warehouse"
    given = {
        "warehouse": f"file://{warehouse}",
        "hadoop": {},
        "log": str(tmp_path / "spark.log"),
    }
    check(drive(given))
    metadata = sorted((warehouse / "db/appended/metadata").glob("v*.metadata.json"))
    newest = max(metadata, key=lambda one: int(one.name[1:].partition(".")[0]))
    table = StaticTable.from_metadata(f"file://{newest}").scan().to_arrow()
    assert sorted(table["id"].to_pylist()) == list(range(11))
    assert table["tags"].to_pylist().count(["a", "b"]) == 5


def test_rows_are_there_once_in_a_bucket(tmp_path: Path) -> None:
    with s3_server() as server:
        server.make_bucket("lake")
        given = {
            "warehouse": "s3a://lake/warehouse",
            "hadoop": server.hadoop_settings(),
            "log": str(tmp_path / "spark.log"),
        }
        check(drive(given))
        assert _snapshots(server) == 3


def _snapshots(server: S3Server) -> int:
    """Each of the three commits of `appended` is one snapshot, also those that were repeated.

    Before them is one without rows, which the first branch began with.
    """
    keys = server.keys("lake", "warehouse/db/appended/metadata/v")
    newest = max(
        (key for key in keys if key.endswith(".metadata.json")),
        key=lambda key: int(key.rpartition("/v")[2].partition(".")[0]),
    )
    table = json.loads(server.read("lake", newest))
    snapshots = {one["snapshot-id"]: one for one in table["snapshots"]}
    place, on_main = table["refs"]["main"]["snapshot-id"], []
    while place is not None:
        on_main.append(snapshots[place])
        place = snapshots[place].get("parent-snapshot-id")
    *others, first = on_main
    assert first["summary"]["total-records"] == "0"
    return len(others)
