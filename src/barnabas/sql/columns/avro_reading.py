"""Reads AVRO field by field, each field of all records at once.

Cursors are positions in records. A field's reader takes the field at every cursor with NumPy, and
moves the cursors behind it. A record is in doubt if its data end early, or have an unknown branch
or a number of too many bits; its cursor then stays within the record. Records with the same schema
are read together. A schema with an array or a map, or with fields that do not fit their
columns, has no reader here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from barnabas.java.numbers import INT_MAX, INT_MIN, double_text, fit_decimal, float_text, scaled
from barnabas.schemas.data.schema import Schema, Type
from barnabas.schemas.registry_client import StoredSchema
from barnabas.sql.columns.cursors import Cursors
from barnabas.sql.columns.schema_groups import NoFormError, Root, SchemaGroups
from barnabas.sql.columns.vectors import (
    WHOLE,
    Indexes,
    Mask,
    Numbers,
    Reader,
    Vector,
    nulls_of,
    of_values,
    text_vector,
    texts_of,
    texts_of_doubles,
    texts_of_truths,
    texts_of_wholes,
)
from barnabas.sql.formats.avro import parsed
from barnabas.sql.formats.connect_data import reader as value_reader
from barnabas.sql.formats.connect_data import struct_readers
from barnabas.sql.formats.connect_schema import is_decimal, scale_of, sql_type_of
from barnabas.sql.formats.format import RecordPart
from barnabas.sql.schema import Column
from barnabas.sql.types import BIGINT, STRING, BaseType, Decimal, SqlType, Struct, Value

_FORMS: Final = (
    *WHOLE,
    BaseType.BOOLEAN,
    BaseType.DOUBLE,
    BaseType.STRING,
    BaseType.BYTES,
    BaseType.DECIMAL,
)


def avro_reader(part: RecordPart) -> Reader | None:
    """Return what reads a part in AVRO as vectors; None if only the row reader can."""
    if any(column.type.base not in _FORMS for column in part.columns):
        return None
    columns, wraps = tuple(part.columns), part.wraps

    def root(schema: StoredSchema, _: bytes) -> Root:
        return _root(columns, *parsed(schema), wraps=wraps)

    return SchemaGroups(part, "AVRO", root).read


_Field = Callable[[Cursors, "Mask | None"], Vector]
"""Takes a field of the records that have it: where the mask is true, everywhere if it is None."""
_Skip = Callable[[Cursors, "Mask | None"], Any]


class _Types(NamedTuple):
    """Avro's named types that were met."""

    named: dict[str, Mapping[str, Any]]

    def of(self, avro: Any) -> Any:
        """The schema without a name: a text, a list or a mapping."""
        if isinstance(avro, str):
            return self.named.get(avro, avro)
        if isinstance(avro, Mapping):
            if "name" in avro:
                self.named[avro["name"]] = avro
            elif avro["type"] not in ("array", "map"):
                return self.of(avro["type"])
        return avro


def _root(columns: Sequence[Column], connect: Schema, avro: Any, *, wraps: bool) -> Root:
    """Raises NoFormError, UnreadableError."""
    types = _Types({})
    target = sql_type_of(columns, wraps=wraps)
    if not (isinstance(target, Struct) and (wraps or len(columns) != 1)):
        value_reader(target, connect, lambda _: None)
        field = _field(types, avro, connect, columns[0].type)
        return lambda cursors: [field(cursors, None)]
    record = types.of(avro)
    if connect.type is not Type.STRUCT or not isinstance(record, Mapping):
        raise NoFormError
    names = [name for name, _ in struct_readers(target, connect, lambda _: None)]
    places = {name: place for place, name in enumerate(names) if name is not None}
    steps: list[tuple[int | None, _Skip]] = []
    for field_, schema in zip(record["fields"], connect.fields, strict=True):
        place = places.get(field_["name"])
        if place is None:
            steps.append((None, _skip(types, field_["type"])))
        else:
            made = _field(types, field_["type"], schema.schema, columns[place].type)
            steps.append((place, made))
    nulls = {place for place, name in enumerate(names) if name is None}

    def root(cursors: Cursors) -> list[Vector]:
        found: dict[int, Vector] = {}
        for place, step in steps:
            vector = step(cursors, None)
            if place is not None:
                found[place] = vector
        return [
            nulls_of(column.type, len(cursors)) if place in nulls else found[place]
            for place, column in enumerate(columns)
        ]

    return root


# --- fields that columns take ----------------------------------------------------------------


def _field(types: _Types, avro: Any, connect: Schema, sql_type: SqlType) -> _Field:
    avro = types.of(avro)
    if isinstance(avro, list):
        return _nullable(types, avro, connect, sql_type)
    kind = avro["type"] if isinstance(avro, Mapping) else avro
    is_text = sql_type.base is BaseType.STRING
    if kind in ("int", "long"):
        return _texts_of_wholes(kind) if is_text else _wholes(kind, sql_type)
    if kind in ("float", "double"):
        return _texts_of_doubles(kind) if is_text else _doubles(kind, sql_type)
    if kind == "boolean":
        return _texts_of_booleans if is_text else _booleans(sql_type)
    if kind == "string":
        return _texts(sql_type)
    if kind == "enum":
        return _symbols(avro["symbols"], sql_type)
    if kind == "bytes":
        return _bytes(sql_type, connect, lambda cursors, mine: _pieces(cursors, mine).to_pylist())
    if kind == "fixed":
        width = int(avro["size"])
        return _bytes(
            sql_type,
            connect,
            lambda cursors, mine: [row.tobytes() for row in cursors.fixed(width, mine)],
        )
    raise NoFormError


def _nullable(types: _Types, branches: list[Any], connect: Schema, sql_type: SqlType) -> _Field:
    """Of a union of null and one more type."""
    others = [branch for branch in branches if branch != "null"]
    if len(branches) != 2 or len(others) != 1:
        raise NoFormError
    inner = _field(types, others[0], connect, sql_type)
    value_branch = 2 * branches.index(others[0])  # as Avro writes the number

    def read(cursors: Cursors, mine: Mask | None) -> Vector:
        branch = cursors.byte(mine)
        has_value = branch == value_branch
        cursors.note((branch != 0) & (branch != 2), mine)
        there = has_value if mine is None else has_value & mine
        if there.all():
            return inner(cursors, None)
        vector = inner(cursors, there)
        return Vector(vector.type, vector.data, there)

    return read


def _wholes(kind: str, sql_type: SqlType) -> _Field:
    def read(cursors: Cursors, mine: Mask | None) -> Vector:
        numbers = cursors.number(mine)
        _check_bits(kind, numbers, cursors, mine)
        return Vector(sql_type, numbers, mine)

    return read


def _check_bits(kind: str, numbers: Indexes, cursors: Cursors, mine: Mask | None) -> None:
    if kind == "int":
        cursors.note((numbers < INT_MIN) | (numbers > INT_MAX), mine)


def _texts_of_wholes(kind: str) -> _Field:
    def read(cursors: Cursors, mine: Mask | None) -> Vector:
        numbers = cursors.number(mine)
        _check_bits(kind, numbers, cursors, mine)
        return texts_of_wholes(numbers, mine)

    return read


def _doubles(kind: str, sql_type: SqlType) -> _Field:
    numbers_of = _numbers_of(kind)
    return lambda cursors, mine: Vector(sql_type, numbers_of(cursors, mine), mine)


def _numbers_of(kind: str) -> Callable[[Cursors, Mask | None], Numbers]:
    width, dtype = (4, "<f4") if kind == "float" else (8, "<f8")

    def numbers(cursors: Cursors, mine: Mask | None) -> Numbers:
        rows = np.ascontiguousarray(cursors.fixed(width, mine))
        with np.errstate(invalid="ignore"):
            found: Numbers = rows.view(dtype).reshape(len(cursors)).astype(np.float64)
        return found

    return numbers


def _texts_of_doubles(kind: str) -> _Field:
    numbers_of = _numbers_of(kind)
    text = float_text if kind == "float" else double_text

    return lambda cursors, mine: texts_of_doubles(numbers_of(cursors, mine), mine, text)


def _truths(cursors: Cursors, mine: Mask | None) -> Mask:
    found = cursors.byte(mine)
    cursors.note(found > 1, mine)
    truths: Mask = found == 1
    return truths


def _booleans(sql_type: SqlType) -> _Field:
    return lambda cursors, mine: Vector(sql_type, _truths(cursors, mine), mine)


def _texts_of_booleans(cursors: Cursors, mine: Mask | None) -> Vector:
    return texts_of_truths(_truths(cursors, mine), mine)


def _pieces(cursors: Cursors, mine: Mask | None) -> Any:
    """Bytes with their length before them, as an Arrow array; NULL beside `mine`."""
    return cursors.pieces(cursors.number(mine), mine)


def _texts(sql_type: SqlType) -> _Field:
    def read(cursors: Cursors, mine: Mask | None) -> Vector:
        texts, bad = texts_of(_pieces(cursors, mine))
        cursors.odd |= bad
        return text_vector(sql_type, texts)

    return read


def _symbols(symbols: Sequence[str], sql_type: SqlType) -> _Field:
    def read(cursors: Cursors, mine: Mask | None) -> Vector:
        numbers = cursors.number(mine)
        odd = (numbers < 0) | (numbers >= len(symbols))
        cursors.note(odd, mine)
        without = odd if mine is None else odd | ~mine
        places = pa.array(np.where(without, 0, numbers), mask=None if mine is None else ~mine)
        return text_vector(sql_type, pa.array(symbols, pa.string()).take(places))

    return read


def _bytes(
    sql_type: SqlType, connect: Schema, pieces: Callable[[Cursors, Mask | None], list[Any]]
) -> _Field:
    """Bytes as they are, or as the digits of DECIMALs."""
    if is_decimal(connect) != isinstance(sql_type, Decimal):
        raise NoFormError
    convert = None
    if isinstance(sql_type, Decimal):
        convert = _decimals(sql_type, scale_of(connect))

    def read(cursors: Cursors, mine: Mask | None) -> Vector:
        values: list[Value] = pieces(cursors, mine)
        if mine is not None:
            there = mine.tolist()
            values = [value if has else None for value, has in zip(values, there, strict=True)]
        if convert is not None:
            values = convert(values, cursors)
        return of_values(sql_type, values)

    return read


def _decimals(target: Decimal, scale: int) -> Callable[[list[Any], Cursors], list[Value]]:
    precision = target.precision
    bound = 10**precision if scale == target.scale else 0

    def convert(values: list[Any], cursors: Cursors) -> list[Value]:
        found: list[Value] = []
        for at, value in enumerate(values):
            if value is None:
                found.append(None)
                continue
            digits = int.from_bytes(value, "big", signed=True)
            number = scaled(digits, scale)
            if not -bound < digits < bound:
                try:
                    number = fit_decimal(number, precision, target.scale)
                except ValueError:
                    cursors.odd[at] = True
            found.append(number)
        return found

    return convert


# --- fields that no column takes -------------------------------------------------------------


def _skip(types: _Types, avro: Any) -> _Skip:
    avro = types.of(avro)
    if isinstance(avro, list):
        return _skip_union([_skip(types, branch) for branch in avro])
    kind = avro["type"] if isinstance(avro, Mapping) else avro
    if kind in ("record", "error"):
        fields = [_skip(types, field["type"]) for field in avro["fields"]]

        def skip_record(cursors: Cursors, mine: Mask | None) -> None:
            for field in fields:
                field(cursors, mine)

        return skip_record
    if kind == "enum":
        return _symbols(avro["symbols"], STRING)
    if kind == "fixed":
        width = int(avro["size"])
        return lambda cursors, mine: cursors.forward(width, mine)
    try:
        return _SKIPPED[kind]
    except KeyError:
        raise NoFormError from None


def _skip_union(branches: Sequence[_Skip]) -> _Skip:
    def skip(cursors: Cursors, mine: Mask | None) -> None:
        branch = cursors.number(mine)
        cursors.note((branch < 0) | (branch >= len(branches)), mine)
        for number, skip_branch in enumerate(branches):
            chosen = branch == number if mine is None else (branch == number) & mine
            if chosen.any():
                skip_branch(cursors, chosen)

    return skip


def _skip_nothing(_cursors: Cursors, _mine: Mask | None) -> None:
    pass


_SKIPPED: Final[dict[str, _Skip]] = {
    "null": _skip_nothing,
    "boolean": _truths,
    "int": _wholes("int", BIGINT),
    "long": _wholes("long", BIGINT),
    "float": lambda cursors, mine: cursors.forward(4, mine),
    "double": lambda cursors, mine: cursors.forward(8, mine),
    "bytes": _pieces,
    "string": _texts(STRING),
}
