"""Runs one case in memory: statements through the analysis, records through the driver."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

from barnabas.schemas.errors import FormatError
from barnabas.sql.errors import SqlError
from barnabas.sql.formats.format import topic_of
from barnabas.sql.functions.catalog import Function
from barnabas.sql.runtime.compiler import PlanCompiler
from barnabas.sql.runtime.driver import Driver
from barnabas.sql.syntax.parser import parse
from barnabas.sql.syntax.tree import CreateSource, CreateType
from barnabas.sql.testing.outcome import MismatchError, check_outputs
from barnabas.sql.testing.world import World
from ksql_cases.cases import Case
from ksql_cases.columns import ColumnDriver


def run(case: Case, functions: Mapping[str, Function], *, as_columns: bool = False) -> None:
    """Run a case, by records or as columns. Raises MismatchError, or the error that occurred."""
    world = World(functions, dict(case.content.get("properties", {})))
    if case.error is not None:
        _run_to_error(case, world, as_columns=as_columns)
        return
    driver = _piped(case, world, as_columns=as_columns)
    given = {spec["topic"] for spec in case.content.get("inputs", [])}
    given |= {topic for topic, _ in world.inserted}
    check_outputs(world, driver, case.content.get("outputs", []), given)
    _check_sources(case, world)


def _piped(case: Case, world: World, *, as_columns: bool) -> Driver:
    prepare(case, world)
    world.run("\n".join(case.statements))
    plans = list(world.plans.values())
    if as_columns:
        driver: Driver = ColumnDriver(plans, world)
    else:
        driver = Driver(
            plans,
            PlanCompiler(world.functions, world.properties),
            schemas=world.schemas,
            log=lambda message, _row, cause: world.log.append(f"{message}: {cause!r}"),
        )
    for topic, record in world.inserted:
        driver.pipe(topic, record)
    for spec in case.content.get("inputs", []):
        driver.pipe(*world.record(spec))
    return driver


def prepare(case: Case, world: World) -> None:
    """Give the world the topics and schemas that a case says are there before its statements.

    Schemas of columns that statements declare come first, as ksqlDB's own runner has it: cases
    count on the ids that follow.
    """
    _add_declared(case, world)
    world.add_topics(case.content.get("topics", []))


def _add_declared(case: Case, world: World) -> None:
    given = {t["name"] for t in case.content.get("topics", []) if isinstance(t, dict)}
    trial = World(world.functions, dict(world.properties))
    with suppress(SqlError):
        for parsed in parse("\n".join(case.statements)):
            if isinstance(parsed.statement, CreateSource | CreateType):
                with suppress(SqlError, FormatError):
                    trial.statement(parsed)
    for subject, ids in trial.schemas.subjects.items():
        if topic_of(subject) not in given:
            schema = trial.schemas.by_id(ids[-1])
            world.schemas.add(subject, schema.type, schema.text)


def _run_to_error(case: Case, world: World, *, as_columns: bool) -> None:
    try:
        _piped(case, world, as_columns=as_columns)
    except Exception as error:  # any error may be the expected one: its text counts
        message = error.with_statement() if isinstance(error, SqlError) else str(error)
        if (case.error or "") not in message:
            kind = type(error).__name__
            raise MismatchError(f"expected error {case.error!r}, got {kind} {message!r}") from error
        return
    raise MismatchError(f"expected error {case.error!r}, got none")


def _check_sources(case: Case, world: World) -> None:
    for expected in case.content.get("post", {}).get("sources", []):
        source = world.metastore.source(expected["name"])
        if source is None:
            raise MismatchError(f"there is no source {expected['name']}")
        kind = expected.get("type")
        if kind is not None and source.kind.value != kind.upper():
            raise MismatchError(f"{source.name} is a {source.kind.value}")
        schema = expected.get("schema")
        if schema is not None and _plain(str(source.schema)) != _plain(schema):
            raise MismatchError(f"{source.name} has the schema {source.schema}, expected {schema}")


def _plain(schema: str) -> str:
    """A schema's text without what may be written in several ways."""
    plain = " ".join(schema.replace("`", "").replace("PRIMARY KEY", "KEY").upper().split())
    for other, name in (("VARCHAR", "STRING"), ("INTEGER", "INT"), (", ", ","), (" ,", ",")):
        plain = plain.replace(other, name)
    return plain.replace("< ", "<").replace(" >", ">").replace("( ", "(").replace(" )", ")")
