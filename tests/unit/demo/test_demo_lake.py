"""The demo's warehouse as a table of Iceberg: its files, and how the table is compared."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pytest

from barnabas.base.config.properties import parse_properties
from barnabas.connect.config.common import CONVERTERS
from barnabas.connect.connectors.iceberg.connectors import (
    EXPIRE,
    HADOOP_AWS,
    PACKAGE,
    REWRITE,
    IcebergSink,
)
from barnabas.connect.worker.settings import check_settings, is_distributed
from barnabas.demo.access import CONNECT, Access
from barnabas.demo.dashboard import readers as monitoring
from barnabas.demo.dashboard.readers import ConnectorMonitor
from barnabas.demo.dashboard.state import DashboardState
from barnabas.demo.lake import server
from barnabas.demo.lake.lake import Lake, NoLakeError, compare
from barnabas.demo.lake.place import ACCESS_KEY, S3_SERVER, SECRET_KEY, SPARK, Place
from barnabas.demo.lake.worker import OFFSET_COLUMN, PARTITION_COLUMN, worker_spec
from barnabas.demo.outcome import all_right
from barnabas.demo.topics import ICEBERG_GROUP, USER_ACTIVITY
from barnabas.demo.workspace import ICEBERG, Settings, Workspace
from barnabas.spark.jars import jar_name
from barnabas.spark.packages import Package, PackageError

SETTINGS = Settings(
    *(7, 250, 240, "id", [1], [2], 3),
    registry_port=4,
    warehouse=ICEBERG,
    bucket_port=5,
    warehouse_port=8085,
)


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return Workspace(str(tmp_path))


@pytest.fixture
def place(workspace: Workspace) -> Place:
    made = Place(workspace, 5)
    made.prepare()
    return made


def files_of(command: list[str]) -> list[dict[str, str]]:
    return [parse_properties(Path(path).read_text()) for path in command[-2:]]


def test_worker_and_connector_are_as_users_write_them(workspace: Workspace, place: Place) -> None:
    worker, connector = files_of(worker_spec(workspace, SETTINGS, "127.0.0.1:9092", place).command)
    assert not is_distributed(worker)
    parsed = check_settings(worker)
    assert all(parsed[name] for name in CONVERTERS)
    assert IcebergSink().validate(connector) == {}
    assert connector["topics"] == USER_ACTIVITY
    assert {EXPIRE, REWRITE} <= connector.keys()
    assert f"connect-{connector['name']}" == ICEBERG_GROUP


def test_spark_starts_with_all_that_the_connector_asks_for(
    workspace: Workspace, place: Place
) -> None:
    """Else it would fetch the rest while records wait, and all of Amazon's SDK with it."""
    worker, connector = files_of(worker_spec(workspace, SETTINGS, "127.0.0.1:9092", place).command)
    asked = set(IcebergSink().spark_packages(connector).values())
    assert asked == {PACKAGE, HADOOP_AWS}
    assert asked <= set(worker["barnabas.connect.spark.packages"].split(","))


def test_keys_are_in_files_of_their_owner_alone(workspace: Workspace, place: Place) -> None:
    keys = {place.key(ACCESS_KEY), place.key(SECRET_KEY)}
    assert len(keys) == 2
    spec = worker_spec(workspace, SETTINGS, "127.0.0.1:9092", place)
    for part in (spec, place.spec()):
        assert not any(key in " ".join(part.command) for key in keys)
    for name in os.listdir(workspace.path("connect")):
        text = Path(workspace.path("connect", name)).read_text()
        assert not any(key in text for key in keys)
    for path in Path(place.directory).iterdir():
        assert path.is_dir() or path.stat().st_mode & 0o777 == 0o600
    Place(workspace, 6).prepare()
    assert {place.key(ACCESS_KEY), place.key(SECRET_KEY)} == keys
    assert os.path.isdir(place.objects)


def test_the_worker_of_a_secure_demo_logs_in(workspace: Workspace, place: Place) -> None:
    access = Access(workspace.directory, "service")
    worker, _ = files_of(worker_spec(workspace, SETTINGS, "a:1", place, access).command)
    for prefix in ("", "consumer."):
        assert worker[f"{prefix}security.protocol"] == "SASL_SSL"
        assert f'username="{CONNECT}"' in worker[f"{prefix}sasl.jaas.config"]


def test_a_directory_of_parquet_stays_so(workspace: Workspace) -> None:
    for settings in (
        Settings(7, 250, 240, "id", [1], [2], 3),
        Settings(7, 250, 240, "id", [1], [2], 3, bucket_port=5, warehouse_port=6),
    ):
        with pytest.raises(NoLakeError):
            Lake(workspace, settings, "127.0.0.1:1")
    assert not os.path.exists(workspace.path("bucket"))
    assert not Lake(workspace, SETTINGS, "127.0.0.1:1").answers()


def table(*rows: tuple[str, int, int, int]) -> pa.Table:
    names = ["event_id", "amount_cents", PARTITION_COLUMN, OFFSET_COLUMN]
    return pa.Table.from_pylist([dict(zip(names, row, strict=True)) for row in rows])


WHOLE = [("a", 0, 0, 0), ("b", 250, 1, 0), ("c", 50, 0, 1)]


@pytest.mark.parametrize(
    ("rows", "shown"),
    [
        (WHOLE, ["3", "300", "0"]),
        ([*WHOLE, ("b", 250, 1, 7)], ["3", "300", "0"]),  # sent twice
        ([*WHOLE, ("b", 250, 1, 0)], ["3", "300", "1"]),  # written twice
        (WHOLE[:2], ["2", "250", "0"]),
        ([*WHOLE, ("d", 1, 0, 2)], ["4", "301", "0"]),
    ],
)
def test_the_table_has_each_event_and_no_record_twice(
    rows: list[tuple[str, int, int, int]], shown: list[str]
) -> None:
    truth = cast(Any, {"events": {USER_ACTIVITY: 3}, "figures": {"conversion": {}}})
    truth["figures"]["conversion"]["revenue_cents"] = 300
    checks = compare(table(*rows), truth)
    assert [check.shown for check in checks] == shown
    assert all_right(checks) == (shown == ["3", "300", "0"])
    assert [check.right for check in compare(None, truth)] == [False]


def test_jars_are_fetched_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("BARNABAS_IVY_DIR", str(tmp_path))
    asked = []

    monkeypatch.setattr(server, "check", lambda *_: None)

    def fetch(packages: list[Package], say: object) -> list[list[str]]:
        asked.append(packages)
        paths = [[str(tmp_path / f"{n}-{m}.jar") for m in range(2)] for n in range(len(packages))]
        for path in (one for some in paths for one in some):
            Path(path).touch()
        return paths

    monkeypatch.setattr(server, "fetch_jars", fetch)
    first = server.find_jars()
    assert first == [str(tmp_path / f"0-{m}.jar") for m in range(2)]
    assert server.find_jars() == first
    assert asked == [(S3_SERVER, *SPARK)]
    (tmp_path / "2-1.jar").unlink()
    assert server.find_jars() == first
    assert len(asked) == 2


def test_a_jar_that_was_changed_is_not_started(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("BARNABAS_IVY_DIR", str(tmp_path))
    changed = tmp_path / jar_name(S3_SERVER.coordinates)
    changed.write_bytes(b"another")
    packages = (S3_SERVER, *SPARK)
    lines = [" ".join(package.address for package in packages), *([str(changed)] * len(packages))]
    (tmp_path / "lake-of-the-demo.jars").write_text("\n".join(lines))
    with pytest.raises(PackageError, match="has the SHA-256"):
        server.find_jars()


def test_what_a_package_goes_without_is_part_of_its_address() -> None:
    assert Package("g:a:1").address == "ivy://g:a:1"
    assert Package("g:a:1", ("x:*", "y:z")).address == "ivy://g:a:1?exclude=x:*,y:z"


def test_a_worker_that_does_not_answer_is_down_and_the_other_is_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answers: dict[str, dict[str, str] | None] = {"a": {"stations": "RUNNING"}, "b": None}
    monkeypatch.setattr(monitoring, "connector_states", lambda url: answers[url])
    monitor = ConnectorMonitor("127.0.0.1:1", ["a", "b"], DashboardState("127.0.0.1:1"))
    assert monitor.look() == {"stations": "RUNNING"}
    answers["b"] = {"warehouse": "RUNNING"}
    assert monitor.look() == {"stations": "RUNNING", "warehouse": "RUNNING"}
    answers["a"] = None
    assert monitor.look() == {"stations": "DOWN", "warehouse": "RUNNING"}
