"""What the benchmark of connectors works out by itself: turns, rows, and its table."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.connect.converters.json import JsonConverter

sys.path.append(str(Path(__file__).parents[3]))  # the benchmark is no part of the package

from bench.connectors.lake import rows_of_objects, table_rows
from bench.connectors.sinks import rows_of
from bench.connectors.workers import in_turn
from bench.figures import CONNECT_FIGURES, NOT_THERE
from bench.report import CONNECT_RUNNERS, render_table
from bench.settings import RESULTS

THREE = ("kafka", "barnabas", "spark")


@pytest.mark.parametrize(
    ("runners", "number", "expected"),
    [
        (THREE, 0, ["kafka", "barnabas", "spark"]),
        (THREE, 1, ["barnabas", "spark", "kafka"]),
        (THREE, 2, ["spark", "kafka", "barnabas"]),
        (THREE, 3, ["kafka", "barnabas", "spark"]),
        (("kafka", "spark"), 1, ["spark", "kafka"]),
    ],
)
def test_each_round_begins_with_another_runner(
    runners: tuple[str, ...], number: int, expected: list[str]
) -> None:
    assert in_turn(runners, number) == expected


@pytest.mark.parametrize(
    ("metadata", "expected"),
    [
        ({}, 0),
        ({"current-snapshot-id": -1, "snapshots": []}, 0),
        (
            {
                "current-snapshot-id": 7,
                "snapshots": [
                    {"snapshot-id": 7, "summary": {"total-records": "12"}},
                    {"snapshot-id": 8, "summary": {"total-records": "99"}},
                ],
            },
            12,
        ),
    ],
    ids=["new", "without a snapshot", "a branch is ahead"],
)
def test_rows_of_an_iceberg_table(metadata: dict[str, object], expected: int) -> None:
    assert table_rows(metadata) == expected


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ([], 0),
        (["t/partition=0/t+0+0000000000.json"], 5),
        (["t/t+0+0000000000.json", "t/t+0+0000020000.json", "t/t+0+0000010000.json"], 20005),
    ],
    ids=["none", "one", "in any order"],
)
def test_rows_in_objects(keys: list[str], expected: int) -> None:
    assert rows_of_objects(keys, lambda key: 5) == expected


def test_rows_are_read_by_the_converter_of_the_worker() -> None:
    converter = JsonConverter()
    converter.configure({}, is_key=False)
    found = []
    for key, value in rows_of(7, 2):
        schema, row = converter.to_connect("t", value)
        assert schema is not None
        found.append(
            (json.loads(key)["payload"], dict(zip(_names(schema), row.values, strict=True)))
        )
    assert found == [
        (
            {"id": number},
            {
                "id": number,
                "station": f"station-{number}",
                "kwh": number / 7,
                "note": "x" * 40,
            },
        )
        for number in (7, 8)
    ]


def _names(schema: object) -> Iterator[str]:
    return (field.name for field in schema.fields)  # type: ignore[attr-defined]


def test_the_table_says_where_there_is_no_connector() -> None:
    rounds = [
        {
            "kafka": {"connect_iceberg_topic_s": 3000.0},
            "barnabas": {"connect_s3_topic_s": 1000.0},
            "spark": {"connect_s3_topic_s": 2000.0, "connect_iceberg_topic_s": 1500.0},
        },
        {"barnabas": {"connect_s3_topic_s": 3000.0}},
    ]
    machine = dict.fromkeys(("cpu", "cores", "kernel", "python", "java", "barnabas", "kafka"), "x")
    table = render_table(
        {
            "rounds": rounds,
            "limits": {},
            "quick": False,
            "date": "2026-11-23",
            "machine": {**machine, "memory_gb": 1},
        }
    )
    assert (
        "| S3: topic to bucket, JSON, rows/s | none in Maven Central |  | 2,000 | 2,000 |" in table
    )
    assert "| Iceberg: topic to table, rows/s | 3,000 |  | Spark only | 1,500 |" in table


def test_what_is_not_there_are_figures_and_runners() -> None:
    names = {figure.name for figure in CONNECT_FIGURES}
    assert [(name, who) for name, who in NOT_THERE if name not in names] == []
    assert {who for _, who in NOT_THERE} <= set(CONNECT_RUNNERS)


def test_stored_results_have_only_figures_that_are_shown() -> None:
    shown = {figure.name for figure in CONNECT_FIGURES}
    for path in sorted((RESULTS / "connectors").glob("*.json")):
        for each in json.loads(path.read_text())["rounds"]:
            for runner, figures in each.items():
                assert runner in CONNECT_RUNNERS, path
                assert set(figures) <= shown, path
