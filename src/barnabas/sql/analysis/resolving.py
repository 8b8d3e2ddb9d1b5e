"""Names in a query: which source each column belongs to, and what each selected column is called.

After `resolve`, every reference to a known column names its source, and every selected expression
has an alias.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from barnabas.sql.analysis.environment import Environment
from barnabas.sql.analysis.metastore import DataSource
from barnabas.sql.analysis.schemas import (
    AliasGenerator,
    could_be_synthetic_key,
    joined_name,
    joined_words,
    planning_schema,
)
from barnabas.sql.errors import AnalysisError, PrepareError
from barnabas.sql.names import repeated
from barnabas.sql.schema import PSEUDO_COLUMNS, WINDOW_BOUNDS, Schema
from barnabas.sql.syntax.expressions import ColumnReference, Expression, Lambda
from barnabas.sql.syntax.printer import message_text
from barnabas.sql.syntax.rewriting import column_references, rewrite
from barnabas.sql.syntax.tree import (
    AllColumns,
    Join,
    Query,
    SelectItem,
    SingleColumn,
    Source,
    StructAll,
)


@dataclass(frozen=True)
class AliasedSource:
    """A source of a query by the name that it has there."""

    alias: str
    source: DataSource

    def has(self, column: str) -> bool:
        """Return whether a query finds the column in the source."""
        if column in PSEUDO_COLUMNS:
            return True
        if column in WINDOW_BOUNDS and self.source.is_windowed:
            return True
        return self.source.schema.find(column) is not None


def resolve(query: Query, environment: Environment) -> tuple[Query, tuple[AliasedSource, ...]]:
    """The query with all names resolved, and its sources in order; raises AnalysisError."""
    sources = [_aliased(query.source, environment)]
    sources += [_aliased(join.source, environment) for join in query.joins]
    resolver = _Resolver(tuple(sources), is_join=bool(query.joins))
    resolved = replace(
        query,
        select=tuple(map(resolver.select_item, query.select)),
        joins=tuple(map(resolver.join, query.joins)),
        where=resolver.maybe(query.where),
        group_by=resolver.grouping(query.group_by, "GROUP BY"),
        partition_by=resolver.grouping(query.partition_by, "PARTITION BY"),
        having=resolver.maybe(query.having),
    )
    return resolved, tuple(sources)


def _aliased(source: Source, environment: Environment) -> AliasedSource:
    known = environment.metastore.source(source.name)
    if known is None:
        hint = environment.metastore.hint(source.name)
        raise AnalysisError(f"{source.name} does not exist.{hint}")
    return AliasedSource(source.alias, known)


class _Resolver:
    def __init__(self, sources: tuple[AliasedSource, ...], *, is_join: bool) -> None:
        self._sources = sources
        self._is_join = is_join
        schemas = [source.source.schema for source in sources]
        self._aliases = AliasGenerator(schemas)
        names = [name for schema in schemas for name in {c.name for c in schema.columns}]
        self._clashing = repeated(names)
        self._lambda_parameters: tuple[str, ...] = ()

    def maybe(self, expression: Expression | None) -> Expression | None:
        return None if expression is None else self.expression(expression)

    def expression(self, expression: Expression) -> Expression:
        return rewrite(expression, self._replacement)

    def grouping(
        self, expressions: tuple[Expression, ...] | None, clause: str
    ) -> tuple[Expression, ...] | None:
        if expressions is None:
            return None
        if not expressions:
            raise PrepareError(f"{clause} requires at least one expression")
        resolved = tuple(map(self.expression, expressions))
        for place, expression in enumerate(resolved):
            if expression in resolved[:place]:
                raise AnalysisError(f"Duplicate {clause} expression: {message_text(expression)}")
        return resolved

    def join(self, join: Join) -> Join:
        return replace(join, condition=self.expression(join.condition))

    def select_item(self, item: SelectItem) -> SelectItem:
        match item:
            case AllColumns():
                return item
            case StructAll():
                return replace(item, base=self.expression(item.base))
            case SingleColumn():
                expression = self.expression(item.expression)
                alias = self._alias(expression) if item.alias is None else item.alias
                return replace(item, expression=expression, alias=alias)

    def _alias(self, expression: Expression) -> str:
        if not isinstance(expression, ColumnReference):
            return self._aliases.alias_for(expression)
        name, source = expression.name, expression.source
        clashes = self._is_join and (name in PSEUDO_COLUMNS or name in self._clashing)
        return joined_name(source, name) if source is not None and clashes else name

    def _replacement(self, expression: Expression) -> Expression | None:
        match expression:
            case ColumnReference(source=None):
                return self._qualified(expression)
            case Lambda():
                return self._checked_lambda(expression)
            case _:
                return None

    def _qualified(self, column: ColumnReference) -> ColumnReference | None:
        aliases = [source.alias for source in self._sources if source.has(column.name)]
        if len(aliases) > 1:
            names = sorted(f"{alias}.{column.name}" for alias in aliases)
            place = column.place
            where = f"Line: {place.line}, Col: {place.column}: " if place else ""
            raise AnalysisError(
                f"Exception while preparing statement: {where}Column '{column.name}' is ambiguous. "
                f"Could be {joined_words(names, ' or ')}."
            )
        return replace(column, source=aliases[0]) if aliases else None

    def _checked_lambda(self, expression: Lambda) -> Expression:
        for parameter in expression.parameters:
            if any(source.source.schema.find(parameter) for source in self._sources):
                raise AnalysisError(f"Lambda function argument can't be a column name: {parameter}")
            if parameter in self._lambda_parameters:
                raise AnalysisError("Reusing lambda arguments in nested lambda is not allowed")
        outer = self._lambda_parameters
        self._lambda_parameters = outer + expression.parameters
        body = self.expression(expression.body)
        self._lambda_parameters = outer
        return replace(expression, body=body)


# -- columns of sources that the clauses of a query refer to: each must be known


def schema_of(aliased: AliasedSource, *, with_window: bool) -> Schema:
    """Return a source's columns as a query sees them; `with_window`: the query makes windows."""
    source = aliased.source
    return planning_schema(source.schema, is_windowed=source.is_windowed or with_window)


def check_known(
    expression: Expression, schemas: dict[str, Schema], clause: str, *, may_be_synthetic: bool
) -> set[str]:
    """Raise AnalysisError for a column that no source has; gives the sources that are used."""
    used = set()
    for column in column_references(expression):
        columns = [
            alias
            for alias, schema in schemas.items()
            if column.source in (None, alias) and schema.find(column.name) is not None
        ]
        is_bound = column.source is None and column.name in WINDOW_BOUNDS and len(columns) > 1
        if not columns or is_bound:
            synthetic = clause == "SELECT" and column.source is None
            if may_be_synthetic and synthetic and could_be_synthetic_key(column.name):
                continue
            raise _unknown_column(column, clause)
        used.add(column.source or columns[0])
    return used


def _unknown_column(column: ColumnReference, clause: str) -> AnalysisError:
    shown = message_text(column)
    text = f"{clause} column '{shown}' cannot be resolved."
    if clause == "PARTITION BY":
        text += (
            f" '{shown}' must be a column in the source schema since PARTITION BY is applied on "
            "the input."
        )
    return AnalysisError(text, column.place)
