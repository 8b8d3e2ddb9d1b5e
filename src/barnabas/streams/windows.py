"""Windows of event time, and aggregates over them or over all time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from barnabas.streams.errors import PipelineError
from barnabas.streams.expressions import (
    ColumnLike,
    column_named,
    named,
    struct_of_columns,
    to_column,
)
from barnabas.streams.names import (
    KEY,
    RECORD_COLUMNS,
    TIMESTAMP,
    check_columns,
    check_duration,
    check_word,
    single_name,
)
from barnabas.streams.steps import Building, Emission, Step

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_WINDOW = "_window"


@dataclass(frozen=True)
class Window:
    """Windows; sizes as Spark writes them (`1 minute`)."""

    kind: Literal["tumbling", "hopping", "session"]
    size: str
    every: str | None = None

    def column(self) -> Column:
        """Return the window of a row."""
        from pyspark.sql import functions as f

        if self.kind == "session":
            return f.session_window(TIMESTAMP, self.size)
        return f.window(TIMESTAMP, self.size, self.every)


def tumbling(size: str) -> Window:
    """Windows side by side."""
    check_duration("a window's size", size, may_be_zero=False)
    return Window("tumbling", size)


def hopping(size: str, every: str) -> Window:
    """Windows of `size` that begin every so often."""
    check_duration("a window's size", size, may_be_zero=False)
    check_duration("every", every, may_be_zero=False)
    return Window("hopping", size, every)


def session(gap: str) -> Window:
    """Windows that end when no row has come for `gap`."""
    check_duration("a session's gap", gap, may_be_zero=False)
    return Window("session", gap)


class Aggregated(Step):
    """One row for each group."""

    has_state = True

    def __init__(
        self,
        parent: Step,
        columns: Sequence[ColumnLike],
        named: Mapping[str, ColumnLike],
        window: Window | None,
        aggregates: Mapping[str, ColumnLike],
        emit: Literal["changes", "final"] | None,
    ) -> None:
        self.parents = (parent,)
        self._columns = columns
        self._named = named
        self._window = window
        self._aggregates = aggregates
        self._emit = emit
        if emit is not None:
            check_word("emit", emit, ("changes", "final"))
        if not aggregates:
            raise PipelineError('agg() needs an aggregate: agg(total=f.sum("amount"))')
        if window is not None and window.kind == "session":
            if not columns and not named:
                raise PipelineError("a session window needs a group_by: whose sessions?")
            if emit == "changes":
                raise PipelineError("Spark gives sessions when they are final: emit='final'")
        if window is None and emit == "final":
            raise PipelineError("without a window no result is final: emit='changes'")

    def columns(self) -> tuple[str, ...] | None:
        keys = [single_name(column) for column in self._columns]
        if self.parents[0].columns() is None or None in keys:
            return None
        window = () if self._window is None else ("window_start", "window_end")
        names = [name for name in keys if name is not None]
        return (*names, *self._named, *window, *self._aggregates, *RECORD_COLUMNS)

    def check(self) -> None:
        super().check()
        before = self.parents[0].columns()
        check_columns("group_by", named([*self._columns, *self._named.values()]), before)
        if before is not None:
            before = (*before, *self._named)
        check_columns("agg", named(self._aggregates.values()), before)

    def emission(self) -> Emission:
        """Return when the results are given."""
        if self._window is None:
            return "changes"
        if self._window.kind == "session":
            return "final"
        return self._emit or "either"

    def frame(self, building: Building) -> DataFrame:
        from pyspark.sql import functions as f

        parent = self.parents[0].frame(building.timed())
        groups = {name: to_column(parent, column) for name, column in self._named.items()}
        rows = parent.withColumns(groups) if groups else parent
        keys = [to_column(parent, column) for column in self._columns]
        keys += [f.col(name) for name in groups]
        aggregates = [
            to_column(rows, column).alias(name) for name, column in self._aggregates.items()
        ]
        # Names of the keys are those that Spark gives them.
        names = rows.select(*keys).columns if keys else []
        if self._window is None:
            made = rows.groupBy(*keys).agg(*aggregates, f.max(TIMESTAMP).alias(TIMESTAMP))
        else:
            window = self._window.column().alias(_WINDOW)
            made = rows.groupBy(window, *keys).agg(*aggregates)
            made = made.select(
                *(column_named(name) for name in names),
                f.col(f"{_WINDOW}.start").alias("window_start"),
                f.col(f"{_WINDOW}.end").alias("window_end"),
                *(column_named(name) for name in self._aggregates),
                self._time().alias(TIMESTAMP),
            )
        return made.withColumn(KEY, group_key(names))

    def _time(self) -> Column:
        """The time of a result: the last instant of its window. Spark's watermark goes with it."""
        from pyspark.sql import functions as f

        if self._window is not None and self._window.kind == "session":
            return f.col(f"{_WINDOW}.end")
        return f.window_time(_WINDOW)


def group_key(names: Sequence[str]) -> Column:
    """Return the key of a group: its one column, or a struct of several."""
    from pyspark.sql import functions as f

    if not names:
        return f.lit(None).cast("string")
    if len(names) == 1:
        return column_named(names[0])
    return struct_of_columns(names)
