"""The node of GROUP BY: prepares columns, groups, aggregates, filters by HAVING and selects.

Select (what groups and aggregates need)  ->  GroupBy  ->  Aggregate  [-> Suppress]
[-> Filter (HAVING)]  ->  Select (the result)
"""

from __future__ import annotations

from collections.abc import Sequence

from barnabas.sql.analysis.aggregates import AGGREGATE, analyse_aggregates, with_aggregates
from barnabas.sql.analysis.environment import Environment, check_condition
from barnabas.sql.analysis.new_keys import repartition_needed
from barnabas.sql.analysis.nodes import BuildContext, Built, KeyFormat, PlanNode, missing_keys
from barnabas.sql.analysis.project_node import rewritten_items, select_step, selected_columns
from barnabas.sql.analysis.projection import ONCE, projected_schema
from barnabas.sql.analysis.query import ALL_ROWS, QueryAnalysis
from barnabas.sql.analysis.schemas import (
    AliasGenerator,
    build_schema,
    check_clash,
    joined_words,
    key_column,
    planning_schema,
    quoted_names,
    value_column,
)
from barnabas.sql.analysis.timestamps import with_timestamps
from barnabas.sql.errors import AnalysisError
from barnabas.sql.expressions.calls import AggregateCall, aggregate_call
from barnabas.sql.expressions.scope import Scope
from barnabas.sql.expressions.typing import type_of
from barnabas.sql.formats.catalog import format_named
from barnabas.sql.plan import steps
from barnabas.sql.plan.steps import FormatChoice, SelectedColumn, Step, WindowInfo
from barnabas.sql.schema import WINDOW_BOUNDS, Column, Schema
from barnabas.sql.syntax.expressions import ColumnReference, Expression, FunctionCall
from barnabas.sql.syntax.printer import message_text
from barnabas.sql.syntax.rewriting import column_references
from barnabas.sql.syntax.tree import Emit, SourceKind, Window, WindowKind
from barnabas.sql.types import BYTES

_INTERNAL = "KSQL_INTERNAL_COL_"


class AggregateNode(PlanNode):
    """A table of groups. `target`: see `project_node.selected_columns`."""

    kind = SourceKind.TABLE

    def __init__(
        self,
        source: PlanNode,
        analysis: QueryAnalysis,
        environment: Environment,
        target: Schema | None,
    ) -> None:
        self.inputs = (source,)
        self._environment = environment
        self._analysis = analysis
        self._group_by = tuple(analysis.rewritten(e) for e in analysis.group_by or ())
        self._selected = selected_columns(source, rewritten_items(analysis), target)
        self._found = analyse_aggregates(
            analysis, [item.expression for item in self._selected], environment
        )
        for call in self._found.calls:  # what is aggregated must have a type
            environment.must_type(call.arguments[0], source.schema.columns)
        self.schema = self._result_schema(source.schema)
        having = analysis.query.having
        self._having = None if having is None else analysis.rewritten(having)
        if self._having is not None:
            check_condition(self._having, source.schema, "HAVING", environment)
        self._after_aggregation()

    # --- the result's columns ----------------------------------------------------------------

    def _result_schema(self, source: Schema) -> Schema:
        is_windowed = self._analysis.window is not None
        projected = projected_schema(
            planning_schema(source, is_windowed=is_windowed), self._selected, self._environment
        )
        names = [self._selected_name(expression) for expression in self._group_by]
        if self._analysis.is_persistent:
            values = [column for column in projected.value if column.name not in names]
            if not values:
                raise AnalysisError("The projection contains no value columns.")
        else:
            values = [value_column(column.name, column.type) for column in projected.columns]
        keys = []
        for expression, name in zip(self._group_by, names, strict=True):
            sql_type = self._environment.must_type(expression, source.columns)
            if name is None and isinstance(expression, ColumnReference):
                name = expression.name
            elif name is None:
                name = AliasGenerator([source]).alias_for(expression)
            keys.append(key_column(name, sql_type))
        if not self._analysis.is_persistent:
            keys = [key_column(f"KSQL_KEY_{column.name}", column.type) for column in keys]
        return build_schema((*keys, *values))

    def _selected_name(self, expression: Expression) -> str | None:
        """The name of a group's expression among the selected ones."""
        aliases = [item.name for item in self._selected if item.expression == expression]
        if len(aliases) > 1:
            names = joined_words(quoted_names(aliases), " and ")
            raise AnalysisError(
                f"The projection contains a key column more than once: {names}.\n{ONCE}"
            )
        return aliases[0] if aliases else None

    def _after_aggregation(self) -> None:
        """The selected expressions and HAVING, over the aggregation's columns.

        Each counts the aggregates through from the first: as in ksqlDB, HAVING has those that
        stand behind the selected ones.
        """
        expressions = [item.expression for item in self._selected]
        if self._having is not None:
            expressions.append(self._having)
        rewritten = with_aggregates(expressions, self._environment)
        if self._having is not None:
            self._having = with_timestamps(rewritten.pop())
        self._final = [
            SelectedColumn(item.name, expression)
            for item, expression in zip(self._selected, rewritten, strict=True)
            if not self._analysis.is_persistent or expression not in self._group_by
        ]

    @property
    def selected_expressions(self) -> list[Expression]:
        """The inputs of the result's columns, before the aggregation."""
        return [item.expression for item in self._selected]

    def check_sink_key(self, sink: str) -> None:
        """Raise AnalysisError if what is grouped by is not selected."""
        selected = [item.expression for item in self._selected]
        missing = [expression for expression in self._group_by if expression not in selected]
        if ALL_ROWS in missing:
            calls = ", ".join(map(message_text, self._found.calls))
            raise AnalysisError(
                f"CREATE TABLE AS SELECT statement does not support aggregate function [{calls}] "
                "without a GROUP BY clause."
            )
        if missing:
            raise missing_keys(sink, "grouping expression", list(map(message_text, missing)))
        values = [value_column(item.name, BYTES) for item in self._final]
        check_clash(Schema((*self.schema.key, *values)))

    # --- steps -------------------------------------------------------------------------------

    def build(self, context: BuildContext) -> Built:
        source = self.inputs[0].build(context)
        is_table = self.inputs[0].kind is SourceKind.TABLE
        prepared, names = self._prepared(source, is_table=is_table)
        grouped = self._grouped(prepared, source, is_table=is_table)
        step = self._aggregated(grouped, source, names, is_table=is_table)
        for item in self._final:
            context.environment.check(item.expression, step.schema.columns, "Select")
        if self._having is not None:
            context.environment.check(self._having, step.schema.columns, "Predicate")
            step = steps.TableFilter(step, self._having, step.schema)
        key_format = KeyFormat(source.key_format.format, window_of(self._analysis.window))
        result = select_step(self.kind, step, self.schema, self._final)
        return Built(result, self.schema, key_format)

    def _prepared(self, source: Built, *, is_table: bool) -> tuple[Step, dict[Expression, str]]:
        """The step that calculates what groups and aggregates need, and the names of it."""
        names: dict[Expression, str] = {}
        for expression in (*self._found.required, *self._found.arguments):
            if expression not in names:
                names[expression] = _name_or(expression, f"{_INTERNAL}{len(names)}")
        key = [key_column(column.name, column.type) for column in source.step.schema.key]
        of_key = {column.name for column in key}
        columns, values = [], []
        for expression, name in names.items():
            if name in of_key:
                continue
            sql_type = type_of(expression, self._scope(source.schema.columns))
            if sql_type is None:
                continue  # NULL as an argument: it stays one
            columns.append(SelectedColumn(name, expression))
            values.append(value_column(name, sql_type))
        held = of_key | {column.name for column in values}
        names = {e: name for e, name in names.items() if name in held}
        make = steps.TableSelect if is_table else steps.StreamSelect
        schema = build_schema((*key, *values))
        keys = tuple(column.name for column in key)
        return make(source.step, keys, tuple(columns), schema), names

    def _scope(self, columns: Sequence[Column]) -> Scope:
        return self._environment.expressions.scope(columns)

    def _grouped(self, prepared: Step, source: Built, *, is_table: bool) -> Step:
        columns = prepared.schema.columns
        if not is_table and not repartition_needed(source.schema, self._group_by):
            return steps.StreamGroupByKey(prepared, prepared.schema)
        aliases = AliasGenerator([prepared.schema])
        keys = []
        for expression in self._group_by:
            self._environment.check(expression, columns, "Group By")
            sql_type = self._environment.must_type(expression, columns)
            is_column = isinstance(expression, ColumnReference)
            alias = "" if is_column else aliases.alias_for(expression)
            keys.append(key_column(_name_or(expression, alias), sql_type))
        names = {column.name for column in keys}
        required = {column.name for column in self._found.required}
        required |= {column.name for column in prepared.schema.value}
        values = [
            value_column(column.name, column.type)
            for column in (*prepared.schema.value, *prepared.schema.key)
            if column.name not in names and column.name in required
        ]
        schema = build_schema((*keys, *values))
        make = steps.TableGroupBy if is_table else steps.StreamGroupBy
        return make(prepared, self._group_by, schema)

    def _aggregated(
        self, grouped: Step, source: Built, names: dict[Expression, str], *, is_table: bool
    ) -> Step:
        window = self._analysis.window
        kept = self._kept(grouped.schema)
        functions, made = [], []
        for place, call in enumerate(self._found.calls):
            aggregate = aggregate_call(call, self._scope(source.schema.columns), type_of)
            functions.append(_internal(call, aggregate, names))
            made.append(self._made(place, call, aggregate, is_table=is_table))
        bounds = [] if window is None else [value_column(*bound) for bound in WINDOW_BOUNDS.items()]
        schema = build_schema((*grouped.schema.key, *kept, *made, *bounds))
        kept_names = tuple(column.name for column in kept)
        if window is None:
            make = steps.TableAggregate if is_table else steps.StreamAggregate
            return make(grouped, kept_names, tuple(functions), schema)
        if is_table:
            raise AnalysisError("Windowing not supported for table aggregations.")
        step = steps.StreamWindowedAggregate(grouped, kept_names, tuple(functions), window, schema)
        if self._analysis.query.emit is Emit.FINAL:
            return steps.TableSuppress(step, schema)
        return step

    def _kept(self, grouped: Schema) -> list[Column]:
        """Columns that are needed after the aggregation, beside the key's."""
        after = [item.expression for item in self._final]
        if self._having is not None:
            after.append(self._having)
        used = {column.name for expression in after for column in column_references(expression)}
        return [
            column
            for column in grouped.value
            if column.name in used and not column.name.startswith(AGGREGATE)
        ]

    def _made(
        self, place: int, call: FunctionCall, aggregate: AggregateCall, *, is_table: bool
    ) -> Column:
        """The column of an aggregate; raises AnalysisError if it is not allowed here."""
        aggregator = aggregate.aggregator(dict(self._environment.properties))
        if is_table and not hasattr(aggregator, "remove"):
            raise self._not_of_tables()
        value = self.inputs[0].source_nodes[0].source.formats.value
        _check_state(value, value_column(f"{AGGREGATE}{place}", aggregator.state_type))
        return value_column(f"{AGGREGATE}{place}", aggregator.result_type)

    def _not_of_tables(self) -> AnalysisError:
        scope = self._scope(self.inputs[0].schema.columns)
        names: list[str] = []
        for call in self._found.calls:
            aggregate = aggregate_call(call, scope, type_of)
            aggregator = aggregate.aggregator(dict(self._environment.properties))
            if not hasattr(aggregator, "remove") and call.name not in names:
                names.append(call.name)
        plural = "" if len(names) == 1 else "s"
        return AnalysisError(
            f"The aggregation function{plural} {joined_words(names, ' and ')} cannot be applied to "
            "a table source, only to a stream source."
        )


def _name_or(expression: Expression, alias: str) -> str:
    """A column's own name, or the alias of anything else."""
    return expression.name if isinstance(expression, ColumnReference) else alias


def _internal(
    call: FunctionCall, aggregate: AggregateCall, names: dict[Expression, str]
) -> FunctionCall:
    """The call over the prepared columns; arguments that must be constants stay as they are."""
    arguments = [
        ColumnReference(names[argument], place=argument.place)
        if place < aggregate.column_count and argument in names
        else argument
        for place, argument in enumerate(call.arguments)
    ]
    return FunctionCall(call.name, tuple(arguments), place=call.place)


def _check_state(value: FormatChoice, state: Column) -> None:
    """ksqlDB keeps states in the format of values: what that cannot hold cannot be aggregated.
    Ours are kept in a format of our own, but a statement must mean the same in both."""
    try:
        format_named(value.name).check([state], {})
    except AnalysisError:
        raise AnalysisError(
            "One of the functions used in the statement has an intermediate type that the value "
            "format can not handle. Please remove the function or change the format.\n"
            "Consider up-voting https://github.com/confluentinc/ksql/issues/3950, which will "
            "resolve this limitation"
        ) from None


def window_of(window: Window | None) -> WindowInfo | None:
    """Return the window of a result's keys."""
    if window is None:
        return None
    return WindowInfo(window.kind, None if window.kind is WindowKind.SESSION else window.size_ms)
