"""The environment in which a statement is analysed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from barnabas.schemas.registry_client import SchemaStore
from barnabas.sql.analysis.metastore import MetaStore
from barnabas.sql.analysis.timestamps import with_timestamps
from barnabas.sql.errors import AnalysisError
from barnabas.sql.expressions.compile import ExpressionCompiler
from barnabas.sql.functions.catalog import Function
from barnabas.sql.schema import Column, Schema
from barnabas.sql.syntax.expressions import Expression
from barnabas.sql.syntax.printer import message_text
from barnabas.sql.types import BOOLEAN, SqlType

DEFAULT_KEY_FORMAT = "ksql.persistence.default.format.key"
DEFAULT_VALUE_FORMAT = "ksql.persistence.default.format.value"
WRAP_SINGLE_VALUES = "ksql.persistence.wrap.single.values"
TOPIC_PREFIX = "ksql.output.topic.name.prefix"

DEFAULTS: Mapping[str, Any] = {DEFAULT_KEY_FORMAT: "KAFKA", TOPIC_PREFIX: ""}
"""Settings of ksqlDB that have another default than none."""


@dataclass(frozen=True)
class Environment:
    """`topics`: the number of partitions of each topic, where known. `text`: the statement."""

    metastore: MetaStore
    properties: Mapping[str, Any]
    functions: Mapping[str, Function]
    schemas: SchemaStore | None = None
    topics: Mapping[str, int] = field(default_factory=dict)
    text: str = ""

    def setting(self, name: str) -> Any:
        """A setting, or its default."""
        value = self.properties.get(name)
        return DEFAULTS.get(name) if value is None else value

    def is_aggregate(self, name: str) -> bool:
        """Return whether there is an aggregate of that name."""
        function = self.functions.get(name.upper())
        return function is not None and bool(function.aggregates)

    def is_table_function(self, name: str) -> bool:
        """Return whether there is a table function of that name."""
        function = self.functions.get(name.upper())
        return function is not None and bool(function.tables)

    @cached_property
    def expressions(self) -> ExpressionCompiler:
        """The compiler that knows the types of expressions."""
        return ExpressionCompiler(self.functions)

    def type_of(self, expression: Expression, columns: tuple[Column, ...]) -> SqlType | None:
        """The type of an expression over columns; raises AnalysisError."""
        return self.expressions.type_of(expression, columns)

    def check(self, expression: Expression, columns: tuple[Column, ...], what: str) -> None:
        """Raise AnalysisError, with `what` the expression is for, if it cannot be compiled."""
        try:
            self.expressions.compile(expression, columns)
        except AnalysisError as error:
            raise AnalysisError(f"Invalid {what}: {error.message}") from error

    def must_type(self, expression: Expression, columns: tuple[Column, ...]) -> SqlType:
        """As `type_of`, but NULL alone raises AnalysisError, too."""
        type_ = self.type_of(expression, columns)
        if type_ is None:
            raise AnalysisError(
                "Can't infer a type of null. Please explicitly cast it to a required type, e.g. "
                "CAST(null AS VARCHAR)."
            )
        return type_


def check_condition(
    condition: Expression, schema: Schema, clause: str, environment: Environment
) -> None:
    """Raise AnalysisError unless the condition is true or false over the schema's columns."""
    try:
        actual = environment.type_of(with_timestamps(condition), schema.columns)
    except AnalysisError as error:
        raise AnalysisError(f"Error in {clause} expression: {error.message}") from error
    if actual != BOOLEAN:
        shown = message_text(condition)
        raise AnalysisError(
            f"Type error in {clause} expression: Should evaluate to boolean but is {shown} "
            f"({actual}) instead."
        )
    if clause == "WHERE":
        environment.check(with_timestamps(condition), schema.columns, "Predicate")
