"""Tests in one file of SQL, as ksqlDB's own: `--@test: name` begins each of them.

INSERT INTO … VALUES gives the input; ASSERT VALUES, ASSERT NULL VALUES, ASSERT STREAM and ASSERT
TABLE say what must be. `--@expected.error` and `--@expected.message` say how a test must fail.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

from barnabas.sql.analysis.analyse import analyse
from barnabas.sql.analysis.commands import CreateSourceCommand, InsertValuesCommand
from barnabas.sql.analysis.metastore import DataSource, MetaStore
from barnabas.sql.engine.inserting import inserted_row
from barnabas.sql.errors import SqlError
from barnabas.sql.functions.catalog import Function
from barnabas.sql.runtime.compiler import PlanCompiler
from barnabas.sql.runtime.driver import Driver
from barnabas.sql.schema import ROWTIME, Column, Part, Schema
from barnabas.sql.syntax.parser import parse
from barnabas.sql.syntax.tree import (
    AssertSource,
    AssertValues,
    CreateSource,
    InsertValues,
    RunScript,
    SourceKind,
)
from barnabas.sql.testing.kit import SqlTest
from barnabas.sql.testing.outcome import MismatchError, check_outputs
from barnabas.sql.testing.world import World
from barnabas.sql.types import BIGINT

_DIRECTIVE = re.compile(r"^--@([a-z.]+):[ \t]*(.*?)[ \t]*$", re.MULTILINE)
_BOUNDS = ("WINDOWSTART", "WINDOWEND")


@dataclass(frozen=True)
class SqlFileTest:
    """One test of a file; `error`: what the message of the error that it ends with holds."""

    path: str
    name: str
    text: str
    error: str | None = None


def read_tests(path: str) -> list[SqlFileTest]:
    """The tests of a file. Raises FileError, OSError."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    directives = list(_DIRECTIVE.finditer(text))
    starts = [index for index, directive in enumerate(directives) if directive[1] == "test"]
    if not starts:
        raise FileError(f"{path}: there is no line '--@test: name'")
    tests = []
    for start, following in zip(starts, [*starts[1:], len(directives)], strict=True):
        own = {directive[1]: directive[2] for directive in directives[start:following]}
        end = len(text) if following == len(directives) else directives[following].start()
        error = own.get("expected.message")
        if error is None and "expected.error" in own:
            error = ""
        body = text[directives[start].start() : end]
        tests.append(SqlFileTest(path, own["test"], body, error))
    return tests


def run_test(test: SqlFileTest, functions: Mapping[str, Function]) -> None:
    """Run one test of a file. Raises MismatchError, or SqlError for what it does not expect."""
    try:
        _run(test, functions)
    except (SqlError, MismatchError) as error:
        if test.error is None:
            raise
        if test.error not in str(error):
            raise MismatchError(f"expected the error {test.error!r}, got {error}") from error
        return
    if test.error is not None:
        raise MismatchError(f"expected the error {test.error!r}, got none")


def _run(test: SqlFileTest, functions: Mapping[str, Function]) -> None:
    with SqlTest(catalog=functions) as world:
        for parsed in parse(test.text, is_test=True):
            match parsed.statement:
                case AssertValues() as values:
                    _assert_values(world, values, functions)
                case AssertSource() as source:
                    _assert_source(world, source, functions)
                case RunScript(path):
                    world.execute_file(str(Path(test.path).parent / path))
                case _:
                    world.execute_one(parsed)


def _assert_values(
    world: SqlTest, statement: AssertValues, functions: Mapping[str, Function]
) -> None:
    """The next record has these values; columns that are not named may have any."""
    source = _source(world, statement.name)
    wanted = _wanted(source, statement, functions)
    actual = world.read_one(source.name)
    if actual is None:
        raise MismatchError(f"{source.name}: expected {wanted}, got no record")
    seen = {**(actual.key or {}), **(actual.value or {}), ROWTIME: actual.timestamp_ms}
    if actual.window is not None:
        seen |= zip(_BOUNDS, actual.window, strict=True)
    chosen = {name: seen.get(name) for name in wanted}
    is_tombstone = actual.value is None
    if is_tombstone != statement.is_tombstone or chosen != wanted:
        shown = f"{chosen}, deleted" if is_tombstone else f"{chosen}"
        raise MismatchError(
            f"Expected record does not match actual. {source.name}: expected {wanted}, got {shown}"
        )


def _wanted(
    source: DataSource, statement: AssertValues, functions: Mapping[str, Function]
) -> dict[str, Any]:
    """The values by names, converted as INSERT does."""
    schema = source.schema
    names = statement.columns or tuple(c.name for c in (*schema.key, *schema.value))
    columns = tuple(
        replace(column, part=Part.VALUE) for column in schema.columns if column.name in names
    )
    columns += tuple(Column(name, BIGINT) for name in _BOUNDS if name in names)
    plain = replace(source, schema=Schema(columns), kind=SourceKind.STREAM)
    plain = replace(plain, window=None, is_source=False)
    insert = InsertValues(source.name, names, statement.values)
    command = analyse(insert, MetaStore({source.name: plain}), {}, functions)
    assert isinstance(command, InsertValuesCommand)
    row = inserted_row(command, functions)
    wanted = dict(zip((column.name for column in columns), row.value or (), strict=True))
    if row.timestamp_ms is not None:
        wanted[ROWTIME] = row.timestamp_ms
    return wanted


def _assert_source(
    world: SqlTest, statement: AssertSource, functions: Mapping[str, Function]
) -> None:
    """The stream or table is as a CREATE of the same words makes it."""
    actual = _source(world, statement.name)
    create = CreateSource(statement.kind, statement.name, statement.elements, statement.properties)
    command = analyse(create, MetaStore(), {}, functions)
    assert isinstance(command, CreateSourceCommand)
    wanted = command.source
    for what, expected, current in (
        ("type", wanted.kind.value, actual.kind.value),
        ("schema", wanted.schema, actual.schema),
        ("kafka topic", wanted.topic, actual.topic),
        ("key format", wanted.formats.key.name, actual.formats.key.name),
        ("value format", wanted.formats.value.name, actual.formats.value.name),
        ("value serde features", wanted.formats.value, actual.formats.value),
        ("window", wanted.window, actual.window),
        ("timestamp column", _column(wanted), _column(actual)),
        ("timestamp format", wanted.timestamp, actual.timestamp),
    ):
        if expected != current:
            raise MismatchError(
                f"Expected {what} does not match actual for source {actual.name}. "
                f"Expected: {expected}, Actual: {current}"
            )


def _column(source: DataSource) -> str | None:
    return None if source.timestamp is None else source.timestamp.name


def _source(world: SqlTest, name: str) -> DataSource:
    source = world.source(name)
    if source is None:
        raise MismatchError(f"There is no stream or table {name}")
    return source


# -- a test in three files: statements, records that go in, records that must come out
#
# The files are those of ksqlDB's ksql-test-runner: JSON with a list `inputs` and one `outputs`,
# whose records have a topic, a key, a value, a timestamp (by default 0), and perhaps a window and
# headers.


class FileError(Exception):
    """A file of a test cannot be used; the message begins with its name."""


def read_records(path: str, member: str) -> list[dict[str, Any]]:
    """The records that a file lists under `inputs` or `outputs`. Raises FileError, OSError."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    try:
        content = json.loads(text, parse_float=Decimal)
    except ValueError as error:
        raise FileError(f"{path}: {error}") from error
    records = content.get(member) if isinstance(content, dict) else None
    if not isinstance(records, list):
        raise FileError(f"{path}: there is no list {member!r}")
    if not records:
        raise FileError(f"{path}: the list {member!r} is empty")
    for number, record in enumerate(records):
        if not isinstance(record, dict) or not isinstance(record.get("topic"), str):
            raise FileError(f"{path}: {member}[{number}] names no topic")
    return records


def run_records(
    statements: str,
    inputs: Sequence[Mapping[str, Any]],
    outputs: Sequence[Mapping[str, Any]],
    functions: Mapping[str, Function],
) -> int:
    """Run the statements on the inputs, and compare: how many records came out as expected.

    All statements are done before the first record; what they insert goes in before the inputs.
    An output without a timestamp is expected at 0. Raises MismatchError, SqlError.
    """
    world = World(functions, {})
    world.run(statements)
    driver = Driver(
        list(world.plans.values()),
        PlanCompiler(world.functions, world.properties),
        schemas=world.schemas,
        log=lambda message, _row, cause: world.log.append(f"{message}: {cause}"),
    )
    for topic, record in world.inserted:
        driver.pipe(topic, record)
    for spec in inputs:
        driver.pipe(*world.record(spec))
    given = {spec["topic"] for spec in inputs} | {topic for topic, _ in world.inserted}
    check_outputs(world, driver, [{"timestamp": 0, **spec} for spec in outputs], given)
    return len(outputs)
