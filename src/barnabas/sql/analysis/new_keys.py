"""New keys: PARTITION BY, and the steps that give records or rows another key."""

from __future__ import annotations

from collections.abc import Sequence

from barnabas.sql.analysis.environment import Environment
from barnabas.sql.analysis.nodes import BuildContext, Built, KeyFormat, PlanNode, missing_keys
from barnabas.sql.analysis.projection import Projection
from barnabas.sql.analysis.query import QueryAnalysis
from barnabas.sql.analysis.schemas import (
    AliasGenerator,
    build_schema,
    key_column,
    star_order,
    value_column,
    value_named,
)
from barnabas.sql.errors import AnalysisError
from barnabas.sql.names import backquoted
from barnabas.sql.plan import steps
from barnabas.sql.schema import Schema
from barnabas.sql.syntax.expressions import ColumnReference, Expression, NullLiteral
from barnabas.sql.syntax.printer import message_text
from barnabas.sql.syntax.tree import SourceKind


def is_null_key(expressions: Sequence[Expression]) -> bool:
    """Whether PARTITION BY takes the key away; raises AnalysisError for NULL among others."""
    if not any(isinstance(expression, NullLiteral) for expression in expressions):
        return False
    if len(expressions) > 1:
        raise AnalysisError("Cannot PARTITION BY multiple columns including NULL")
    return True


def repartition_needed(schema: Schema, expressions: Sequence[Expression]) -> bool:
    """Return whether records have to move: not if their only key column stays the key."""
    if len(schema.key) != 1 or len(expressions) != 1:
        return True
    expression = expressions[0]
    return not isinstance(expression, ColumnReference) or expression.name != schema.key[0].name


def repartitioned_schema(
    schema: Schema, expressions: Sequence[Expression], environment: Environment
) -> Schema:
    """The planning schema of records with that new key."""
    if is_null_key(expressions):
        return build_schema(schema.value)
    aliases = AliasGenerator([schema])
    keys, appended = [], []
    for expression in expressions:
        sql_type = environment.must_type(expression, schema.columns)
        if isinstance(expression, ColumnReference):
            if value_named(schema, expression.name) is None:
                raise AnalysisError(f"Unknown partition by column: {backquoted(expression.name)}")
            keys.append(key_column(expression.name, sql_type))
        else:
            name = aliases.alias_for(expression)
            keys.append(key_column(name, sql_type))
            appended.append(value_column(name, sql_type))
    return build_schema((*keys, *schema.value, *appended))


def rekeyed_step_schema(source: Schema, schema: Schema) -> Schema:
    """Return the schema of a step that changes the key: the new key, and all columns not in it."""
    keys = {column.name for column in schema.key}
    kept = [
        value_column(column.name, column.type)
        for column in (*source.value, *source.headers, *source.key)
        if column.name not in keys
    ]
    return build_schema((*schema.key, *kept))


class PartitionByNode(PlanNode):
    """PARTITION BY."""

    def __init__(self, source: PlanNode, analysis: QueryAnalysis, environment: Environment) -> None:
        self.inputs = (source,)
        self.kind, self.alias = source.kind, source.alias
        original = analysis.query.partition_by or ()
        self._shown = [message_text(expression) for expression in original]
        self._expressions = tuple(map(analysis.rewritten, original))
        for expression in self._expressions:
            environment.check(expression, source.schema.columns, "SelectKey")
        self.schema = repartitioned_schema(source.schema, self._expressions, environment)

    def build(self, context: BuildContext) -> Built:
        source = self.inputs[0].build(context)
        return rekeyed(self, source, self._expressions, source.key_format, forced=False)

    def resolve_select(self, index: int, expression: Expression) -> Expression:
        for place, key in enumerate(self._expressions):
            if key == expression and self.schema.key:
                return ColumnReference(self.schema.key[place].name)
        return expression

    def select_star(self, source: str | None) -> list[str]:
        return star_order(self.schema.value, self.schema)

    def check_key(self, sink: str, projection: Projection) -> None:
        if is_null_key(self._expressions):
            return
        if not all(projection.contains(expression) for expression in self._expressions):
            raise missing_keys(sink, "partitioning expression", self._shown)


_WINDOWED = (
    "Implicit repartitioning of windowed sources is not supported. See "
    "https://github.com/confluentinc/ksql/issues/4385."
)


def rekeyed(
    node: PlanNode,
    source: Built,
    expressions: tuple[Expression, ...],
    key_format: KeyFormat,
    *,
    forced: bool,
) -> Built:
    """Give records or rows the node's key; `forced`: even if they have it already.

    A table keeps its key, which is only written again: joins need that if formats differ.
    Raises AnalysisError.
    """
    needed = repartition_needed(source.schema, expressions)
    if not forced and not needed and key_format == source.key_format:
        return source
    make: type[steps.NewKey]
    if node.kind is SourceKind.TABLE:
        make = steps.TableSelectKey
        _check_table(source, expressions, needed=needed, forced=forced)
    else:
        make = steps.StreamSelectKey
        if source.key_format.window is not None and (needed or not forced):
            raise AnalysisError(_WINDOWED)
    emitted = rekeyed_step_schema(source.step.schema, node.schema)
    return Built(make(source.step, expressions, emitted), node.schema, key_format)


def _check_table(
    source: Built, expressions: Sequence[Expression], *, needed: bool, forced: bool
) -> None:
    if len(source.schema.key) > 1:
        raise AnalysisError(
            "Cannot repartition a TABLE source. If this is a join, joins on tables with multiple "
            "columns is not yet supported."
        )
    if needed:
        raise AnalysisError(
            "Cannot repartition a TABLE source. If this is a join, make sure that the criteria "
            f"uses the TABLE's key column {source.schema.key[0].name} instead of "
            f"[{', '.join(map(message_text, expressions))}]"
        )
    if source.key_format.window is not None:
        hint = ""
        if forced:
            hint = (
                " As a result, ksqlDB does not support joins on windowed sources with "
                "Schema-Registry-enabled key formats (AVRO, JSON_SR, PROTOBUF) at this time. "
                "Please repartition your sources to use a different key format before performing "
                "the join."
            )
        raise AnalysisError(_WINDOWED + hint)
