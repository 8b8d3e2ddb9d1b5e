"""Statements and expressions that call functions of users, for tests."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from barnabas.sql.analysis.analyse import analyse
from barnabas.sql.analysis.commands import QueryCommand, apply
from barnabas.sql.analysis.metastore import MetaStore
from barnabas.sql.expressions.compile import compile_expression
from barnabas.sql.functions.built_in import functions
from barnabas.sql.functions.catalog import Function
from barnabas.sql.plan.steps import QueryPlan, StreamSink, TableSink
from barnabas.sql.runtime.compiler import PlanCompiler
from barnabas.sql.runtime.driver import Driver
from barnabas.sql.runtime.topics import TopicRecord
from barnabas.sql.syntax.parser import parse, parse_expression


def value_of(text: str, own: Mapping[str, Function]) -> Any:
    """Return what an expression without columns gives."""
    return compile_expression(parse_expression(text), (), {**functions(), **own}).evaluate(())


def type_of(text: str, own: Mapping[str, Function]) -> str:
    """The type of an expression without columns."""
    return str(compile_expression(parse_expression(text), (), {**functions(), **own}).type)


def planned(statements: str, catalog: Mapping[str, Function]) -> list[QueryPlan]:
    """The plans of the queries among the statements."""
    metastore, plans = MetaStore(), []
    for parsed in parse(statements):
        command = analyse(parsed.statement, metastore, {}, catalog, text=parsed.text)
        apply(command, metastore, parsed.text)
        if isinstance(command, QueryCommand):
            plans.append(command.plan)
    return plans


class Run:
    """Statements, then records of a topic as JSON, and what the last query writes.

    `log` has what the query noted.
    """

    def __init__(self, statements: str, own: Mapping[str, Function]) -> None:
        catalog = {**functions(), **own}
        plans = planned(statements, catalog)
        self.log: list[str] = []
        self._driver = Driver(plans, PlanCompiler(catalog, log=self._note), log=self._note)
        sink = plans[-1].step
        assert isinstance(sink, StreamSink | TableSink)
        self._topic = sink.topic

    def _note(self, message: str, _row: object, cause: BaseException | None) -> None:
        self.log.append(f"{message}: {cause}")

    def __call__(
        self, topic: str, records: Sequence[tuple[str, Mapping[str, Any] | None, int]]
    ) -> list[Any]:
        """Records are (key, value, timestamp); of what is written, the values."""
        for key, value, at in records:
            data = None if value is None else json.dumps(value).encode()
            self._driver.pipe(topic, TopicRecord(key.encode(), data, at))
        written = self._driver.topics[self._topic]
        return [None if r.value is None else json.loads(r.value) for r in written]
