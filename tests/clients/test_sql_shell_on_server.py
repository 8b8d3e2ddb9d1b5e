"""`barnabas sql` against `barnabas sql server` over a real node."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.cli import Result, run_cli
from support.node_process import wait_until
from support.sql_server_process import SqlServer, running

SCRIPT = """
SET 'auto.offset.reset' = 'earliest';
CREATE STREAM charges (station STRING KEY, kwh DOUBLE, plug STRUCT<kind STRING, amps INT>)
  WITH (kafka_topic='${topic}', value_format='JSON', partitions=1);
CREATE TABLE energy WITH (kafka_topic='energy-${topic}') AS
  SELECT station, SUM(kwh) AS kwh, COUNT(*) AS n FROM charges GROUP BY station;
INSERT INTO charges VALUES ('a', 7.5, STRUCT(kind := 'ccs', amps := 32));
INSERT INTO charges (station, kwh) VALUES ('a', 2.5);
INSERT INTO charges (station, kwh) VALUES ('b', 1);
SELECT * FROM charges EMIT CHANGES LIMIT 3;
PRINT '${topic}' FROM BEGINNING LIMIT 2;
"""


@pytest.fixture(scope="module")
def server(kafka_bootstrap_servers: str) -> Iterator[SqlServer]:
    with running(kafka_bootstrap_servers) as found:
        yield found


def sql(server: SqlServer, *arguments: str) -> Result:
    return run_cli("sql", "--server", server.url, *arguments)


def documents(server: SqlServer, statement: str) -> list[Any]:
    result = sql(server, "--json", "-e", statement)
    assert result.code == 0, result.err
    return [json.loads(line) for line in result.lines]


@pytest.fixture(scope="module")
def script(server: SqlServer, tmp_path_factory: pytest.TempPathFactory) -> Result:
    """The shell's result for the script."""
    path: Path = tmp_path_factory.mktemp("shell") / "script.sql"
    path.write_text(SCRIPT)
    result = sql(server, "-f", str(path), "--define", f"topic=charges-{server.suffix}")
    assert result.code == 0, result.err
    return result


def test_a_script_shows_messages_and_rows(script: Result) -> None:
    assert " Stream created" in script.lines
    cells = [[c.strip() for c in line.split("|")[1:-1]] for line in script.lines if line[:1] == "|"]
    assert cells == [
        ["STATION", "KWH", "PLUG"],
        ["a", "7.5", "{KIND=ccs, AMPS=32}"],
        ["a", "2.5", "null"],
        ["b", "1.0", "null"],
    ]
    assert len([line for line in script.lines if line.startswith("rowtime: ")]) == 2


@pytest.mark.usefixtures("script")
def test_rows_are_documents(server: SqlServer) -> None:
    rows = [{"STATION": "a", "KWH": 10.0, "N": 2}, {"STATION": "b", "KWH": 1.0, "N": 1}]
    found: list[Any] = []

    def is_so() -> bool:
        found[:] = documents(server, "SELECT * FROM energy;")
        return sorted(found, key=str) == sorted(rows, key=str)

    wait_until(is_so, "both rows", shown=lambda: found)


@pytest.mark.usefixtures("script")
@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("SHOW STREAMS;", " CHARGES     | charges-"),
        ("SHOW TABLES;", " ENERGY     | energy-charges-"),
        ("SHOW TOPICS;", " charges-"),
        ("SHOW QUERIES;", " | PERSISTENT | RUNNING:1 | ENERGY "),
        ("DEFINE a = 'b'; SHOW VARIABLES;", " a             | b"),
        ("SHOW FUNCTIONS;", " ABS "),
        ("SHOW PROPERTIES;", " ksql.service.id "),
        ("DESCRIBE charges;", " PLUG    | STRUCT<KIND VARCHAR(STRING), AMPS INTEGER>"),
        ("DESCRIBE energy EXTENDED;", "Key format           : KAFKA"),
        ("DESCRIBE FUNCTION mask;", "Variation   : MASK("),
        ("EXPLAIN SELECT * FROM charges EMIT CHANGES;", "Execution plan"),
    ],
)
def test_what_the_server_tells_is_drawn(server: SqlServer, statement: str, expected: str) -> None:
    result = sql(server, "-e", statement)
    assert result.code == 0, result.err
    assert any(expected in line for line in result.lines), result.text


@pytest.mark.usefixtures("script")
@pytest.mark.parametrize(
    ("statement", "marked"),
    [
        ("SELECT nope FROM energy;", ["  SELECT nope FROM energy;", "         ^^^^"]),
        ("SHOW\n STREEMS;", ["   STREEMS;", "   ^^^^^^^"]),
    ],
)
def test_places_of_errors(server: SqlServer, statement: str, marked: list[str]) -> None:
    result = sql(server, "-e", statement)
    assert result.code == 1
    assert result.err.splitlines()[:2] == marked


def test_properties_are_checked(server: SqlServer) -> None:
    result = sql(server, "-e", "SET 'ksql.service.id' = 'other_';")
    assert (result.code, "ksql.service.id" in result.err) == (1, True)
