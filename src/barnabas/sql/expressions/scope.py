"""The meaning of names in an expression."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from barnabas.sql.errors import AnalysisError
from barnabas.sql.functions.catalog import Function
from barnabas.sql.schema import Column
from barnabas.sql.syntax.expressions import ColumnReference
from barnabas.sql.types import SqlType


@dataclass(frozen=True, slots=True)
class Scope:
    """Types of columns by name, functions by name in upper case, and types of the parameters of
    the lambdas around (None for those that are always NULL)."""

    columns: Mapping[str, SqlType]
    functions: Mapping[str, Function]
    variables: Mapping[str, SqlType | None] = field(default_factory=dict)

    @classmethod
    def of_columns(cls, columns: Iterable[Column], functions: Mapping[str, Function]) -> Scope:
        """A scope with those columns; of two with one name the first counts."""
        types: dict[str, SqlType] = {}
        for column in columns:
            types.setdefault(column.name, column.type)
        return cls(types, functions)

    def column_type(self, reference: ColumnReference) -> SqlType:
        """The type of a column; raises AnalysisError. `SOURCE.NAME` is looked up as it stands
        where no column NAME of one source is meant."""
        names = [reference.name]
        if reference.source is not None:
            names = [f"{reference.source}.{reference.name}", reference.name]
        for name in names:
            if name in self.columns:
                return self.columns[name]
        raise AnalysisError(f"Unknown column {names[0]}.")

    def function(self, name: str) -> Function:
        """The function of that name; raises AnalysisError."""
        try:
            return self.functions[name.upper()]
        except KeyError:
            raise AnalysisError(f"Can't find any functions with the name '{name}'") from None

    def with_variables(self, variables: Mapping[str, SqlType | None]) -> Scope:
        """The scope in the body of a lambda with those parameters."""
        return replace(self, variables={**self.variables, **variables})
