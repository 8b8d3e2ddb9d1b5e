"""Sinks of buckets and tables killed in every step: each record is there once."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from test_connect_killed import Doomed

from barnabas.app.testing import Kafka
from barnabas.connect.connectors.delta.connectors import DeltaTables
from barnabas.connect.connectors.iceberg.tables import IcebergTables
from barnabas.connect.connectors.s3 import bucket
from support.connect.s3 import S3Server, s3_server
from support.connect.tasks import place_of
from support.spark import needs_spark

pytestmark = pytest.mark.slow

RECORDS = 100
ENGINES = ["local", pytest.param("spark", marks=needs_spark)]
JSON = "org.apache.kafka.connect.json.JsonConverter"
UPLOAD = place_of(bucket._S3Upload)
GROUP = ["before a sink's commit", "after a sink's commit"]
S3_STEPS = [f"before {UPLOAD}.complete", f"after {UPLOAD}.complete", *GROUP]
TABLES = place_of(DeltaTables)
ICEBERG = place_of(IcebergTables)
ICEBERG_STEPS = [f"before {ICEBERG}.commit", f"after {ICEBERG}.commit", *GROUP]
DELTA_STEPS = [f"before {TABLES}.commit", f"after {TABLES}.commit", *GROUP]


@pytest.fixture(scope="module")
def server() -> Iterator[S3Server]:
    with s3_server() as server:
        yield server


def produce(kafka: Kafka, topic: str, first: int) -> None:
    kafka.produce(topic, [json.dumps({"id": first + n}).encode() for n in range(RECORDS)])


def run(
    kafka: Kafka,
    directory: Path,
    settings: dict[str, str],
    steps: Sequence[str],
    engine: str,
    found: Any,
) -> None:
    """Let the task die at each step, with new records before each; then all must be there once."""
    topic = kafka.topic("in")
    given = {
        "settings": {
            "topics": topic,
            "value.converter": JSON,
            "value.converter.schemas.enable": "false",
            **settings,
        },
        "offsets_topic": "unused",
        "is_exactly_once": False,
        "engine": engine,
    }
    doomed = Doomed(kafka, directory, given)
    for number, step in enumerate(steps):
        produce(kafka, topic, number * RECORDS)
        doomed.die(step)
    produce(kafka, topic, len(steps) * RECORDS)
    total = (len(steps) + 1) * RECORDS
    doomed.run_until(lambda: len(found()) >= total)
    assert sorted(found()) == list(range(total))


@pytest.mark.parametrize("engine", ENGINES)
def test_each_record_is_in_the_bucket_once(
    kafka: Kafka, server: S3Server, tmp_path: Path, engine: str
) -> None:
    bucket = f"killed-{engine}"
    server.make_bucket(bucket)
    settings = {
        "connector.class": "io.confluent.connect.s3.S3SinkConnector",
        "format.class": "io.confluent.connect.s3.format.json.JsonFormat",
        "flush.size": "20",
        **server.settings(bucket),
    }

    def found() -> list[int]:
        lines = [line for key in server.keys(bucket) for line in read(key)]
        return [json.loads(line)["id"] for line in lines]

    def read(key: str) -> list[bytes]:
        return server.read(bucket, key).splitlines()

    # On Spark uploads are made by processes that know nothing of steps.
    run(kafka, tmp_path, settings, S3_STEPS if engine == "local" else GROUP, engine, found)
    assert all(len(read(key)) == 20 for key in server.keys(bucket))


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("is_upserted", [False, True])
def test_each_record_is_a_row_once(
    kafka: Kafka, tmp_path: Path, engine: str, is_upserted: bool
) -> None:
    settings = {
        "connector.class": "barnabas.connect.DeltaSink",
        "delta.location": str(tmp_path / "tables"),
        "delta.tables": "rows",
        "delta.tables.auto-create-enabled": "true",
        "delta.tables.upsert-mode-enabled": str(is_upserted).lower(),
        "delta.tables.default-id-columns": "id",
        "delta.control.commit.interval-ms": "100",
    }

    def found() -> list[int]:
        if not (tmp_path / "tables/rows/_delta_log").exists():
            return []
        return DeltaTable(tmp_path / "tables/rows").to_pyarrow_table()["id"].to_pylist()

    run(kafka, tmp_path, settings, DELTA_STEPS, engine, found)


@needs_spark
@pytest.mark.timeout(900)
@pytest.mark.parametrize("is_upserted", [False, True])
def test_each_record_is_a_row_of_iceberg_once(
    kafka: Kafka, tmp_path: Path, is_upserted: bool
) -> None:
    warehouse = tmp_path / "warehouse"
    settings = {
        "connector.class": "org.apache.iceberg.connect.IcebergSinkConnector",
        "iceberg.catalog": "lake",
        "iceberg.catalog.type": "hadoop",
        "iceberg.catalog.warehouse": f"file://{warehouse}",
        "iceberg.tables": "db.rows",
        "iceberg.tables.auto-create-enabled": "true",
        "iceberg.tables.upsert-mode-enabled": str(is_upserted).lower(),
        "iceberg.tables.default-id-columns": "id",
        "iceberg.control.commit.interval-ms": "100",
    }

    def found() -> list[int]:
        from pyiceberg.table import StaticTable  # takes a second, which every run would wait for

        versions = (warehouse / "db/rows/metadata").glob("v*.metadata.json")
        newest = max(versions, key=lambda one: int(one.name[1:].partition(".")[0]), default=None)
        if newest is None:
            return []
        return StaticTable.from_metadata(f"file://{newest}").scan().to_arrow()["id"].to_pylist()

    run(kafka, tmp_path, settings, ICEBERG_STEPS, "spark", found)
