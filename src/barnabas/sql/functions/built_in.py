"""All functions that ship with us: importing this module fills the catalog."""

from __future__ import annotations

from barnabas.sql.functions import (  # noqa: F401  their import declares functions
    collections,
    dates,
    encodings,
    extremes,
    json,
    lambdas,
    masks,
    math,
    nulls,
    positions,
    regex,
    rounding,
    strings,
    url,
)
from barnabas.sql.functions.aggregates import collecting, counting, offsets, statistics, sums  # noqa: F401
from barnabas.sql.functions.aggregates import extremes as _extremes  # noqa: F401
from barnabas.sql.functions.catalog import BUILT_IN, Function


def functions() -> dict[str, Function]:
    """Every function by its name, in upper case."""
    return BUILT_IN
