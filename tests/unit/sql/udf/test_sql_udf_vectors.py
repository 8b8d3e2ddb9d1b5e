"""Vectorised functions of users: Arrow arrays in and out."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from barnabas.sql.errors import EvaluationError
from barnabas.sql.types import BIGINT, DOUBLE
from barnabas.sql.udf import functions_of, udf
from barnabas.sql.udf.vectors import Vectorized
from support.sql_udf import value_of


@udf("(price DOUBLE, rate DOUBLE) -> DOUBLE", vectorized=True)
def with_tax(price: Any, rate: Any) -> Any:
    return pc.multiply(price, pc.add(rate, 1.0))


def test_records_one_by_one() -> None:
    own = functions_of(with_tax)
    assert value_of("WITH_TAX(2, 0.5E0)", own) == 3.0
    assert value_of("WITH_TAX(NULL, 0.5E0)", own) is None


def test_a_batch_is_one_call() -> None:
    sizes = []

    @udf("(value BIGINT) -> BIGINT", vectorized=True)
    def double(value: Any) -> Any:
        sizes.append((len(value), value.type))
        return pc.multiply(value, 2)

    implementation = functions_of(double)["DOUBLE"].scalars[0].implementation
    assert isinstance(implementation, Vectorized)
    assert implementation.batch([[1, None, 3]], [BIGINT], 3) == [2, None, 6]
    assert sizes == [(3, pa.int64())]


TYPES = [
    ("BOOLEAN", "true", pa.bool_()),
    ("INT", "7", pa.int32()),
    ("DOUBLE", "7", pa.float64()),
    ("DECIMAL", "1.50", pa.decimal128(3, 2)),
    ("STRING", "'a'", pa.string()),
    ("BYTES", "TO_BYTES('ff', 'hex')", pa.binary()),
    ("DATE", "FROM_DAYS(1)", pa.date32()),
    ("TIME", "PARSE_TIME('01:02:03', 'HH:mm:ss')", pa.time32("ms")),
    ("TIMESTAMP", "FROM_UNIXTIME(5)", pa.timestamp("ms", "UTC")),
    ("ARRAY<MAP<STRING, INT>>", "ARRAY[MAP('a' := 1)]", pa.list_(pa.map_("string", "int32"))),
    ("T", "STRUCT(A := FROM_DAYS(1))", pa.struct([("A", pa.date32())])),
]


@pytest.mark.parametrize(("kind", "text", "expected"), TYPES)
def test_types_of_arrays(kind: str, text: str, expected: Any) -> None:
    seen = []

    def same(value: Any) -> Any:
        seen.append(value.type)
        return value

    result = "DECIMAL(3, 2)" if kind == "DECIMAL" else kind
    own = functions_of(udf(f"(value {kind}) -> {result}", name="F", vectorized=True)(same))
    assert value_of(f"F({text})", own) == value_of(text, {})
    assert seen == [expected]


@pytest.mark.parametrize(
    ("result", "message"),
    [
        ([1], "F: gave a list, which is not an Arrow array"),
        (pa.array([1, 2]), "F: gave 2 values for 1 records"),
        (pa.array(["x"]), "F: gave 'x'"),
        (pa.array([Decimal(1)]), "F: gave Decimal"),
        (pa.array([date(1970, 1, 1)]), "F: gave datetime.date"),
    ],
)
def test_results_that_are_refused(result: Any, message: str) -> None:
    own = functions_of(udf("(v BIGINT) -> BIGINT", name="F", vectorized=True)(lambda v: result))
    with pytest.raises(EvaluationError, match=message):
        value_of("F(1)", own)


def test_an_error_is_that_of_the_whole_batch() -> None:
    implementation = functions_of(with_tax)["WITH_TAX"].scalars[0].implementation
    assert isinstance(implementation, Vectorized)
    with pytest.raises(EvaluationError, match="WITH_TAX: "):
        implementation.batch([[1.0], ["x"]], [DOUBLE, DOUBLE], 1)
