"""Plans of statements, for tests that run them."""

from __future__ import annotations

from collections.abc import Mapping

from barnabas.schemas.registry_client import SchemaStore
from barnabas.sql.analysis.analyse import analyse
from barnabas.sql.analysis.commands import QueryCommand, apply
from barnabas.sql.analysis.metastore import MetaStore
from barnabas.sql.functions.built_in import functions
from barnabas.sql.plan.steps import QueryPlan
from barnabas.sql.syntax.parser import parse


def plans_of(
    statements: str, topics: Mapping[str, int], schemas: SchemaStore | None = None
) -> list[QueryPlan]:
    """The plan of each query among the statements; `topics` have so many partitions."""
    metastore, made = MetaStore(), []
    for parsed in parse(statements):
        command = analyse(
            parsed.statement, metastore, {}, functions(), schemas, topics=topics, text=parsed.text
        )
        apply(command, metastore, parsed.text)
        if isinstance(command, QueryCommand):
            made.append(command.plan)
    return made
