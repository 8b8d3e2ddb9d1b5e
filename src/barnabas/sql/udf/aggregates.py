"""`@udaf` declares aggregates: classes with `initial`, `add`, `merge` and `result`.

    @udaf("(value BIGINT) -> DOUBLE STATE STRUCT<total BIGINT, count BIGINT>")
    class Mean:
        def initial(self): return {"total": 0, "count": 0}
        def add(self, state, value): ...
        def remove(self, state, value): ...      for aggregates of tables
        def merge(self, left, right): ...        for windows of sessions
        def result(self, state): return state["total"] / state["count"]

The constants of a call, `(value BIGINT, k INT!)`, go to `__init__`. All that an aggregate knows is
in its states, which the engine stores: one object serves every group.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from barnabas.sql.errors import AnalysisError
from barnabas.sql.functions.catalog import AggregateOverload, Aggregator
from barnabas.sql.functions.patterns import Pattern
from barnabas.sql.functions.signature_text import Signature, parse_type
from barnabas.sql.types import SqlType, Value
from barnabas.sql.udf.boundary import Boundary, guarded, static_type
from barnabas.sql.udf.declaring import (
    Declaration,
    DeclarationError,
    Details,
    caller,
    check_counts,
    check_descriptions,
    check_result,
    checked_name,
    checked_signature,
    depends_on_call,
    described,
    keep,
    with_names_of_sql,
)
from barnabas.sql.udf.values import from_python, to_python

C = TypeVar("C", bound=type)

_STATE = re.compile(r"\bSTATE\b")
_METHODS = ("initial", "add", "merge", "result")


def udaf(
    *signatures: str,
    name: str = "",
    description: str = "",
    author: str = "",
    version: str = "",
    parameters: Mapping[str, str] | None = None,
    nulls: bool = False,
    state: str = "",
) -> Callable[[C], C]:
    """Declare an aggregate; its name is the class's.

    `state`: the type of states, where signatures do not end with STATE and it; otherwise it is
    that of the result. Names of a state's fields are as they are written. `nulls`: whether NULL is
    added too, as None.
    """
    place = caller()
    if not signatures or not all(isinstance(text, str) for text in signatures):
        raise DeclarationError('an aggregate needs a signature: @udaf("(value BIGINT) -> BIGINT")')

    def declare(kind: C) -> C:
        own_name = checked_name(name or str(getattr(kind, "__name__", "")))
        missing = [method for method in _METHODS if not callable(getattr(kind, method, None))]
        if missing:
            raise DeclarationError(f"{own_name} has no method {missing[0]}")
        details = Details(own_name, described(kind, description), author, version, "AGGREGATE")
        overloads = [
            _overload(kind, details, text, state, parameters or {}, takes_nulls=nulls)
            for text in signatures
        ]
        keep(Declaration("aggregate", details, kind, overloads, place))
        return kind

    return declare


def _overload(
    kind: Callable[..., Any],
    details: Details,
    text: str,
    state: str,
    parameters: Mapping[str, str],
    *,
    takes_nulls: bool,
) -> AggregateOverload:
    shown, *told = _STATE.split(text)
    shown = with_names_of_sql(shown).strip()
    if len(told) > 1 or (told and state):
        raise DeclarationError(f"{text} tells the type of its state twice")
    signature = checked_signature(shown, needs_result=True)
    assert signature.result is not None
    check_descriptions(parameters, signature, shown)
    _check_methods(kind, signature, shown)
    held = _state_pattern(told[0] if told else state, signature, shown) or signature.result
    boundary = Boundary(signature, None, ())
    name = details.name.upper()

    def make(types: Sequence[SqlType], constants: Sequence[Value]) -> Aggregator:
        with_remove = callable(getattr(kind, "remove", None))
        made = _UserTableAggregator if with_remove else _UserAggregator
        return made(
            name,
            _instance(kind, name, constants),
            _columns(signature, types, constants),
            boundary.resolved(held, types),
            boundary.result_type(types),
            takes_nulls=takes_nulls,
        )

    return AggregateOverload(shown, make, description=details.description, parameters=parameters)


def _check_methods(kind: Callable[..., Any], signature: Signature, text: str) -> None:
    """Raise DeclarationError unless `add` takes the columns, and `__init__` the constants."""
    constants = [parameter.is_constant for parameter in signature.parameters]
    if constants != sorted(constants):
        raise DeclarationError(f"constants are the last parameters: {text}")
    if signature.variadic_index < 0:
        # Of the class, not of an object: `self` is one argument more.
        add: Callable[..., Any] = getattr(kind, "add")  # noqa: B009
        check_counts(add, [2 + constants.count(False)], text)
        check_counts(kind, [constants.count(True)], text)


def _columns(
    signature: Signature, types: Sequence[SqlType], constants: Sequence[Value]
) -> Sequence[SqlType | None]:
    """The types of the arguments that records give; NULL has none, and is not among `types`."""
    patterns = [p.pattern for p in signature.parameters if not p.is_constant]
    if signature.variadic_index < 0 and not any(map(depends_on_call, patterns)):
        return [static_type(pattern) for pattern in patterns]
    return types[: len(types) - sum(constant is not None for constant in constants)]


def _state_pattern(text: str, signature: Signature, shown: str) -> Pattern | None:
    if not text.strip():
        return None
    try:
        pattern = parse_type(text)
    except (ValueError, AnalysisError) as error:
        raise DeclarationError(f"the type of the state cannot be read: {error}") from error
    check_result(pattern, signature, shown)
    return pattern


def _instance(kind: Callable[..., Any], name: str, constants: Sequence[Value]) -> Any:
    try:
        return kind(*constants)
    except Exception as error:
        raise AnalysisError(f"{name}: {type(error).__name__}: {error}") from error


class _UserAggregator:
    """A user's aggregate as the engine takes it."""

    def __init__(
        self,
        name: str,
        own: Any,
        columns: Sequence[SqlType | None],
        state_type: SqlType,
        result_type: SqlType,
        *,
        takes_nulls: bool,
    ) -> None:
        self.state_type = state_type
        self.result_type = result_type
        self._own = own
        self._run = guarded(name, lambda call, *given: call(*given), has_decimals=True)
        self._takes_nulls = takes_nulls
        self._columns = [None if column is None else to_python(column) for column in columns]
        self._get_state = to_python(state_type)
        self._put_state = from_python(state_type)
        self._put_result = from_python(result_type)

    def initial(self) -> Value:
        return self._run(self._changed, self._own.initial)

    def add(self, state: Value, *values: Value) -> Value:
        return self._run(self._with_record, self._own.add, state, values)

    def merge(self, left: Value, right: Value) -> Value:
        return self._run(self._changed, self._own.merge, left, right)

    def result(self, state: Value) -> Value:
        return self._run(self._result, state)

    def _result(self, state: Value) -> Value:
        result = self._own.result(self._state(state))
        return None if result is None else self._put_result(result)

    def _with_record(
        self, method: Callable[..., Any], state: Value, values: Sequence[Value]
    ) -> Value:
        if None in values and not self._takes_nulls:
            return state
        arguments = [
            value if value is None or convert is None else convert(value)
            for value, convert in zip(values, self._columns, strict=True)
        ]
        return self._changed(lambda own: method(own, *arguments), state)

    def _changed(self, method: Callable[..., Any], *states: Value) -> Value:
        state = method(*map(self._state, states))
        return None if state is None else self._put_state(state)

    def _state(self, state: Value) -> Any:
        """The state as users get it: a copy, as the old one may still be needed."""
        return state if state is None or self._get_state is None else self._get_state(state)


class _UserTableAggregator(_UserAggregator):
    """One that can take records out again."""

    def remove(self, state: Value, *values: Value) -> Value:
        return self._run(self._with_record, self._own.remove, state, values)
