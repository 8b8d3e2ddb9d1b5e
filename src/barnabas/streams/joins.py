"""Streams joined with streams, and rows that are taken once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from barnabas.streams.errors import PipelineError
from barnabas.streams.names import (
    RECORD_COLUMNS,
    TIMESTAMP,
    check_columns,
    check_duration,
    check_word,
    value_columns,
)
from barnabas.streams.steps import Building, Step

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_RIGHT = "_right_"


class StreamJoined(Step):
    """Pairs of rows that agree in columns and whose event times are near each other.

    The pair has the record columns of the left row, its event time too.
    """

    has_state = True

    def __init__(
        self,
        left: Step,
        right: Step,
        on: list[str],
        how: Literal["inner", "left"],
        before: str,
        after: str,
    ) -> None:
        self.parents = (left, right)
        self._on = on
        self._how = how
        self._before = before
        self._after = after
        check_word("how", how, ("inner", "left"))
        check_duration("a join's bound", before, may_be_long=True)
        check_duration("a join's bound", after, may_be_long=True)

    def columns(self) -> tuple[str, ...] | None:
        left, right = (parent.columns() for parent in self.parents)
        if left is None or right is None:
            return None
        added = [name for name in value_columns(list(right)) if name not in self._on]
        return (*left, *added)

    def check(self) -> None:
        super().check()
        left, right = (parent.columns() for parent in self.parents)
        for columns in (left, right):
            check_columns("join", self._on, columns)
        if left is not None and right is not None:
            self._check_names(left, right)

    def _check_names(self, left: Sequence[str], right: Sequence[str]) -> None:
        both = set(value_columns([*left])) & set(value_columns([*right])) - set(self._on)
        if both:
            raise PipelineError(
                f"both streams have {', '.join(sorted(both))}: name one's otherwise before the "
                f"join, with .rename(new={min(both)!r})"
            )

    def frame(self, building: Building) -> DataFrame:
        from pyspark.sql import functions as f

        left, right = (parent.frame(building.timed()) for parent in self.parents)
        right = right.select(*value_columns(right.columns), TIMESTAMP)
        for name in self._on:
            if name not in left.columns or name not in right.columns:
                raise PipelineError(f"both streams need the column {name} to join on it")
        self._check_names(left.columns, right.columns)
        hidden = {name: f"{_RIGHT}{name}" for name in [*self._on, TIMESTAMP]}
        right = right.withColumnsRenamed(hidden)
        time, other = f.col(TIMESTAMP), f.col(hidden[TIMESTAMP])
        condition = (other >= time - f.expr(f"INTERVAL {self._before}")) & (
            other <= time + f.expr(f"INTERVAL {self._after}")
        )
        for name in self._on:
            condition = condition & (f.col(name) == f.col(hidden[name]))
        return left.join(right, condition, self._how).drop(*hidden.values())


class Distinct(Step):
    """Rows whose columns have not been there before, as far as the watermark reaches back."""

    has_state = True

    def __init__(self, parent: Step, columns: tuple[str, ...]) -> None:
        self.parents = (parent,)
        self._columns = columns

    def columns(self) -> tuple[str, ...] | None:
        return self.parents[0].columns()

    def check(self) -> None:
        super().check()
        check_columns("distinct", self._columns, self.columns())

    def frame(self, building: Building) -> DataFrame:
        frame = self.parents[0].frame(building.timed())
        columns = list(self._columns) or [
            name for name in frame.columns if name not in RECORD_COLUMNS
        ]
        return frame.dropDuplicatesWithinWatermark(columns)
