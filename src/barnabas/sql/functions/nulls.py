"""Functions about NULL, and AS_VALUE."""

from __future__ import annotations

from barnabas.sql.functions.catalog import scalar
from barnabas.sql.types import Value

CONDITIONAL = "CONDITIONAL"


@scalar(
    "COALESCE",
    "(first T, others T...) -> T",
    description="The first value that is not NULL.",
    category=CONDITIONAL,
)
def coalesce(*values: Value) -> Value:
    for value in values:
        if value is not None:
            return value
    return None


@scalar(
    "IFNULL",
    "(expression T, altValue T) -> T",
    description="The value, or the second one if it is NULL.",
    category=CONDITIONAL,
    parameters={"expression": "the value", "altValue": "the value to use instead of NULL"},
)
def ifnull(value: Value, alternative: Value) -> Value:
    return alternative if value is None else value


@scalar(
    "NULLIF",
    "(expr1 T, expr2 T) -> T",
    description="NULL if both values are equal, else the first.",
    category=CONDITIONAL,
    parameters={"expr1": "the value", "expr2": "the value that becomes NULL"},
)
def nullif(value: Value, other: Value) -> Value:
    # NaN equals NaN, as Java's objects have it.
    return None if value == other or (value != value and other != other) else value


@scalar(
    "AS_VALUE",
    "(keyColumn T) -> T",
    description="The value as it is. In a projection, a copy of a key column among the values.",
)
def as_value(value: Value) -> Value:
    return value
