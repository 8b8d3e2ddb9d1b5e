"""The projection of a query: its expressions, and the columns that result from them."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from barnabas.sql import types
from barnabas.sql.analysis.environment import Environment
from barnabas.sql.analysis.schemas import build_schema, is_key, key_column, value_column
from barnabas.sql.decimals import fits, type_of_value, unit
from barnabas.sql.errors import AnalysisError
from barnabas.sql.names import backquoted
from barnabas.sql.plan.steps import SelectedColumn
from barnabas.sql.schema import Schema
from barnabas.sql.syntax import expressions as nodes
from barnabas.sql.syntax.expressions import ColumnReference, Dereference, Expression
from barnabas.sql.syntax.tree import AllColumns, SelectItem, SingleColumn, StructAll
from barnabas.sql.types import SqlType, Struct


class Projection:
    """The selected items, over the columns of a plan."""

    def __init__(self, items: Sequence[SelectItem]) -> None:
        stars = [item.source for item in items if isinstance(item, AllColumns)]
        self._has_star = None in stars
        self._stars = set(stars)
        self.single = [item.expression for item in items if isinstance(item, SingleColumn)]
        self._structs = [item.base for item in items if isinstance(item, StructAll)]

    def contains(self, expression: Expression) -> bool:
        """Return whether the expression is selected, by itself or by a `*`."""
        if self._has_star:
            return True
        if isinstance(expression, ColumnReference) and expression.source in self._stars:
            return expression.source is not None
        return expression in self.single or expression in self._structs


def projected_schema(
    parent: Schema, selected: Sequence[SelectedColumn], environment: Environment
) -> Schema:
    """The schema of what is selected. Key columns are those that are key columns of the parent;
    they keep the parent's order among themselves, not that of the statement."""
    of_key: list[list[SelectedColumn]] = [[] for _ in parent.key]
    for item in selected:
        place = _key_place(parent, item.expression)
        if place is not None:
            of_key[place].append(item)
    keys = iter([item for group in of_key for item in group])
    columns = []
    for item in selected:
        if _key_place(parent, item.expression) is not None:
            item = next(keys)
            sql_type = environment.must_type(item.expression, parent.columns)
            columns.append(key_column(item.name, sql_type))
        else:
            sql_type = environment.must_type(item.expression, parent.columns)
            columns.append(value_column(item.name, sql_type))
    return build_schema(columns)


def _key_place(parent: Schema, expression: Expression) -> int | None:
    if not isinstance(expression, ColumnReference):
        return None
    names = [column.name for column in parent.key]
    return names.index(expression.name) if expression.name in names else None


# --- the items of a SELECT -------------------------------------------------------------------


def struct_fields(base: Expression, parent: Schema) -> list[SelectedColumn]:
    """The columns that `base->*` stands for."""
    struct = _struct_type(base, parent)
    return [SelectedColumn(field.name, Dereference(base, field.name)) for field in struct.fields]


def _struct_type(expression: Expression, parent: Schema) -> Struct:
    if isinstance(expression, ColumnReference):
        column = parent.find(expression.name)
        if column is None or not isinstance(column.type, Struct):
            raise AnalysisError(f"Column {backquoted(expression.name)} is not a STRUCT type.")
        return column.type
    if isinstance(expression, Dereference):
        field = _struct_type(expression.base, parent).field(expression.name)
        if field is None:
            raise AnalysisError(f"Field {expression.name} was not found on STRUCT.")
        if not isinstance(field.type, Struct):
            raise AnalysisError(f"Field {expression.name} is not a STRUCT type.")
        return field.type
    raise AnalysisError("Unsupported struct column expression: only columns and their fields")


def cast_literal(expression: Expression, target: SqlType) -> Expression:
    """A number as a DECIMAL of the type that the sink's column has, if it fits."""
    if not isinstance(target, types.Decimal):
        return expression
    match expression:
        case nodes.IntegerLiteral() | nodes.LongLiteral():
            value = Decimal(expression.value)
        case nodes.DoubleLiteral():
            value = Decimal(repr(expression.value))
        case nodes.DecimalLiteral():
            value = expression.value
        case _:
            return expression
    if fits(type_of_value(value), target):
        return nodes.DecimalLiteral(value.quantize(unit(target.scale)), place=expression.place)
    return expression


def without_keys(selected: Sequence[SelectedColumn], parent: Schema) -> list[SelectedColumn]:
    """Return the selected columns beside the key's. Raises AnalysisError on repeated ones."""
    seen: dict[str, set[str]] = {}
    kept = []
    for item in selected:
        expression = item.expression
        if isinstance(expression, ColumnReference):
            if expression.name in ("WINDOWSTART", "WINDOWEND") and item.name == expression.name:
                continue
            if is_key(parent, expression.name):
                seen.setdefault(expression.name, set()).add(item.name)
                continue
        kept.append(item)
    for name, aliases in seen.items():
        if len(aliases) > 1:
            listed = " and ".join(sorted(aliases))
            raise AnalysisError(
                f"The projection contains a key column ({backquoted(name)}) more than once, "
                f"aliased as: {listed}.\n{ONCE}"
            )
    return kept


ONCE = (
    "Each key column must only be in the projection once. If you intended to copy the key into the "
    "value, then consider using the AS_VALUE function to indicate which key reference should be "
    "copied."
)
