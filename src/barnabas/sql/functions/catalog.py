"""The catalog of functions: what each is called, takes and gives, and the Python that does it.

Names are spelled as messages show them (ksqlDB's spelling), and found in any case. A signature is
text, in SQL's types with variables: single capital letters stand for any type, the same letter for
the same type.

    @scalar("lcase", "(input STRING) -> STRING", description="…")
    @scalar("elt", "(n INTEGER, args STRING...) -> STRING", …)             variadic
    @scalar("ARRAY_CONTAINS", "(values ARRAY<T>, value T) -> BOOLEAN", …)
    @scalar("TRANSFORM", "(array ARRAY<T>, function LAMBDA(T) -> U) -> ARRAY<U>", …)
    @scalar("Abs", "(value DECIMAL) -> DECIMAL", returns=same_decimal)     computed result type
    @scalar("TIMESTAMPADD", "(unit INTERVAL, interval INTEGER, timestamp TIMESTAMP) -> TIMESTAMP")

`STRUCT` alone is any STRUCT, `DECIMAL` alone any DECIMAL. A function with several signatures for
one implementation gets several strings; with several implementations, several decorated functions.
The implementation gets values as `types` describes them, None for NULL (unless `null_is_null`,
then NULL in gives NULL out without a call), lambdas as Python callables, intervals as their upper
case plural ("DAYS"). It raises EvaluationError where there is no value. It is a pure function of
its arguments, unless `is_volatile` (RANDOM, UUID, UNIX_TIMESTAMP).

The rest of the language: `ANY` is any type at all, `T!` a constant (aggregates), a variadic may be
in any position: `(first T, middle STRING..., last INTEGER!)`. Messages show a function's name as
it is written here, and ksqlDB's cases compare them: `"explode"`, `"Abs"`, `"ARRAY_JOIN"`, each as
ksqlDB declares it. Names of calls do not depend on case.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from barnabas.sql.types import SqlType, Value

ReturnType = Callable[[Sequence[Any]], SqlType]
"""From the arguments' types (None: NULL) to the result's; raises AnalysisError. Types are those of
values as the implementation gets them: after implicit casts."""

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class ScalarOverload:
    """One implementation of a scalar function and a signature that it serves."""

    signature: str
    implementation: Callable[..., Value]
    returns: ReturnType | None = None
    null_is_null: bool = False
    takes_types: bool = False
    """True if the implementation takes `types=`, the SQL types of its arguments."""
    description: str = ""
    """A description of this variation, if the function has several."""
    parameters: Mapping[str, str] = field(default_factory=dict)
    """Descriptions of parameters, by name, for DESCRIBE FUNCTION."""


@dataclass(frozen=True, slots=True)
class TableOverload:
    """One implementation of a table function: gives the rows for one record."""

    signature: str
    implementation: Callable[..., Iterable[Value]]
    returns: ReturnType | None = None
    takes_types: bool = False
    """As for scalar functions."""
    description: str = ""
    parameters: Mapping[str, str] = field(default_factory=dict)


class Aggregator(Protocol):
    """An aggregate, for the types and constant arguments of one call. States are values that
    `state_type` describes, so that they can be stored; never mutated in place.

    One for aggregations of tables also has `remove`, with the arguments of `add`: it returns the
    state without a record that was added.
    """

    @property
    def state_type(self) -> SqlType:
        """The type of its states."""
        ...

    @property
    def result_type(self) -> SqlType:
        """The type of its column."""
        ...

    def initial(self) -> Value:
        """The state before the first record."""
        ...

    def add(self, state: Value, *arguments: Value) -> Value:
        """The state with one more record."""
        ...

    def merge(self, left: Value, right: Value) -> Value:
        """The state of two sessions that become one; `left` is the earlier."""
        ...

    def result(self, state: Value) -> Value:
        """The value of the column."""
        ...


@dataclass(frozen=True, slots=True)
class AggregateOverload:
    """A signature of an aggregate, and what makes its Aggregator.

    `make(types, constants)`: types of all arguments; constants are the values of those parameters
    that the signature marks `!`, as `(value T, k INTEGER!)`: literals in the statement.
    `takes_properties`: `make` also takes `properties=`, the `ksql.functions.…` settings by their
    full names.
    """

    signature: str
    make: Callable[..., Aggregator]
    takes_properties: bool = False
    description: str = ""
    parameters: Mapping[str, str] = field(default_factory=dict)

    def aggregator(
        self,
        types: Sequence[SqlType],
        constants: Sequence[Value] = (),
        properties: Mapping[str, Value] | None = None,
    ) -> Aggregator:
        """The Aggregator for one call in a statement."""
        if self.takes_properties:
            return self.make(types, constants, properties=properties or {})
        return self.make(types, constants)


@dataclass(slots=True)
class Function:
    """A function by name, with all its overloads, for DESCRIBE FUNCTION and SHOW FUNCTIONS."""

    name: str
    description: str = ""
    category: str = "OTHER"
    author: str = "Barnabas"
    is_volatile: bool = False
    version: str = ""
    path: str = "internal"
    """Where it comes from: a file or a package, for functions that do not ship with us."""
    scalars: list[ScalarOverload] = field(default_factory=list)
    tables: list[TableOverload] = field(default_factory=list)
    aggregates: list[AggregateOverload] = field(default_factory=list)


BUILT_IN: dict[str, Function] = {}
"""Every function that ships with us, by its name in upper case; `functions.built_in` imports the
modules that fill it."""


def declare(name: str, description: str, category: str, *, is_volatile: bool = False) -> Function:
    """The function of that name, made or described."""
    function = BUILT_IN.setdefault(name.upper(), Function(name))
    if description:
        function.description, function.category = description, category
    function.is_volatile |= is_volatile
    return function


def scalar(
    name: str,
    *signatures: str,
    description: str = "",
    category: str = "OTHER",
    returns: ReturnType | None = None,
    null_is_null: bool = False,
    takes_types: bool = False,
    is_volatile: bool = False,
    variation: str = "",
    parameters: Mapping[str, str] | None = None,
) -> Callable[[F], F]:
    """Declare the decorated Python function as an implementation of a scalar function.

    `variation` describes this one if the function has several; `parameters` describes
    parameters by name. DESCRIBE FUNCTION shows both.
    """

    def add(implementation: F) -> F:
        function = declare(name, description, category, is_volatile=is_volatile)
        function.scalars += [
            ScalarOverload(
                signature,
                implementation,
                returns,
                null_is_null,
                takes_types,
                variation,
                parameters or {},
            )
            for signature in signatures
        ]
        return implementation

    return add


def table_function(
    name: str, *signatures: str, description: str = "", returns: ReturnType | None = None
) -> Callable[[F], F]:
    """Declare the decorated Python function as an implementation of a table function."""

    def add(implementation: F) -> F:
        function = declare(name, description, "TABLE")
        function.tables += [TableOverload(s, implementation, returns) for s in signatures]
        return implementation

    return add


def aggregate(
    name: str, *signatures: str, description: str = "", takes_properties: bool = False
) -> Callable[[F], F]:
    """Declare the decorated factory (or class) as what makes an aggregate's Aggregator."""

    def add(make: F) -> F:
        function = declare(name, description, "AGGREGATE")
        function.aggregates += [
            AggregateOverload(signature, make, takes_properties) for signature in signatures
        ]
        return make

    return add
