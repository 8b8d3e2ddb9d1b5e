"""A JDBC sink takes the values of its columns from records."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from barnabas.connect.connectors.jdbc.dialects import ColumnSpec
from barnabas.connect.connectors.jdbc.sink import ColumnValues
from barnabas.schemas.data.builder import (
    INT32,
    INT64,
    OPTIONAL_STRING,
    STRING,
    decimal,
    optional,
    struct_of,
    with_default,
)
from barnabas.schemas.data.errors import DataError
from barnabas.schemas.data.schema import Schema, Struct

ROW = struct_of(
    {
        "id": INT64,
        "name": OPTIONAL_STRING,
        "unit": with_default(optional(STRING), "kWh"),
        "price": optional(decimal(2)),
    }
)
OTHER = struct_of({"price": optional(decimal(2)), "id": INT32})
FULL = Struct(ROW, [1, "a", "Wh", Decimal("1.50")])
BARE = Struct(ROW, [2, None, None, None])


def columns(*names: str, schema: Schema = ROW, replaces_null: bool = True) -> ColumnValues:
    specs = []
    for name in names:
        field = schema.field(name)
        specs.append(ColumnSpec(name, INT32 if field is None else field.schema))
    return ColumnValues(specs, lambda _schema, value: f"<{value}>", replaces_null=replaces_null)


@pytest.mark.parametrize(
    ("names", "source", "replaces_null", "expected"),
    [
        ((), FULL, True, ()),
        (("unit", "id"), FULL, True, ("Wh", 1)),
        (("id", "name", "unit"), BARE, True, (2, None, "kWh")),
        (("id", "name", "unit"), BARE, False, (2, None, None)),
        (("price",), FULL, True, ("<1.50>",)),
        (("price",), BARE, True, (None,)),
        (("id",), 7, True, ("<7>",)),
        (("id",), None, True, (None,)),
    ],
    ids=[
        "no columns",
        "in the columns' order",
        "null is its default",
        "null stays null",
        "a decimal as the driver takes it",
        "but not null",
        "a plain key",
        "a key that is null",
    ],
)
def test_values_of_columns(
    names: tuple[str, ...], source: Any, replaces_null: bool, expected: tuple[Any, ...]
) -> None:
    assert columns(*names, replaces_null=replaces_null).of(source) == expected


def test_each_struct_is_read_by_its_own_schema() -> None:
    made = columns("id", "price")
    values = [made.of(one) for one in (FULL, Struct(OTHER, [Decimal(3), 9]), BARE)]
    assert values == [(1, "<1.50>"), (9, "<3>"), (2, None)]


def test_a_struct_without_the_column_is_refused() -> None:
    with pytest.raises(DataError, match="name is not a valid field name"):
        columns("name").of(Struct(OTHER, [None, 1]))
