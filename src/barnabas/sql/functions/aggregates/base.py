"""What most aggregates share: their types, and a state that is its own result."""

from __future__ import annotations

from collections.abc import Callable

from barnabas.sql.types import Field, SqlType, Struct, Value


class Plain:
    """An aggregate whose state is the value of the column."""

    def __init__(self, state_type: SqlType, result_type: SqlType | None = None) -> None:
        self.state_type = state_type
        self.result_type = result_type or state_type

    def result(self, state: Value) -> Value:
        return state


class Fold(Plain):
    """A sum or count over those values that are not NULL; it can be taken back."""

    def __init__(
        self,
        kind: SqlType,
        zero: Value,
        plus: Callable[[Value, Value], Value],
        minus: Callable[[Value, Value], Value],
        measure: Callable[[Value], Value] | None = None,
    ) -> None:
        """`measure` makes of an argument what is added; None: the argument itself."""
        super().__init__(kind)
        self._zero, self._plus, self._minus, self._measure = zero, plus, minus, measure

    def initial(self) -> Value:
        return self._zero

    def add(self, state: Value, value: Value) -> Value:
        if value is None:
            return state
        return self._plus(state, value if self._measure is None else self._measure(value))

    def remove(self, state: Value, value: Value) -> Value:
        if value is None:
            return state
        return self._minus(state, value if self._measure is None else self._measure(value))

    def merge(self, left: Value, right: Value) -> Value:
        return self._plus(left, right)


def struct_of(**fields: SqlType) -> Struct:
    """A STRUCT with those fields, in that order."""
    return Struct(tuple(Field(name, kind) for name, kind in fields.items()))
