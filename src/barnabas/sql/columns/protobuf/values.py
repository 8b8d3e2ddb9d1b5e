"""Values of Protobuf's fields as vectors of the columns that take them.

`Shape` is a message as the columns, or a STRUCT, take it: it knows which field each of them is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Final

import numpy as np
from google.protobuf.descriptor import Descriptor, FieldDescriptor

from barnabas.java.numbers import fit_decimal, scaled
from barnabas.java.time.calendar import days_of
from barnabas.java.time.units import NANOS_OF_MS
from barnabas.schemas.converters.protobuf_reading import REPEATED, REQUIRED, labelled, proto_of
from barnabas.schemas.converters.protobuf_writing import ENTRIES, UNION, WRAPPER, is_union
from barnabas.schemas.data.schema import DATE, DECIMAL, TIME, TIMESTAMP, Schema, Type
from barnabas.sql.columns.cursors import Cursors
from barnabas.sql.columns.protobuf.messages import (
    LENGTH,
    Found,
    Messages,
    Take,
    WireField,
    length_of,
    within,
)
from barnabas.sql.columns.protobuf.scalars import (
    Target,
    default_of,
    packed,
    scalar,
    whole_vector,
)
from barnabas.sql.columns.schema_groups import NoFormError
from barnabas.sql.columns.vectors import Vector, nulls_of, of_values, struct_vector
from barnabas.sql.formats.connect_data import reader as value_reader
from barnabas.sql.formats.connect_data import struct_readers
from barnabas.sql.formats.connect_schema import item_of, key_of
from barnabas.sql.formats.protobuf_data import from_message
from barnabas.sql.types import (
    BIGINT,
    BOOLEAN,
    BYTES,
    Array,
    Decimal,
    Map,
    SqlType,
    Struct,
    Value,
)

_F: Final = FieldDescriptor
_DEPTH_MAX: Final = 32
"""So many messages within each other have columns; the codec refuses some 100."""
_SECONDS_MAX: Final = 9 * 10**15


class Shape:
    """A message as columns take it. Raises NoFormError, UnreadableError."""

    def __init__(
        self,
        targets: Sequence[tuple[SqlType, str | None]],
        schema: Schema,
        message: Descriptor,
        depth: int = 0,
    ) -> None:
        """`targets`: types, and the field of each in the schema; None where it has none."""
        schemas = {field.name: field.schema for field in schema.fields}
        if len(schemas) < len(schema.fields):
            raise NoFormError
        wanted: dict[str, Target] = {}
        self._makers: list[Callable[[Found], Vector]] = []
        for sql_type, name in targets:
            if name is None:
                self._makers.append(_absent(sql_type))
            elif is_union(schemas[name]):
                self._makers.append(self._union(sql_type, schemas[name], wanted))
            else:
                wanted[name] = sql_type, schemas[name]
                self._makers.append(self._field(name, sql_type))
        self._messages = _messages(message, wanted, depth)

    def read(self, cursors: Cursors) -> list[Vector]:
        """Read the messages up to their ends."""
        found = self._messages.read(cursors)
        return [make(found) for make in self._makers]

    def _field(self, name: str, sql_type: SqlType) -> Callable[[Found], Vector]:
        def make(found: Found) -> Vector:
            field = self._messages.fields[name]
            if not field.is_repeated:
                return found.one(field)
            values, begins = found.lists(field)
            lists: list[Value] = [values[begin:end] for begin, end in pairwise(begins)]
            if isinstance(sql_type, Map):
                lists = [{one["key"]: one["value"] for one in entries} for entries in lists]
            return of_values(sql_type, lists)

        return make

    def _union(
        self, sql_type: SqlType, schema: Schema, wanted: dict[str, Target]
    ) -> Callable[[Found], Vector]:
        """A choice as a struct in which one field, the chosen one, is not NULL."""
        if not isinstance(sql_type, Struct):
            raise NoFormError
        schemas = {field.name: field.schema for field in schema.fields}
        names = [name for name, _ in struct_readers(sql_type, schema, from_message)]
        for field, name in zip(sql_type.fields, names, strict=True):
            if name is not None:
                wanted[name] = field.type, schemas[name]
        group = (schema.name or "").removeprefix(UNION)

        def make(found: Found) -> Vector:
            vectors = [
                nulls_of(field.type, found.size)
                if name is None
                else found.one(self._messages.fields[name])
                for field, name in zip(sql_type.fields, names, strict=True)
            ]
            seen = found.seen.get(group)
            there = np.zeros(found.size, np.bool_) if seen is None else seen
            return struct_vector(sql_type, vectors, there)

        return make


def _absent(sql_type: SqlType) -> Callable[[Found], Vector]:
    return lambda found: nulls_of(sql_type, found.size)


def value_in_message(sql_type: SqlType, schema: Schema, message: Descriptor) -> Take:
    """Return what reads the value of one of google.protobuf's wrappers, up to its end."""
    messages = _messages(message, {"value": (sql_type, schema)}, 0, defaulted=True)
    field = messages.fields.get("value")
    if field is None or field.is_repeated or len(messages.fields) > 1:
        raise NoFormError
    return lambda cursors: messages.read(cursors).one(field)


def _messages(
    message: Descriptor, wanted: Mapping[str, Target], depth: int, *, defaulted: bool = False
) -> Messages:
    """Return what reads messages of a type.

    `defaulted`: fields that are missing have their default even if they could tell.
    """
    if depth > _DEPTH_MAX:
        raise NoFormError
    proto = proto_of(message)
    repeated = labelled(proto, REPEATED)
    required = labelled(proto, REQUIRED)
    synthetic = {field.oneof_index for field in proto.field if field.proto3_optional}
    fields = []
    for field in message.fields:
        target = wanted.get(field.name)
        is_repeated = field.name in repeated
        if is_repeated and target is not None:
            target = _item(target)
        kind, take, natural = _value(field, target, depth)
        sql_type = natural if target is None else target[0]
        default = nulls_of(sql_type, 1)
        is_required = field.name in required
        if not is_repeated and (defaulted or not field.has_presence):
            if field.message_type is None:
                default = default_of(field, target, natural)
            else:
                is_required = True  # the codec gives an empty message
        containing = field.containing_oneof
        group = None
        if containing is not None and containing.index not in synthetic:
            group = containing.name
        elif not is_repeated and (field.message_type is not None or is_required):
            group = f"{field.name}."  # no choice has such a name
        fields.append(
            WireField(
                field.name,
                field.number,
                kind,
                take,
                default,
                is_repeated,
                is_required,
                group,
                packed(kind, take) if is_repeated and kind != LENGTH else None,
            )
        )
    return Messages(fields, skips_unknown=not message.is_extendable)


def _item(target: Target) -> Target:
    """Return what takes the items of a list, or the entries of a list that is a map.

    Raises NoFormError, UnreadableError.
    """
    sql_type, schema = target
    if isinstance(sql_type, Array) and schema.type is Type.ARRAY:
        value_reader(sql_type.item, item_of(schema), from_message)
        return sql_type.item, item_of(schema)
    if isinstance(sql_type, Map) and ENTRIES in schema.parameters:
        value_reader(sql_type.key, key_of(schema), from_message)
        value_reader(sql_type.value, item_of(schema), from_message)
        return sql_type, schema
    raise NoFormError  # the codec's own order decides that of a map


def _value(field: FieldDescriptor, target: Target | None, depth: int) -> tuple[int, Take, SqlType]:
    """The wire type of a field, what reads it, and the type that it has if no column takes it."""
    if field.type == FieldDescriptor.TYPE_GROUP:
        raise NoFormError
    if field.message_type is not None:
        return LENGTH, _message(field.message_type, target, depth), BOOLEAN
    return scalar(field, target)


# --- messages --------------------------------------------------------------------------------


def _message(message: Descriptor, target: Target | None, depth: int) -> Take:
    """Return what reads the messages of a field."""
    read = _unread(message, depth) if target is None else _read(message, target, depth)

    def take(cursors: Cursors) -> Vector:
        inner = within(cursors, length_of(cursors))
        vector = read(inner)
        cursors.odd |= inner.odd
        return vector

    return take


def _unread(message: Descriptor, depth: int) -> Take:
    """Checks messages that no column takes: the codec refuses a record for what is in them."""
    messages = _messages(message, {}, depth + 1)

    def read(cursors: Cursors) -> Vector:
        messages.read(cursors)
        return Vector(BOOLEAN, np.zeros(len(cursors), np.bool_))

    return read


def _read(message: Descriptor, target: Target, depth: int) -> Take:
    sql_type, schema = target
    logical = _LOGICAL.get(schema.name or "")
    if logical is not None:
        return logical(message, sql_type)
    if WRAPPER in schema.parameters:
        return value_in_message(sql_type, schema, message)
    if isinstance(sql_type, Map):
        return _entries(message, sql_type, schema, depth)
    if not isinstance(sql_type, Struct):
        raise NoFormError
    names = [name for name, _ in struct_readers(sql_type, schema, from_message)]
    targets = zip((field.type for field in sql_type.fields), names, strict=True)
    shape = Shape(list(targets), schema, message, depth + 1)
    return lambda cursors: struct_vector(sql_type, shape.read(cursors), None)


def _entries(message: Descriptor, sql_type: Map, schema: Schema, depth: int) -> Take:
    """Entries of a map, as objects of `key` and `value`."""
    wanted = {"key": (sql_type.key, key_of(schema)), "value": (sql_type.value, item_of(schema))}
    messages = _messages(message, wanted, depth + 1, defaulted=True)
    key, value = messages.fields["key"], messages.fields["value"]
    if key.is_repeated or value.is_repeated:
        raise NoFormError

    def read(cursors: Cursors) -> Vector:
        found = messages.read(cursors)
        keys, values = found.one(key).to_list(), found.one(value).to_list()
        made = np.empty(len(cursors), object)
        made[:] = [{"key": one, "value": two} for one, two in zip(keys, values, strict=True)]
        return Vector(sql_type, made)

    return read


def _parts(message: Descriptor, parts: Mapping[str, SqlType]) -> Callable[[Cursors], list[Vector]]:
    """Return what reads these fields, which are all, of a message that stands for one value."""
    if {field.name: _CARRIERS.get(field.type) for field in message.fields} != dict(parts):
        raise NoFormError
    schema = Schema(Type.INT64)
    of_bytes = Schema(Type.BYTES)
    wanted = {
        name: (sql_type, of_bytes if sql_type is BYTES else schema)
        for name, sql_type in parts.items()
    }
    messages = _messages(message, wanted, 0, defaulted=True)
    if any(field.is_repeated for field in messages.fields.values()):
        raise NoFormError

    def read(cursors: Cursors) -> list[Vector]:
        found = messages.read(cursors)
        return [found.one(messages.fields[name]) for name in parts]

    return read


_CARRIERS: Final = {
    **dict.fromkeys((_F.TYPE_INT32, _F.TYPE_INT64, _F.TYPE_UINT32), BIGINT),
    _F.TYPE_BYTES: BYTES,
}


def _timestamps(message: Descriptor, sql_type: SqlType) -> Take:
    parts = _parts(message, {"seconds": BIGINT, "nanos": BIGINT})

    def read(cursors: Cursors) -> Vector:
        seconds, nanos = (vector.data for vector in parts(cursors))
        cursors.odd |= (seconds < -_SECONDS_MAX) | (seconds > _SECONDS_MAX)
        return whole_vector(sql_type, seconds * 1000 + nanos // NANOS_OF_MS)

    return read


def _times(message: Descriptor, sql_type: SqlType) -> Take:
    names = ("hours", "minutes", "seconds", "nanos")
    parts = _parts(message, dict.fromkeys(names, BIGINT))

    def read(cursors: Cursors) -> Vector:
        hours, minutes, seconds, nanos = (vector.data for vector in parts(cursors))
        whole = (hours * 60 + minutes) * 60 + seconds
        return whole_vector(sql_type, whole * 1000 + nanos // NANOS_OF_MS)

    return read


def _dates(message: Descriptor, sql_type: SqlType) -> Take:
    parts = _parts(message, dict.fromkeys(("year", "month", "day"), BIGINT))

    def read(cursors: Cursors) -> Vector:
        listed = list(zip(*(vector.data.tolist() for vector in parts(cursors)), strict=True))
        days: dict[tuple[int, int, int], int | None] = {}
        for one in set(listed):
            try:
                days[one] = days_of(*one)
            except (ValueError, OverflowError):
                days[one] = None
        found = [days[one] for one in listed]
        if None in days.values():
            cursors.odd |= np.array([one is None for one in found], np.bool_)
        return whole_vector(sql_type, np.array([one or 0 for one in found], np.int64))

    return read


def _decimals(message: Descriptor, sql_type: SqlType) -> Take:
    if not isinstance(sql_type, Decimal):
        raise NoFormError
    names = [field.name for field in message.fields]
    parts = _parts(message, {name: BYTES if name == "value" else BIGINT for name in names})
    if not {"value", "scale"} <= set(names):
        raise NoFormError
    precision, scale = sql_type.precision, sql_type.scale

    def read(cursors: Cursors) -> Vector:
        read_parts = dict(zip(names, parts(cursors), strict=True))
        pairs = zip(read_parts["value"].to_list(), read_parts["scale"].to_list(), strict=True)
        values: list[Value] = []
        for place, (digits, own) in enumerate(pairs):
            value = None
            try:
                number = scaled(int.from_bytes(digits, "big", signed=True), own)
                value = fit_decimal(number, precision, scale)
            except (ValueError, ArithmeticError):
                cursors.odd[place] = True
            values.append(value)
        return of_values(sql_type, values)

    return read


_LOGICAL: Final[dict[str, Callable[[Descriptor, SqlType], Take]]] = {
    DECIMAL: _decimals,
    DATE: _dates,
    TIME: _times,
    TIMESTAMP: _timestamps,
}
