"""Reads JSON_SR as JSON, group by group, with the rules of the group's schema.

They differ from those of JSON: a member has exactly the name in the schema, `null` is an error if
its field is not optional, a missing member has the default of its field, and whole numbers are cut
to the width of the schema's type. A column is read with Arrow if its field has a type that needs no
conversion, and no default; the others are read record by record.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

import numpy as np
import pyarrow.compute as pc

from barnabas.schemas.converters.json_schema_documents import is_union
from barnabas.schemas.data.schema import Schema, Type
from barnabas.sql.columns.cursors import Cursors
from barnabas.sql.columns.json_reading import ArrowReader, Member, MixedReader, flat_type
from barnabas.sql.columns.schema_groups import NoFormError, Root, SchemaGroups
from barnabas.sql.columns.vectors import Reader, Vector, mask_of, nulls_of
from barnabas.sql.formats.connect_data import row_reader, struct_readers
from barnabas.sql.formats.connect_schema import is_decimal, sql_type_of
from barnabas.sql.formats.format import RecordPart
from barnabas.sql.formats.json import parse
from barnabas.sql.formats.json_reading import json_scanner
from barnabas.sql.formats.json_sr import from_json, parsed
from barnabas.sql.runtime.records import Row
from barnabas.sql.schema import Column
from barnabas.sql.types import BaseType, Decimal, SqlType, Struct

_PLAIN_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_INTEGERS: Final = (Type.INT8, Type.INT16, Type.INT32, Type.INT64)
_READ_AS: Final = {
    BaseType.BOOLEAN: (Type.BOOLEAN,),
    BaseType.INTEGER: _INTEGERS[:3],
    BaseType.BIGINT: _INTEGERS,
    BaseType.DOUBLE: (Type.FLOAT32, Type.FLOAT64),
    BaseType.STRING: (Type.STRING,),
    BaseType.DATE: (Type.INT32,),
    BaseType.TIME: (Type.INT32,),
    BaseType.TIMESTAMP: (Type.INT64,),
}
"""Types of fields that Arrow reads as a column's type."""


def json_sr_reader(part: RecordPart) -> Reader | None:
    """Return what reads a part in JSON_SR as vectors; None if only the row reader can."""
    columns = tuple(part.columns)
    if part.is_bare or len({column.name for column in columns}) != len(columns):
        return None
    return SchemaGroups(part, "JSON", lambda schema, _: _root(columns, parsed(schema))).read


def _root(columns: Sequence[Column], connect: Schema) -> Root:
    """Raises NoFormError, UnreadableError, FormatError."""
    target = sql_type_of(columns, wraps=True)
    assert isinstance(target, Struct)
    if connect.type is not Type.STRUCT or is_union(connect):
        raise NoFormError
    names = [name for name, _ in struct_readers(target, connect, from_json)]
    fields = {field.name: field.schema for field in connect.fields}
    members: list[Member] = []
    at_once: list[Column] = []
    present: list[Column] = []
    for column, name in zip(columns, names, strict=True):
        if name is None:
            continue
        present.append(column)
        member = _member(column.name, column.type, name, fields[name])
        if member is not None:
            members.append(member)
            at_once.append(column)
    if not present:
        raise NoFormError
    arrow = ArrowReader(members)
    read = arrow.read
    refuses_null = _has_required_beside(connect, members)
    others = [column for column in present if column not in at_once]
    if others:
        refuses_null = False  # `read_row` looks at all fields
        convert = row_reader(others, connect, from_json, wraps=True)
        scan = json_scanner(exact=True)

        def read_row(value: bytes) -> Row | None:
            return convert(parse(value, scan))

        read = MixedReader(present, arrow, at_once, read_row).read

    def root(cursors: Cursors) -> list[Vector]:
        data = cursors.rest()
        vectors, _, doubt = read(data)
        cursors.odd |= doubt
        if refuses_null:
            cursors.odd |= mask_of(pc.match_substring(data, "null"))
        made = dict(zip((column.name for column in present), vectors, strict=True))
        return [
            made[column.name] if column.name in made else nulls_of(column.type, len(cursors))
            for column in columns
        ]

    return root


def _member(name: str, sql_type: SqlType, spelling: str, schema: Schema) -> Member | None:
    """The member that Arrow reads; None if it cannot."""
    if not _PLAIN_NAME.match(spelling) or schema.default is not None:
        return None
    needs_value = not schema.optional
    if isinstance(sql_type, Struct):
        if schema.type is not Type.STRUCT or is_union(schema) or not sql_type.fields:
            return None
        inner = _members(sql_type, schema)
        if inner is None or _has_required_beside(schema, inner):
            return None
        return Member(name, sql_type, inner, spelling=spelling, needs_value=needs_value)
    if isinstance(sql_type, Decimal):
        fits = is_decimal(schema) and flat_type(sql_type) is not None
        if not fits:
            return None
        return Member(name, sql_type, (), spelling=spelling, needs_value=needs_value)
    if schema.type not in _READ_AS.get(sql_type.base, ()):
        return None
    bounds = None
    if schema.type in _INTEGERS:
        limit = np.iinfo(schema.type.value)
        bounds = int(limit.min), int(limit.max)
    return Member(name, sql_type, (), spelling=spelling, bounds=bounds, needs_value=needs_value)


def _members(sql_type: Struct, schema: Schema) -> list[Member] | None:
    """The members of a struct; None if Arrow cannot read one of them."""
    schemas = {field.name: field.schema for field in schema.fields}
    members: list[Member] = []
    for field, (name, _) in zip(
        sql_type.fields, struct_readers(sql_type, schema, from_json), strict=True
    ):
        member = None if name is None else _member(field.name, field.type, name, schemas[name])
        if member is None:
            return None
        members.append(member)
    return members


def _has_required_beside(schema: Schema, members: Sequence[Member]) -> bool:
    """Return whether the row reader refuses `null` in a field that none of the members is."""
    read = {member.spelling for member in members}
    return any(
        not field.schema.optional and field.schema.default is None and field.name not in read
        for field in schema.fields
    )
