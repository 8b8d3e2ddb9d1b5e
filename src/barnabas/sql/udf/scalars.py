"""`@udf` declares scalar functions, `@udtf` table functions.

@udf("(price DECIMAL, rate DOUBLE) -> DECIMAL(12, 2)", description="…")
def with_tax(price, rate): ...

@udf
def total(a: int, b: str) -> str: ...
"""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime, time
from decimal import Decimal
from itertools import islice
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints, overload

from barnabas.sql.errors import AnalysisError, EvaluationError
from barnabas.sql.functions.catalog import ReturnType, ScalarOverload, TableOverload
from barnabas.sql.functions.patterns import Wildcard, substitute
from barnabas.sql.functions.signature_text import Signature, parse_type
from barnabas.sql.types import SqlType, Value
from barnabas.sql.udf.boundary import Boundary, guarded
from barnabas.sql.udf.declaring import (
    Declaration,
    DeclarationError,
    Details,
    Place,
    caller,
    check_descriptions,
    check_parameters,
    checked_name,
    checked_signature,
    described,
    keep,
    with_names_of_sql,
)
from barnabas.sql.udf.vectors import Vectorized

F = TypeVar("F", bound=Callable[..., Any])
Returns = Callable[[Sequence[Any]], SqlType | str]

ROWS_MAX = 1 << 20
"""The rows that a table function may return for one record; more count as endless."""


@overload
def udf(function: F, /) -> F: ...
@overload
def udf(
    *signatures: str,
    name: str = "",
    description: str = "",
    author: str = "",
    version: str = "",
    category: str = "OTHER",
    parameters: Mapping[str, str] | None = None,
    nulls: bool | None = None,
    returns: Returns | None = None,
    volatile: bool = False,
    vectorized: bool = False,
) -> Callable[[F], F]: ...
def udf(
    *signatures: Any,
    name: str = "",
    description: str = "",
    author: str = "",
    version: str = "",
    category: str = "OTHER",
    parameters: Mapping[str, str] | None = None,
    nulls: bool | None = None,
    returns: Returns | None = None,
    volatile: bool = False,
    vectorized: bool = False,
) -> Any:
    """Declare a scalar function, by its signatures in SQL's types or by its annotations.

    `parameters`: what each is, by its name. `nulls`: whether the function is called with None for
    NULL; without that, NULL as an argument for a parameter that is not annotated as `… | None`
    gives NULL. `returns`: from the arguments' types to the result's, where the signature cannot
    tell it. `volatile`: whether it gives something else each time. `vectorized`: whether it takes
    and gives Arrow arrays (see vectors.py).
    """
    place = caller()

    def declare(function: Any) -> Any:
        details = Details(
            checked_name(name or _name_of(function)),
            described(function, description),
            author,
            version,
            category,
            volatile,
        )
        builder = _OverloadBuilder(function, details, parameters or {}, nulls, returns)
        texts = given or annotated_signatures(function)
        overloads = [builder.scalar(text, is_vectorized=vectorized) for text in texts]
        keep(Declaration("scalar", details, function, overloads, place))
        return function

    given, bare = _signatures(signatures, place)
    return declare(bare) if bare is not None else declare


@overload
def udtf(function: F, /) -> F: ...
@overload
def udtf(
    *signatures: str,
    name: str = "",
    description: str = "",
    author: str = "",
    version: str = "",
    parameters: Mapping[str, str] | None = None,
    nulls: bool | None = None,
    returns: Returns | None = None,
) -> Callable[[F], F]: ...
def udtf(
    *signatures: Any,
    name: str = "",
    description: str = "",
    author: str = "",
    version: str = "",
    parameters: Mapping[str, str] | None = None,
    nulls: bool | None = None,
    returns: Returns | None = None,
) -> Any:
    """Declare a table function: a generator, or a function that gives a list; a row for each item.

    The result in the signature is the type of an item. The rest is as for `udf`; a NULL that the
    function does not take gives no rows.
    """
    place = caller()

    def declare(function: Any) -> Any:
        details = Details(
            checked_name(name or _name_of(function)),
            described(function, description),
            author,
            version,
            "TABLE",
        )
        builder = _OverloadBuilder(function, details, parameters or {}, nulls, returns)
        texts = given or annotated_signatures(function, gives_rows=True)
        overloads = [builder.table(text) for text in texts]
        keep(Declaration("table", details, function, overloads, place))
        return function

    given, bare = _signatures(signatures, place)
    return declare(bare) if bare is not None else declare


def _signatures(given: Sequence[Any], place: Place) -> tuple[list[str], Any]:
    """The texts, or the function where the decorator stands alone."""
    if len(given) == 1 and callable(given[0]):
        return [], given[0]
    if not all(isinstance(text, str) for text in given):
        raise DeclarationError(f"a signature is a text: {place}")
    return [with_names_of_sql(text) for text in given], None


def _name_of(function: Any) -> str:
    return str(getattr(function, "__name__", ""))


class _OverloadBuilder:
    """Makes overloads for the catalog."""

    def __init__(
        self,
        function: Callable[..., Any],
        details: Details,
        parameters: Mapping[str, str],
        nulls: bool | None,
        returns: Returns | None,
    ) -> None:
        self._function = function
        self._name = details.name.upper()
        self._description = details.description
        self._parameters = parameters
        self._nulls = nulls
        self._returns = _return_type(self._name, returns)

    def scalar(self, text: str, *, is_vectorized: bool) -> ScalarOverload:
        """The overload of one signature."""
        boundary = self._boundary(text, is_vectorized=is_vectorized)
        made: Callable[..., Value]
        if is_vectorized:
            made = Vectorized(self._name, self._function, boundary)
        else:
            made = _scalar(self._name, self._function, boundary)
        return ScalarOverload(
            text,
            made,
            self._returns,
            takes_types=boundary.takes_types or is_vectorized,
            description=self._description,
            parameters=self._parameters,
        )

    def table(self, text: str) -> TableOverload:
        """The overload of one signature."""
        boundary = self._boundary(text)
        return TableOverload(
            text,
            _table(self._name, self._function, boundary),
            self._returns,
            boundary.takes_types,
            self._description,
            self._parameters,
        )

    def _boundary(self, text: str, *, is_vectorized: bool = False) -> Boundary:
        signature = checked_signature(text, needs_result=self._returns is None)
        check_parameters(self._function, signature, text)
        check_descriptions(self._parameters, signature, text)
        if any(parameter.is_constant for parameter in signature.parameters):
            raise DeclarationError(f"only aggregates have constants: {text}")
        if is_vectorized:
            _check_arrays(signature, text)
        if self._nulls is None:
            optional = optional_parameters(self._function)
        else:
            optional = [self._nulls] * len(signature.parameters)
        return Boundary(signature, self._returns, optional)


def _check_arrays(signature: Signature, text: str) -> None:
    if not signature.parameters:
        raise DeclarationError(f"a vectorized function has a parameter: {text}")
    if any(parameter.pattern is Wildcard.INTERVAL for parameter in signature.parameters):
        raise DeclarationError(f"there are no arrays of intervals: {text}")


def _return_type(name: str, returns: Returns | None) -> ReturnType | None:
    """`returns`, whose failures make a statement one that cannot be."""
    if returns is None:
        return None
    tell = returns

    def told(types: Sequence[Any]) -> SqlType:
        try:
            returned = tell(types)
            return _parsed(returned) if isinstance(returned, str) else returned
        except Exception as error:
            raise AnalysisError(f"{name} has no result for those arguments: {error}") from error

    return told


def _parsed(text: str) -> SqlType:
    return substitute(parse_type(with_names_of_sql(text)), {})


def _scalar(name: str, function: Callable[..., Any], boundary: Boundary) -> Callable[..., Value]:
    def call(*values: Value, types: Sequence[SqlType | None] | None = None) -> Value:
        conversions = boundary.conversions(len(values), types)
        arguments = conversions.arguments(values)
        result = None if arguments is None else function(*arguments)
        return None if result is None else conversions.result(result)

    return guarded(name, call, has_decimals=boundary.has_decimals)


def _table(
    name: str, function: Callable[..., Iterable[Any] | None], boundary: Boundary
) -> Callable[..., list[Value]]:
    def call(*values: Value, types: Sequence[SqlType | None] | None = None) -> list[Value]:
        conversions = boundary.conversions(len(values), types)
        arguments = conversions.arguments(values)
        rows = None if arguments is None else function(*arguments)
        if rows is None:
            return []
        convert = conversions.result
        made = [None if row is None else convert(row) for row in islice(rows, ROWS_MAX + 1)]
        if len(made) > ROWS_MAX:
            raise EvaluationError(f"gives more than {ROWS_MAX} rows for one record")
        return made

    return guarded(name, call, has_decimals=boundary.has_decimals)


# --- signatures of SQL from the annotations of Python functions ---------------------------------


_TYPES: dict[Any, str] = {
    int: "BIGINT",
    float: "DOUBLE",
    str: "STRING",
    bool: "BOOLEAN",
    bytes: "BYTES",
    date: "DATE",
    time: "TIME",
    datetime: "TIMESTAMP",
}
_SEVERAL = (list, Iterator, Iterable, Generator)
"""The annotations with which a table function returns several rows of a type."""


def annotated_signatures(function: Callable[..., Any], *, gives_rows: bool = False) -> list[str]:
    """The signature, and one for each parameter with a default value that calls can leave out.

    Raises DeclarationError for annotations that tell no type.
    """
    hints = _hints(function)
    if "return" not in hints:
        name = getattr(function, "__name__", function)
        raise DeclarationError(f"{name} has no signature and no annotation of its result")
    result = hints["return"]
    if gives_rows:
        if get_origin(result) not in _SEVERAL or not get_args(result):
            raise DeclarationError(
                f"the result of {function.__name__} has to be annotated as Iterator[…] or list[…]"
            )
        result = get_args(result)[0]
    texts: list[str] = []
    signatures: list[str] = []
    returned = _type_text(result, "the result")
    for parameter in _positional(function):
        if parameter.default is not parameter.empty:
            signatures.append(f"({', '.join(texts)}) -> {returned}")
        if parameter.name not in hints:
            raise DeclarationError(f"parameter {parameter.name} has no annotation")
        dots = "..." if parameter.kind is parameter.VAR_POSITIONAL else ""
        told = _type_text(hints[parameter.name], f"parameter {parameter.name}")
        texts.append(f"{parameter.name} {told}{dots}")
    return [*signatures, f"({', '.join(texts)}) -> {returned}"]


def optional_parameters(function: Callable[..., Any]) -> list[bool]:
    """Whether each parameter is annotated as one that may be None; empty if that is not known."""
    try:
        hints = _hints(function)
        parameters = _positional(function)
    except (DeclarationError, ValueError, TypeError):
        return []
    return [_is_optional(hints.get(parameter.name)) for parameter in parameters]


def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    try:
        return get_type_hints(function)
    except Exception as error:
        raise DeclarationError(f"an annotation cannot be read: {error}") from error


def _positional(function: Callable[..., Any]) -> list[inspect.Parameter]:
    parameters = inspect.signature(function).parameters.values()
    return [p for p in parameters if p.kind not in (p.KEYWORD_ONLY, p.VAR_KEYWORD)]


def _is_optional(hint: Any) -> bool:
    return get_origin(hint) in (Union, types.UnionType) and type(None) in get_args(hint)


def _type_text(hint: Any, what: str) -> str:
    if _is_optional(hint):
        others = [part for part in get_args(hint) if part is not type(None)]
        if len(others) == 1:
            return _type_text(others[0], what)
    if hint in _TYPES:
        return _TYPES[hint]
    match get_origin(hint), get_args(hint):
        case (origin, (item,)) if origin is list:
            return f"ARRAY<{_type_text(item, what)}>"
        case (origin, (key, value)) if origin is dict and key is str:
            return f"MAP<STRING, {_type_text(value, what)}>"
    shown = getattr(hint, "__name__", hint) if not get_args(hint) else hint
    if hint is Decimal:
        raise DeclarationError(f"{what} is a Decimal: its precision and scale need a signature")
    raise DeclarationError(f"{what} has the annotation {shown}, which tells no SQL type")
