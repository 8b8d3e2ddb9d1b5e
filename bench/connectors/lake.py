"""Rows of a topic into an Iceberg table on this machine's disk, and into objects of its S3 server.

Iceberg's sink in Kafka's worker is held against ours on Spark, each with commits a second apart.
For S3's sinks there is nothing in Maven Central that Kafka's worker could run.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final

from bench.connectors.kafka_plugins import ICEBERG
from bench.connectors.s3 import BUCKET, client_of, make_bucket, s3_server, sink_settings
from bench.connectors.sinks import CONVERTERS, sink_rate
from bench.connectors.workers import Running, connector, in_turn
from bench.settings import Settings
from bench.wire import make_topic

Figures = dict[str, dict[str, float]]
_ICEBERG_RUNNERS: Final = ("kafka", "spark")
_S3_RUNNERS: Final = ("barnabas", "spark")
_FILE_RECORDS: Final = 10_000


def lake_round(port: int, directory: Path, settings: Settings, number: int) -> Figures:
    """Measure each runner with each sink."""
    figures: Figures = {}
    for runner in in_turn(_ICEBERG_RUNNERS, number):
        found = _iceberg(runner, port, directory, settings)
        figures.setdefault(runner, {}).update(found)
    with s3_server() as url:
        client = client_of(url)
        make_bucket(client)
        for runner in in_turn(_S3_RUNNERS, number):
            found = _s3(runner, port, directory, settings, url, client)
            figures.setdefault(runner, {}).update(found)
        client.close()
    return figures


def _iceberg(runner: str, port: int, directory: Path, settings: Settings) -> dict[str, float]:
    warehouse = directory / f"warehouse-{runner}"
    given = {
        "connector.class": "org.apache.iceberg.connect.IcebergSinkConnector",
        "iceberg.catalog": "lake",
        "iceberg.catalog.type": "hadoop",
        "iceberg.catalog.warehouse": warehouse.as_uri(),
        "iceberg.tables": "shop.charges",
        "iceberg.tables.auto-create-enabled": "true",
        "iceberg.control.topic": f"control-{runner}",
        "iceberg.control.commit.interval-ms": "1000",
    }
    if runner == "kafka":
        make_topic(port, f"control-{runner}", 1)
        given["iceberg.kafka.bootstrap.servers"] = f"127.0.0.1:{port}"
    table = warehouse / "shop" / "charges" / "metadata"
    return _measure("iceberg", runner, port, directory, settings, given, lambda: _rows_in(table))


def _s3(
    runner: str, port: int, directory: Path, settings: Settings, url: str, client: Any
) -> dict[str, float]:
    given = {
        **sink_settings(url, "json.JsonFormat", runner, _FILE_RECORDS),
        # After this time, a file is written even if it is not full.
        "rotate.schedule.interval.ms": "1000",
        "timezone": "UTC",
    }

    def written() -> int:
        pages = client.get_paginator("list_objects_v2").paginate(Bucket=BUCKET, Prefix=runner)
        keys = [item["Key"] for page in pages for item in page.get("Contents", ())]
        return rows_of_objects(keys, lambda key: _lines(client, key))

    return _measure("s3", runner, port, directory, settings, given, written)


def _measure(
    kind: str,
    runner: str,
    port: int,
    directory: Path,
    settings: Settings,
    given: dict[str, str],
    written: Callable[[], int],
) -> dict[str, float]:
    topic, servers = f"{kind}-{runner}", f"127.0.0.1:{port}"
    make_topic(port, topic, 1)
    given = {"name": topic, "topics": topic, **CONVERTERS, **given}
    running: Running
    with connector(runner, directory, servers, given, ICEBERG) as running:
        rows = settings.connect_lake_rows
        rows_s = sink_rate(running, servers, topic, rows, written, settings.timeout_seconds)
        memory_mb = running.memory_mb
    return {f"connect_{kind}_topic_s": rows_s, f"connect_{kind}_mb": memory_mb}


def _rows_in(metadata: Path) -> int:
    """The rows of a table of a Hadoop catalog, 0 where it is not there yet."""
    try:
        version = (metadata / "version-hint.text").read_text().strip()
        text = (metadata / f"v{version}.metadata.json").read_text()
    except FileNotFoundError:
        return 0
    return table_rows(json.loads(text))


def table_rows(metadata: dict[str, Any]) -> int:
    """The rows of a table, by Iceberg's metadata of it."""
    current = metadata.get("current-snapshot-id")
    for snapshot in metadata.get("snapshots", ()):
        if snapshot["snapshot-id"] == current:
            return int(snapshot["summary"]["total-records"])
    return 0


def rows_of_objects(keys: Iterable[str], lines: Callable[[str], int]) -> int:
    """Count the rows of one partition in objects that are named after their first offset.

    Only the last one is counted: it begins where those before it end.
    """
    first = {key: int(key.rpartition("+")[2].partition(".")[0]) for key in keys}
    if not first:
        return 0
    last = max(first, key=first.__getitem__)
    return first[last] + lines(last)


def _lines(client: Any, key: str) -> int:
    return int(client.get_object(Bucket=BUCKET, Key=key)["Body"].read().count(b"\n"))
