"""Formats of Spark, by their names, as sources and sinks of connectors; topics in memory."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from barnabas.connect.tasks.local import LocalEngine
from barnabas.connect.testing import ConnectKit
from barnabas.schemas.data.errors import ConfigError, ConnectError
from support.spark import shared_session

pytestmark = pytest.mark.filterwarnings(
    "ignore:unclosed <socket:ResourceWarning"
)  # PySpark's toLocalIterator()
WORKER = {
    "value.converter": "org.apache.kafka.connect.json.JsonConverter",
    "value.converter.schemas.enable": "false",
}
SOURCE = {"connector.class": "barnabas.connect.SparkSource", "topic": "out"}
SINK = {
    "connector.class": "barnabas.connect.SparkSink",
    "topics": "in",
    "schema": "id bigint, item string",
}
ROWS = [{"id": number, "item": f"item {number}"} for number in range(5)]


@pytest.fixture
def kit(monkeypatch: pytest.MonkeyPatch) -> Iterator[ConnectKit]:
    monkeypatch.setattr(LocalEngine, "spark", property(lambda _: shared_session))
    with ConnectKit(WORKER) as kit:
        yield kit


def rows(kit: ConnectKit) -> list[dict[str, Any]]:
    return [json.loads(value or b"") for value in kit.values("out")]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["parquet", "json", "jdbc"])
def test_rows_pass_a_format_to_and_fro(kit: ConnectKit, tmp_path: Path, name: str) -> None:
    options = {"option.path": str(tmp_path / "rows")}
    if name == "jdbc":
        options = {
            "option.url": f"jdbc:derby:{tmp_path / 'derby'};create=true",
            "option.driver": "org.apache.derby.iapi.jdbc.AutoloadedDriver",
            "option.dbtable": "ITEMS",
        }
    for row in ROWS:
        kit.produce("in", json.dumps(row).encode())
    sink = kit.start("to", {**SINK, "format": name, **options})
    kit.wait_until(lambda: kit.committed("to") == {("in", 0): len(ROWS)}, 90)
    sink.stop()
    settings = {**SOURCE, "format": name, "key.column": "id", **options}
    stored = [({"format": name}, {"rows": 5, "isRead": True})]
    for _ in range(2):  # a format that was read is not read again
        source = kit.start("from", settings)
        kit.wait_until(lambda: list(kit.offsets("from")) == stored, 90)
        source.stop()
    assert sorted(rows(kit), key=lambda row: str(row["id"])) == ROWS
    assert {record.key for record in kit.records("out")} == {b"0", b"1", b"2", b"3", b"4"}


@pytest.mark.slow
def test_table_that_was_read_in_part_is_read_from_its_beginning(
    kit: ConnectKit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("barnabas.connect.connectors.spark.formats.ROWS_MAX", 2)
    (tmp_path / "rows.json").write_text("\n".join(json.dumps(row) for row in ROWS))
    kit.topics.store("from", [({"format": "json"}, {"rows": 2, "isRead": False})])
    settings = {**SOURCE, "format": "json", "option.path": str(tmp_path / "rows.json")}
    kit.start("from", {**settings, "schema": SINK["schema"]})
    kit.wait_until(lambda: kit.offsets("from")[0][1] == {"rows": 5, "isRead": True}, 90)
    assert rows(kit) == ROWS


@pytest.mark.slow
def test_stream_goes_on_where_it_was(kit: ConnectKit, tmp_path: Path) -> None:
    settings = {
        **SOURCE,
        "format": "rate",
        "stream": "true",
        "checkpoint.location": str(tmp_path / "checkpoint"),
        "option.rowsPerSecond": "20",
    }
    for count in (20, 60):
        source = kit.start("from", settings)
        kit.wait_until(lambda count=count: len(rows(kit)) >= count, 90)
        source.stop()
    values = [row["value"] for row in rows(kit)]
    assert sorted(values) == list(range(len(values)))
    ((partition, offset),) = kit.offsets("from")
    assert partition == {"format": "rate"}
    assert offset["isWhole"] is True


@pytest.mark.slow
@pytest.mark.parametrize(
    ("given", "kind", "text"),
    [
        (
            {"format": "json", "option.path": "/no/such/file"},
            ConnectError,
            "cannot read the format",
        ),
        ({"format": "no-format"}, ConnectError, "cannot read the format no-format"),
        ({"format": "json", "schema": "a map"}, ConfigError, "ends where < is due"),
    ],
)
def test_what_spark_cannot_read(
    kit: ConnectKit, given: Mapping[str, str], kind: type[ConnectError], text: str
) -> None:
    error = kit.wait_for_failure(kit.start("from", {**SOURCE, **given}))
    assert isinstance(error, kind)
    assert text in str(error)
    assert "\n" not in str(error)


@pytest.mark.slow
def test_what_spark_cannot_write(kit: ConnectKit) -> None:
    kit.produce("in", b'{"id": 1, "item": "a"}')
    error = kit.wait_for_failure(kit.start("to", {**SINK, "format": "no-format"}))
    assert "cannot write the format no-format" in str(error)
    assert kit.committed("to") == {}


def test_stream_needs_its_directory(kit: ConnectKit) -> None:
    with pytest.raises(ConfigError, match=r"checkpoint\.location"):
        kit.start("from", {**SOURCE, "format": "rate", "stream": "true"})


@pytest.mark.parametrize("settings", [SOURCE, SINK])
def test_formats_of_spark_need_spark(settings: Mapping[str, str]) -> None:
    with ConnectKit(WORKER) as kit:
        kit.produce("in", b"{}")
        running = kit.start("s", {**settings, "format": "parquet"})
        with pytest.raises(ConfigError, match="needs the engine on Spark"):
            raise kit.wait_for_failure(running)
