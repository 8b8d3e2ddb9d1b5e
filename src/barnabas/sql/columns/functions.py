"""Calls of scalar functions for whole columns.

A built-in function either has a column form here, or is called once for each distinct combination
of its arguments that are not literals: it is pure, so equal arguments give equal results. If a call
fails, the row engine evaluates the records with those arguments. All other calls, and calls of
users' functions, are evaluated record by record.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow.compute as pc

from barnabas.sql.columns import number_functions, text_functions
from barnabas.sql.columns.frames import Frame
from barnabas.sql.columns.text_functions import Form, Literals
from barnabas.sql.columns.vectors import (
    FLAT,
    WHOLE,
    Indexes,
    Mask,
    Vector,
    combined,
    text_vector,
    vector_of,
)
from barnabas.sql.errors import FAILURES
from barnabas.sql.expressions.calls import ScalarCall
from barnabas.sql.functions.catalog import BUILT_IN, Function
from barnabas.sql.types import BIGINT, INTEGER, BaseType, SqlType, Value

MAPPED: Final = (BaseType.STRING, BaseType.DOUBLE, *WHOLE)
"""Types of whose vectors `mapped` takes the distinct values."""


class Call(NamedTuple):
    """A call of a built-in function, with its arguments."""

    name: str
    meant: ScalarCall
    literals: Literals
    is_volatile: bool

    @property
    def result(self) -> SqlType:
        return self.meant.result

    @property
    def bases(self) -> tuple[BaseType | None, ...]:
        """The types of what the function gets."""
        taken = [argument.taken_type for argument in self.meant.arguments]
        return tuple(None if sql_type is None else sql_type.base for sql_type in taken)


def form_of(call: Call) -> Form | None:
    """Return what the call gives for columns of its arguments; None if there is no such form."""
    make = _FORMS.get(call.name)
    form = None if make is None else make(call)
    return form or _by_distinct_values(call)


def is_ours(name: str, function: Function, meant: ScalarCall) -> bool:
    """Return whether the call is of a function that ships with us."""
    own = BUILT_IN.get(name)
    return own is not None and function is own and meant.overload in own.scalars


# --- distinct values -------------------------------------------------------------------------


def _by_distinct_values(call: Call) -> Form | None:
    overload = call.meant.overload
    varying = [at for at, (is_literal, _) in enumerate(call.literals) if not is_literal]
    if call.is_volatile or overload.takes_types or not varying:
        return None
    if any(call.bases[place] not in MAPPED for place in varying):
        return None
    implementation = overload.implementation
    given = [value for _, value in call.literals]
    is_null = overload.null_is_null

    def evaluate(*values: Value) -> Value:
        arguments = list(given)
        for place, value in zip(varying, values, strict=True):
            arguments[place] = value
        return None if is_null and None in arguments else implementation(*arguments)

    if len(varying) == 1:
        (only,) = varying
        return lambda frame, vectors: mapped(frame, vectors[only], call.result, evaluate)
    return lambda frame, vectors: _mapped_together(
        frame, [vectors[place] for place in varying], call.result, evaluate
    )


def _mapped_together(
    frame: Frame, vectors: Sequence[Vector], result: SqlType, evaluate: Callable[..., Value]
) -> Vector:
    """The same as `mapped` of the values of several vectors."""
    lists, all_codes = zip(*map(_distinct, vectors), strict=True)
    codes = all_codes[0]
    for other in all_codes[1:]:
        codes = combined(codes, other)
    _, firsts, of = np.unique(codes, return_index=True, return_inverse=True)
    places = [
        [values[at] for at in own[firsts].tolist()]
        for values, own in zip(lists, all_codes, strict=True)
    ]
    found, odd = _evaluated(list(zip(*places, strict=True)), result, lambda row: evaluate(*row))
    frame.doubt |= odd[of]
    return found.take(of)


def mapped(
    frame: Frame, vector: Vector, result: SqlType, evaluate: Callable[[Any], Value]
) -> Vector:
    """Return what `evaluate` gives for each value of the vector, NULL included."""
    values, codes = _distinct(vector)
    found, odd = _evaluated(values, result, evaluate)
    if odd.any():
        frame.doubt |= odd[codes]
    return found.take(codes)


def _evaluated(
    values: Sequence[Any], result: SqlType, evaluate: Callable[[Any], Value]
) -> tuple[Vector, Mask]:
    """Return what `evaluate` gives for each value, and for which it fails."""
    made: list[Value] = []
    odd = np.zeros(len(values), np.bool_)
    for at, value in enumerate(values):
        try:
            made.append(evaluate(value))
        except FAILURES:
            made.append(None)
            odd[at] = True
    return vector_of(result, made, odd), odd


def _distinct(vector: Vector) -> tuple[list[Value], Indexes]:
    """The vector's distinct values, and which one each record has. DOUBLEs differ if a bit does."""
    if vector.is_text:
        encoded = pc.dictionary_encode(vector.data)
        values: list[Value] = encoded.dictionary.to_pylist()
        codes = encoded.indices.fill_null(len(values)).to_numpy(zero_copy_only=False)
    else:
        bits = vector.data.view(np.int64)
        distinct, codes = np.unique(bits, return_inverse=True)
        values = distinct.view(vector.data.dtype).tolist()
        if vector.valid is not None:
            codes = np.where(vector.valid, codes, len(values))
    if vector.valid is not None:
        values.append(None)
    return values, codes.astype(np.int64)


# --- NULL ------------------------------------------------------------------------------------


def _have_the_results_type(call: Call) -> bool:
    return call.result.base in FLAT and all(
        argument.taken_type == call.result for argument in call.meant.arguments
    )


def _first_value(call: Call) -> Form | None:
    """COALESCE and IFNULL."""
    if not _have_the_results_type(call):
        return None

    def form(_frame: Frame, vectors: Sequence[Vector]) -> Vector:
        found = vectors[0]
        for vector in vectors[1:]:
            has = found.valid
            if has is None:
                break
            if found.is_text:
                found = text_vector(call.result, pc.coalesce(found.data, vector.data))
                continue
            valid = has | ~vector.nulls()
            data = np.where(has, found.data, vector.data)
            found = Vector(call.result, data, None if valid.all() else valid)
        return found

    return form


def _null_if_equal(call: Call) -> Form | None:
    """NULLIF: NaN equals NaN."""
    if not _have_the_results_type(call):
        return None

    def form(_frame: Frame, vectors: Sequence[Vector]) -> Vector:
        one, other = vectors
        if one.is_text:
            equal: Any = pc.equal(one.data, other.data).fill_null(False)
            return text_vector(call.result, pc.if_else(equal, None, one.data))
        same: Mask = one.data == other.data
        if call.result.base is BaseType.DOUBLE:
            same |= (one.data != one.data) & (other.data != other.data)
        valid = ~one.nulls() & ~(same & ~other.nulls())
        return Vector(call.result, one.data, None if valid.all() else valid)

    return form


# --- by name ---------------------------------------------------------------------------------


def _of_texts(form: Form) -> Callable[[Call], Form | None]:
    return lambda call: form if set(call.bases) == {BaseType.STRING} else None


def _with_literals(make: Callable[[Literals], Form | None]) -> Callable[[Call], Form | None]:
    """A form for a first argument of STRING, made with literals."""
    return lambda call: make(call.literals) if call.bases[0] is BaseType.STRING else None


def _by_types(
    forms: dict[tuple[BaseType, ...], Form],
) -> Callable[[Call], Form | None]:
    return lambda call: forms.get(call.bases)  # type: ignore[arg-type]  # a None is in no key


def _extreme(*, is_greatest: bool) -> Callable[[Call], Form | None]:
    def make(call: Call) -> Form | None:
        if call.result.base not in WHOLE or not _have_the_results_type(call):
            return None
        return number_functions.extreme(call.result, is_greatest=is_greatest)

    return make


def _as_it_is(call: Call) -> Form:
    return number_functions.same(call.result)


_INTEGER, _BIGINT, _DOUBLE = (BaseType.INTEGER,), (BaseType.BIGINT,), (BaseType.DOUBLE,)
_FORMS: Final[dict[str, Callable[[Call], Form | None]]] = {
    "LCASE": _of_texts(text_functions.lower),
    "UCASE": _of_texts(text_functions.upper),
    "TRIM": _of_texts(text_functions.trimmed),
    "LEN": _of_texts(text_functions.length),
    "CONCAT": _of_texts(text_functions.concatenated_texts),
    "CONCAT_WS": _with_literals(text_functions.concatenated_with),
    "REPLACE": _with_literals(text_functions.replaced_texts),
    "SUBSTRING": _with_literals(text_functions.part_of_texts),
    "INSTR": _with_literals(text_functions.position_in_texts),
    "COALESCE": _first_value,
    "IFNULL": _first_value,
    "NULLIF": _null_if_equal,
    "AS_VALUE": lambda call: _as_it_is(call) if _have_the_results_type(call) else None,
    "ABS": _by_types(
        {
            _INTEGER: number_functions.absolute_integer,
            _BIGINT: number_functions.absolute_bigint,
            _DOUBLE: number_functions.absolute_double,
        }
    ),
    "SIGN": _by_types(dict.fromkeys((_INTEGER, _BIGINT, _DOUBLE), number_functions.sign)),
    "FLOOR": _by_types(
        {
            _INTEGER: number_functions.same(INTEGER),
            _BIGINT: number_functions.same(BIGINT),
            _DOUBLE: number_functions.floor,
        }
    ),
    "CEIL": _by_types(
        {
            _INTEGER: number_functions.same(INTEGER),
            _BIGINT: number_functions.same(BIGINT),
            _DOUBLE: number_functions.ceiling,
        }
    ),
    "ROUND": _by_types(
        {
            _INTEGER: number_functions.same_or_doubt,
            _BIGINT: number_functions.same_or_doubt,
            _DOUBLE: number_functions.rounded,
        }
    ),
    "TRUNC": _by_types(
        {
            _INTEGER: number_functions.same(BIGINT),
            _BIGINT: number_functions.same(BIGINT),
            _DOUBLE: number_functions.truncated,
        }
    ),
    "SQRT": _by_types({_DOUBLE: number_functions.root}),
    "GREATEST": _extreme(is_greatest=True),
    "LEAST": _extreme(is_greatest=False),
    "TIMESTAMPADD": lambda call: number_functions.moved(call.literals, sign_=1),
    "TIMESTAMPSUB": lambda call: number_functions.moved(call.literals, sign_=-1),
    "FROM_DAYS": _as_it_is,
    "FROM_UNIXTIME": _as_it_is,
    "UNIX_TIMESTAMP": lambda call: _as_it_is(call) if call.bases else None,
}
"""The builder of a call's form, by the function's name."""
