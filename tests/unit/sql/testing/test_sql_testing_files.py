"""`barnabas sql test`: tests in files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from support.cli import Result, run_cli

STATEMENTS = """
CREATE STREAM t (id BIGINT KEY, name STRING) WITH (kafka_topic='t', value_format='DELIMITED');
CREATE STREAM s WITH (kafka_topic='S') AS SELECT * FROM t WHERE id > 100;
"""
INPUTS = [{"topic": "t", "key": 7, "value": "seven"}, {"topic": "t", "key": 101, "value": "more"}]
OUTPUT = {"topic": "S", "key": 101, "value": "more"}
SQL_TESTS = """
-- what stands before the first test belongs to none
--@test: rows pass
CREATE STREAM t (id INT KEY, name STRING) WITH (kafka_topic='t', value_format='JSON');
CREATE STREAM s AS SELECT * FROM t;
ASSERT STREAM s (id INT KEY, name STRING) WITH (kafka_topic='S', value_format='JSON');
INSERT INTO t (rowtime, id, name) VALUES (5, 1, 'a');
ASSERT VALUES s (rowtime, id, name) VALUES (5, 1, 'a');
INSERT INTO t (id, name) VALUES (2, 'b');
ASSERT VALUES s (name) VALUES ('b');

--@test: rows of tables go
CREATE TABLE t (id INT PRIMARY KEY, n INT) WITH (kafka_topic='t', value_format='JSON');
CREATE TABLE s AS SELECT * FROM t WHERE n > 0;
INSERT INTO t (id, n) VALUES (1, 1);
INSERT INTO t (id, n) VALUES (1, 0);
ASSERT VALUES s (id, n) VALUES (1, 1);
ASSERT NULL VALUES s (id) KEY (1);

--@test: an unknown source
--@expected.error: io.confluent.ksql.util.KsqlException
--@expected.message: NOWHERE does not exist
CREATE STREAM s AS SELECT * FROM nowhere;
"""


def three(directory: Path, inputs: Any, outputs: Any, *more: str) -> Result:
    files = {"s.sql": STATEMENTS, "i.json": json.dumps(inputs), "o.json": json.dumps(outputs)}
    for name, text in files.items():
        (directory / name).write_text(text)
    named = ("--sql-file", "s.sql", "--input-file", "i.json", "--output-file", "o.json")
    words = [str(directory / word) if word in files else word for word in named]
    return run_cli("sql", "test", *words, *more)


def test_three_files_that_agree(tmp_path: Path) -> None:
    result = three(tmp_path, {"inputs": INPUTS}, {"outputs": [OUTPUT]})
    assert (result.code, result.err) == (0, "")
    assert result.text.startswith("passed")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"key": 7}, "S[0]: expected key 7, got 101"),
        ({"value": "less"}, "S[0]: expected value 'less', got 'more'"),
        ({"timestamp": 3}, "S[0]: expected timestamp 3, got 0"),
        ({"topic": "OTHER"}, "OTHER[0]: expected 101 'more' at 0, got nothing"),
    ],
)
def test_three_files_that_do_not_agree(tmp_path: Path, change: dict[str, Any], words: str) -> None:
    result = three(tmp_path, {"inputs": INPUTS}, {"outputs": [{**OUTPUT, **change}]})
    assert result.code == 5
    assert words in result.err


@pytest.mark.parametrize(
    ("inputs", "outputs", "words"),
    [
        ({"inputs": []}, {"outputs": [OUTPUT]}, "i.json: the list 'inputs' is empty"),
        ({"inputs": INPUTS}, {"output": [OUTPUT]}, "o.json: there is no list 'outputs'"),
        ({"inputs": [{"key": 1}]}, {"outputs": [OUTPUT]}, "inputs[0] names no topic"),
    ],
)
def test_files_that_cannot_be_used(tmp_path: Path, inputs: Any, outputs: Any, words: str) -> None:
    result = three(tmp_path, inputs, outputs)
    assert result.code == 2
    assert words in result.err


def test_sql_tests_in_one_file(tmp_path: Path) -> None:
    path = tmp_path / "tests.sql"
    path.write_text(SQL_TESTS)
    result = run_cli("sql", "test", str(path), "--json")
    shown = [json.loads(line) for line in result.lines]
    assert result.code == 0, result.err
    assert [(one["test"].partition(": ")[2], one["passed"]) for one in shown] == [
        ("rows pass", True),
        ("rows of tables go", True),
        ("an unknown source", True),
    ]


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("VALUES ('b')", "VALUES ('c')", "Expected record does not match actual"),
        ("(5, 1, 'a');\nINSERT", "(6, 1, 'a');\nINSERT", "Expected record does not match actual"),
        ("ASSERT NULL VALUES s (id) KEY (1)", "ASSERT VALUES s (id, n) VALUES (1, 0)", "deleted"),
        ("kafka_topic='S'", "kafka_topic='T'", "Expected kafka topic does not match actual"),
        ("(id INT KEY, name STRING) WITH (kafka_topic='S'", "(id INT KEY) WITH (kafka_topic='S'",
         "Expected schema does not match actual"),
        ("NOWHERE does", "SOMEWHERE does", "expected the error 'SOMEWHERE does not exist'"),
        ("FROM nowhere", "FROM nowhere nowhere nowhere", "Syntax error at"),
    ],
)  # fmt: skip
def test_each_part_of_a_sql_test_can_fail(tmp_path: Path, old: str, new: str, words: str) -> None:
    path = tmp_path / "tests.sql"
    assert old in SQL_TESTS
    path.write_text(SQL_TESTS.replace(old, new))
    result = run_cli("sql", "test", str(path))
    assert result.code == 5
    assert len([line for line in result.lines if line.startswith("FAILED")]) == 1
    assert words in result.err


def test_scripts_stand_beside_the_test(tmp_path: Path) -> None:
    (tmp_path / "script.sql").write_text(STATEMENTS)
    (tmp_path / "tests.sql").write_text(
        "--@test: script\nRUN SCRIPT 'script.sql';\n"
        "INSERT INTO t (id, name) VALUES (CAST(200 AS BIGINT), 'x');\n"
        "ASSERT VALUES s (name) VALUES ('x');\n"
    )
    result = run_cli("sql", "test", str(tmp_path / "tests.sql"))
    assert result.code == 0, result.err


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        ((), 2, "give --sql-file"),
        (("--sql-file", "s.sql"), 2, "needs --output-file"),
        (("nowhere.sql",), 4, "nowhere.sql"),
        (("x.sql", "--sql-file", "y.sql"), 2, "give --sql-file"),
    ],
)
def test_what_is_missing_is_told(arguments: tuple[str, ...], code: int, words: str) -> None:
    result = run_cli("sql", "test", *arguments)
    assert result.code == code
    assert words in result.err
