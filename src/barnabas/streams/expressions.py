"""Columns named before there is a Spark session: `col("kwh") * 2`, `f.sum("kwh")`.

PySpark makes a Column by a call to the JVM, so a module that describes a pipeline could not be
imported without starting Spark. An `Expression` remembers the call instead. `f` has PySpark's own
functions (`pyspark.sql.functions`), and an Expression the operators and methods of its Column.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from barnabas.streams.names import (
    Makes,
    aliases_in,
    named_by_call,
    named_in,
    record_columns,
    single_name,
)

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

ColumnLike: TypeAlias = "str | Expression | Callable[[DataFrame], Column] | Column"
"""A SQL expression, an Expression, a function of the rows' frame, or a Column of Spark's."""


def _operator(name: str) -> Callable[..., Expression]:
    def operator(self: Expression, *others: Any) -> Expression:
        return Expression(
            lambda: cast("Column", _call(getattr(self.column(), name), others, {})),
            (*self.names, *named(one for one in others if not isinstance(one, str))),
        )

    return operator


class Expression:
    """A column to be. Methods and operators are those of PySpark's Column."""

    __slots__ = ("_make", "names")
    __hash__ = object.__hash__

    def __init__(self, make: Callable[[], Column], names: Sequence[str] = ()) -> None:
        """`names` are the columns that it names, as far as that is certain."""
        self._make = make
        self.names = tuple(names)

    def column(self) -> Column:
        """Return Spark's Column; needs a session."""
        return self._make()

    def __getattr__(self, name: str) -> Callable[..., Expression]:
        if name.startswith("__"):
            raise AttributeError(name)

        def method(*arguments: Any, **named: Any) -> Expression:
            return Expression(
                lambda: cast("Column", _call(getattr(self._make(), name), arguments, named)),
                self.names,
            )

        return method

    def __getitem__(self, key: Any) -> Expression:
        return Expression(lambda: self._make()[key], self.names)

    def __bool__(self) -> bool:
        raise TypeError("an expression has no truth value: use & for and, | for or, ~ for not")

    __add__, __radd__ = _operator("__add__"), _operator("__radd__")
    __sub__, __rsub__ = _operator("__sub__"), _operator("__rsub__")
    __mul__, __rmul__ = _operator("__mul__"), _operator("__rmul__")
    __truediv__, __rtruediv__ = _operator("__truediv__"), _operator("__rtruediv__")
    __mod__, __rmod__ = _operator("__mod__"), _operator("__rmod__")
    __and__, __rand__ = _operator("__and__"), _operator("__rand__")
    __or__, __ror__ = _operator("__or__"), _operator("__ror__")
    __lt__, __le__ = _operator("__lt__"), _operator("__le__")
    __gt__, __ge__ = _operator("__gt__"), _operator("__ge__")
    __eq__ = _operator("__eq__")  # type: ignore[assignment]  # columns compare to columns
    __ne__ = _operator("__ne__")  # type: ignore[assignment]  # columns compare to columns
    __invert__, __neg__ = _operator("__invert__"), _operator("__neg__")


class Functions:
    """PySpark's functions by their names, called when the pipeline is built."""

    def __getattr__(self, name: str) -> Callable[..., Expression]:
        if name.startswith("__"):
            raise AttributeError(name)

        def function(*arguments: Any, **named: Any) -> Expression:
            def make() -> Column:
                from pyspark.sql import functions

                return cast("Column", _call(getattr(functions, name), arguments, named))

            known = [one for one in arguments if isinstance(one, Expression)]
            inner = [column for one in known for column in one.names]
            return Expression(make, (*named_by_call(name, arguments), *inner))

        return function


f = Functions()
"""`f.sum("kwh")`, `f.window(…)`, …: `pyspark.sql.functions`, usable before Spark has started."""


def col(name: str) -> Expression:
    """Return a column by its name."""
    return f.col(name)


def lit(value: Any) -> Expression:
    """Return a column that has one value."""
    return f.lit(value)


def named(values: Iterable[Any]) -> list[str]:
    """Return the columns that expressions, in SQL or of `f`, name, as far as that is certain."""
    names: list[str] = []
    for value in values:
        if isinstance(value, Expression):
            names += value.names
        elif isinstance(value, str):
            names += named_in(value)
    return names


def to_column(frame: DataFrame, value: ColumnLike) -> Column:
    """Return Spark's Column of what a user gave; `frame` is what a function is called with."""
    from pyspark.sql import functions

    if isinstance(value, str):
        return functions.expr(value)
    if isinstance(value, Expression):
        return value.column()
    if callable(value):
        return value(frame)
    return value


def column_named(name: str) -> Column:
    """Return the Spark column of that name, which may have any characters."""
    from pyspark.sql import functions

    return functions.col(f"`{name}`")


def struct_of_columns(names: Iterable[str]) -> Column:
    """Return a struct of the columns of these names."""
    from pyspark.sql import functions

    return functions.struct(*map(column_named, names))


def selected(
    frame: DataFrame, columns: Sequence[ColumnLike], more: Mapping[str, ColumnLike]
) -> DataFrame:
    """Return a frame of these columns and the record columns."""
    made = [to_column(frame, column) for column in columns]
    made += [to_column(frame, column).alias(name) for name, column in more.items()]
    return frame.select(*made, *record_columns(frame.columns))


def selection(
    columns: Sequence[ColumnLike], more: Mapping[str, ColumnLike]
) -> tuple[list[str], Makes]:
    """Return the columns that a selection names, and what says which come of it."""
    values = [*columns, *more.values()]
    given = {*more, *(name for one in values if isinstance(one, str) for name in aliases_in(one))}
    names = [single_name(column) for column in columns]

    def makes(before: list[str]) -> list[str] | None:
        known = [name for name in names if name is not None]
        return [*known, *more] if len(known) == len(names) else None

    return [name for name in named(values) if name not in given], makes


def _call(function: Callable[..., Any], arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
    return function(
        *(_known(argument) for argument in arguments),
        **{name: _known(argument) for name, argument in named.items()},
    )


def _known(argument: Any) -> Any:
    return argument.column() if isinstance(argument, Expression) else argument
