"""Functions that write and read structs in JSON: one is made per schema, as Python's text.

Most fields are numbers and texts, for which a call would cost more than the work. So the function
looks at each of them where it stands, and calls what writes or reads a field only where the value
is another one than expected.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from json.encoder import encode_basestring
from typing import Any, Final, NoReturn

from barnabas.connect.data.schema import (
    DATE,
    DECIMAL,
    TIME,
    TIMESTAMP,
    Schema,
    Struct,
    Type,
)
from barnabas.connect.errors.kinds import DataError

Write = Callable[[Any], str]
Read = Callable[[Any], Any]
LOGICAL: Final = (DECIMAL, DATE, TIME, TIMESTAMP)
BITS: Final = {Type.INT8: 7, Type.INT16: 15, Type.INT32: 31, Type.INT64: 63}
"""Of whole numbers, without the sign."""
ESCAPED: Final = "\\u00"
"""What JSON may have in it where Jackson escapes in another way."""


def struct_writer(
    schema: Schema,
    names: Sequence[str],
    writers: Sequence[Write],
    nulls: Sequence[str | None],
    refused: Callable[[Any], DataError],
) -> Write:
    """Return what writes a struct's fields.

    `names` are the fields' in quotes, `writers` write their values, null too, and `nulls` are the
    texts of null where it is allowed. `refused` makes the error of what is no struct.
    """
    scope: dict[str, Any] = {
        "Struct": Struct,
        "schema": schema,
        "refused": refused,
        "mismatch": _mismatch,
        "quoted": encode_basestring,
        "escaped": ESCAPED,
        "true": "true",
        "false": "false",
        "slow": _slow_writer(names, writers),
    }
    places = [f"v{index}" for index in range(len(names))]
    pieces: list[str] = []
    for place, name, field, write, null in zip(
        places, names, schema.fields, writers, nulls, strict=True
    ):
        scope |= {f"w_{place}": write, f"n_{place}": null}
        text = _written(field.schema, place)
        if null is not None:
            text = f"n_{place} if {place} is None else {text}"
        comma = "," if pieces else ""
        pieces.append(f"{comma + name + ':'!r} f'{{{text}}}'")
    return _built(
        scope,
        "def run(value):",
        " if type(value) is not Struct: raise refused(value)",
        " if value.schema is not schema and value.schema != schema: mismatch()",
        f" [{', '.join(places)}] = value.values",
        f" text = '{{' {' '.join(pieces)} '}}'",
        " return slow(value) if escaped in text else text",
    )


def struct_reader(
    schema: Schema,
    readers: Sequence[Read],
    may_be_null: Sequence[bool],
    refused: Callable[[Any], DataError],
    check: Callable[[list[Any]], None] | None,
) -> Read:
    """Return what reads the fields of a struct from a JSON object.

    `readers` read fields' nodes, null too; a null that `may_be_null` stays one. `refused` makes the
    error of what is no object, `check` looks at the values.
    """
    scope: dict[str, Any] = {"Struct": Struct, "schema": schema, "refused": refused, "check": check}
    lines = []
    for field, read, is_null in zip(schema.fields, readers, may_be_null, strict=True):
        place = f"v{field.index}"
        scope[f"r_{place}"] = read
        test = _other(field.schema, place)
        if is_null:
            test = f"{place} is not None and ({test})"
        lines += [f" {place} = get({field.name!r})", f" if {test}: {place} = r_{place}({place})"]
    values = ", ".join(f"v{field.index}" for field in schema.fields)
    return _built(
        scope,
        "def run(node):",
        " if type(node) is not dict: raise refused(node)",
        " get = node.get",
        *lines,
        f" values = [{values}]",
        *(() if check is None else (" check(values)",)),
        " return Struct(schema, values)",
    )


def _written(schema: Schema, place: str) -> str:
    """The expression of a value's text, or of a number that formats as its text."""
    call = f"w_{place}({place})"
    bits = BITS.get(schema.type)
    if schema.name in LOGICAL:
        return call
    if bits is not None:
        return f"{place} if {_is_whole(place, bits)} else {call}"
    if schema.type is Type.STRING:
        return f"quoted({place}) if type({place}) is str else {call}"
    if schema.type is Type.BOOLEAN:
        return f"true if {place} is True else false if {place} is False else {call}"
    return call


def _other(schema: Schema, place: str) -> str:
    """The test for nodes that are not yet the value."""
    bits = BITS.get(schema.type)
    if schema.name in LOGICAL:
        return "True"
    if bits is not None:
        return f"not ({_is_whole(place, bits)})"
    kind = _SAME.get(schema.type)
    return "True" if kind is None else f"type({place}) is not {kind}"


def _is_whole(place: str, bits: int) -> str:
    return f"type({place}) is int and {-1 << bits} <= {place} <= {(1 << bits) - 1}"


def _slow_writer(names: Sequence[str], writers: Sequence[Write]) -> Callable[[Struct], str]:
    def write(value: Struct) -> str:
        pairs = zip(names, writers, value.values, strict=True)
        return f"{{{','.join([f'{name}:{part(item)}' for name, part, item in pairs])}}}"

    return write


def _mismatch() -> NoReturn:
    raise DataError("Mismatching schema.")


def _built(scope: dict[str, Any], *lines: str) -> Callable[[Any], Any]:
    exec("\n".join(lines), scope)  # the text holds literals and names that are given here
    built: Callable[[Any], Any] = scope["run"]
    return built


_SAME: Final[dict[Type, str]] = {
    Type.FLOAT64: "float",
    Type.BOOLEAN: "bool",
    Type.STRING: "str",
}
