"""Connectors reach only those files of the worker's machine that its settings allow."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from barnabas.connect import allowed_paths
from barnabas.connect.allowed_paths import (
    allow_paths,
    allow_paths_of_worker,
    check_files,
    database_paths,
    local_paths,
)
from barnabas.connect.allowed_plugins import NotAllowedError
from barnabas.connect.config.validation import WorkerRules, new_connector, validate_connector

SECRET = "/etc/passwd"
JDBC_SOURCE = "io.confluent.connect.jdbc.JdbcSourceConnector"
JDBC_SINK = "io.confluent.connect.jdbc.JdbcSinkConnector"
SPARK_SOURCE = "barnabas.connect.SparkSource"
SPARK_SINK = "barnabas.connect.SparkSink"
DELTA = "barnabas.connect.DeltaSink"
ICEBERG = "org.apache.iceberg.connect.IcebergSinkConnector"
REACHING = [
    (JDBC_SOURCE, "connection.url", "jdbc:sqlite:{}"),
    (JDBC_SINK, "connection.url", "jdbc:sqlite:{}?mode=rw"),
    (SPARK_SOURCE, "option.path", "{}"),
    (SPARK_SOURCE, "option.PATH", "file://{}"),
    (SPARK_SOURCE, "option.paths", '["s3a://bucket/x", "{}"]'),
    (SPARK_SOURCE, "option.avroSchemaUrl", "file:{}"),
    (SPARK_SOURCE, "checkpoint.location", "{}"),
    (SPARK_SINK, "option.path", "{}"),
    (SPARK_SINK, "option.checkpointLocation", "{}"),
    (DELTA, "delta.location", "{}"),
    (DELTA, "delta.location", "FILE://localhost{}"),
    (ICEBERG, "iceberg.catalog.warehouse", "{}"),
    (ICEBERG, "iceberg.catalog.uri", "jdbc:sqlite:{}"),
    (ICEBERG, "iceberg.tables.auto-create-props.location", "file:{}"),
]


@pytest.fixture(autouse=True)
def nothing_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(allowed_paths, "_directories", set())


def settings_with(class_name: str, name: str, value: str) -> dict[str, str]:
    return {"name": "c", "connector.class": class_name, "format": "csv", name: value}


def errors_of(settings: Mapping[str, str], name: str) -> str:
    answer: Any = validate_connector(settings, WorkerRules())
    found = [one["value"] for one in answer["configs"] if one["value"]["name"] == name]
    return " ".join(text for one in found for text in one["errors"])


@pytest.mark.parametrize(("class_name", "name", "form"), REACHING)
def test_a_file_of_the_machine_is_refused_unless_it_is_allowed(
    class_name: str, name: str, form: str, tmp_path: Path
) -> None:
    settings = settings_with(class_name, name, form.format(tmp_path / "data"))
    connector = new_connector(class_name)
    with pytest.raises(NotAllowedError, match=r"barnabas\.connect\.paths"):
        check_files(connector, settings)
    assert "barnabas.connect.paths" in errors_of(settings, name)
    allow_paths_of_worker({"barnabas.connect.paths": f"/nowhere, {tmp_path}"})
    check_files(connector, settings)
    assert "barnabas.connect.paths" not in errors_of(settings, name)
    with pytest.raises(NotAllowedError):
        check_files(connector, settings_with(class_name, name, form.format(SECRET)))
    allow_paths(["/"])
    check_files(connector, settings_with(class_name, name, form.format(SECRET)))


@pytest.mark.parametrize(
    ("class_name", "name", "value"),
    [
        (JDBC_SOURCE, "connection.url", "jdbc:postgresql://db:5432/shop"),
        (JDBC_SOURCE, "connection.url", "jdbc:sqlite::memory:"),
        (SPARK_SOURCE, "option.path", "s3a://bucket/in"),
        (SPARK_SOURCE, "option.url", "jdbc:mysql://db/shop"),
        (SPARK_SOURCE, "option.dbtable", "/etc"),
        (DELTA, "delta.location", "S3://bucket/lake"),
        (ICEBERG, "iceberg.catalog.warehouse", "hdfs://nodes/lake"),
        (ICEBERG, "iceberg.catalog.uri", "https://catalog.example"),
    ],
)
def test_other_machines_are_no_files(class_name: str, name: str, value: str) -> None:
    check_files(new_connector(class_name), settings_with(class_name, name, value))


def test_a_way_out_of_an_allowed_directory_is_refused(tmp_path: Path) -> None:
    inside = tmp_path / "inside"
    inside.mkdir()
    (inside / "link").symlink_to("/etc")
    allow_paths([str(inside)])
    connector = new_connector(DELTA)
    for text in (
        f"{inside}/../other",
        f"{inside}/{{a,../../../etc}}/passwd",
        f"{inside}/link/passwd",
        f"{inside}2",
        f"file:{inside}/%2e%2e/other",
        f"har:///{inside}",
        os.path.relpath("/etc"),
    ):
        with pytest.raises(NotAllowedError):
            check_files(connector, settings_with(DELTA, "delta.location", text))
    check_files(connector, settings_with(DELTA, "delta.location", f"{inside}/deeper/lake"))


def test_an_unknown_scheme_may_be_any_file() -> None:
    assert local_paths("har:///x", "viewfs://x", "abfss://c@a/x", "relative/x", "") == [
        *("/", "/", "relative/x"),
    ]
    assert database_paths("jdbc:derby:memory:x;databaseName=/etc") == ["/"]
    assert database_paths("jdbc:h2:mem:x;INIT=RUNSCRIPT FROM '/etc/x'") == ["/"]
    assert database_paths("jdbc:mysql://h/x") == []
