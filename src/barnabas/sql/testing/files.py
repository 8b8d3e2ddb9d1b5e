"""A test in three files: statements, records that go in, records that must come out.

The files are those of ksqlDB's ksql-test-runner: JSON with a list `inputs` and one `outputs`, whose
records have a topic, a key, a value, a timestamp (by default 0), and perhaps a window and
headers.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from barnabas.sql.functions.catalog import Function
from barnabas.sql.runtime.compiler import PlanCompiler
from barnabas.sql.runtime.driver import Driver
from barnabas.sql.testing.outcome import check_outputs
from barnabas.sql.testing.world import World


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
