"""Runs statements through parser and analysis, with nothing behind them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from barnabas.schemas.registry_client import SchemaStore
from barnabas.sql.analysis.analyse import analyse
from barnabas.sql.analysis.commands import Command, QueryCommand, apply
from barnabas.sql.analysis.metastore import MetaStore
from barnabas.sql.functions.built_in import functions
from barnabas.sql.plan.steps import QueryPlan
from barnabas.sql.syntax.parser import parse


class Statements:
    """A metastore that statements change."""

    def __init__(
        self,
        *,
        properties: Mapping[str, Any] | None = None,
        schemas: SchemaStore | None = None,
        topics: Mapping[str, int] | None = None,
    ) -> None:
        self.metastore = MetaStore()
        self.messages: list[str] = []
        self._properties = dict(properties or {})
        self._schemas = schemas
        self._topics = topics

    def run(self, text: str) -> Command:
        """Analyse and apply each statement of the text; gives the last one's command."""
        for parsed in parse(text):
            command = analyse(
                parsed.statement,
                self.metastore,
                self._properties,
                functions(),
                self._schemas,
                topics=self._topics,
                text=parsed.text,
            )
            self.messages.append(apply(command, self.metastore, parsed.text))
        return command

    def plan(self, text: str) -> QueryPlan:
        """The plan of the last statement."""
        command = self.run(text)
        assert isinstance(command, QueryCommand)
        return command.plan
