"""Calls of functions as columns: the values, failures and notes of the row engine."""

from __future__ import annotations

import io
import json
import math
import struct
from typing import Any

import fastavro
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.schemas.memory_registry import MemoryRegistry
from barnabas.schemas.wire_format import prefix_of
from barnabas.sql.columns.compiling import Compiling, Kernel
from barnabas.sql.runtime.topics import TopicRecord
from barnabas.sql.spark.hosted import HostedPlan
from barnabas.sql.syntax.expressions import Expression
from support.effort import examples
from support.sql_columns import copies, outcome
from support.sql_queries import plans_of

SOURCE = """
CREATE STREAM s (k STRING KEY, i INT, b BIGINT, d DOUBLE, e DOUBLE, t STRING, u STRING, o BOOLEAN,
  ts TIMESTAMP, da DATE, ti TIME) WITH (kafka_topic='s', value_format='AVRO');
"""
TEXTS = (
    "UCASE(t)",
    "LCASE(t)",
    "UCASE(LCASE(t) + u)",
    "TRIM(t)",
    "INITCAP(t)",
    "CONCAT(t, '-', u)",
    "CONCAT(t, u, t)",
    "CONCAT_WS(', ', t, u, 'x')",
    "CONCAT_WS(t, u, t)",
    "t + u + '!'",
    "REPLACE(t, 'a', 'bb')",
    "REPLACE(t, '', 'x')",
    "REPLACE(t, u, 'x')",
    *(f"SUBSTRING(t, {at})" for at in (-3, -1, 0, 1, 2, 9)),
    *(f"SUBSTRING(t, {at}, {n})" for at in (-3, -1, 0, 1, 2, 9) for n in (-1, 0, 1, 2, 5)),
    "SUBSTRING(t, i)",
    "CASE WHEN t IS NULL THEN u ELSE LPAD(t, 5, 'ab') END",
    "COALESCE(t, u, 'none')",
    "IFNULL(t, UCASE(u))",
    "NULLIF(t, u)",
    "NULLIF(t, 'a')",
    "MASK(t)",
    "SPLIT(t, 'a')[1]",
    "REGEXP_REPLACE(t, '[a-c]', '.')",
    "ELT(i, t, u)",
    "CHR(i)",
    "URL_EXTRACT_HOST('http://' + t)",
    "URL_EXTRACT_PARAMETER('http://x/?a=' + t, 'a')",
    "URL_DECODE_PARAM(t)",
    "URL_ENCODE_PARAM(t)",
    "FORMAT_TIMESTAMP(ts, 'yyyy-MM-dd HH:mm:ss')",
    "FORMAT_DATE(da, 'dd.MM.yy')",
    "FORMAT_TIME(ti, 'HH:mm')",
    "CAST(CEIL(d) AS STRING)",
    "CAST(o AS STRING)",
    "CAST(ts AS STRING)",
    "CAST(CAST(i AS STRING) AS BIGINT)",
    "CAST(d AS DECIMAL(38, 3))",
    "ENCODE(t, 'utf8', 'base64')",
    "GREATEST(t, u)",
    "AS_VALUE(t)",
)
NUMBERS = (
    "LEN(t)",
    "LEN(CONCAT(t, u))",
    "INSTR(t, 'a')",
    "INSTR(t, u)",
    "INSTR(t, 'a', 2)",
    "ABS(i)",
    "ABS(b)",
    "ABS(d)",
    "ABS(-d)",
    "SIGN(i)",
    "SIGN(d)",
    "FLOOR(i)",
    "FLOOR(d)",
    "CEIL(d)",
    "CEIL(b)",
    "ROUND(i)",
    "ROUND(d)",
    "ROUND(d, 1)",
    "ROUND(d, -1)",
    "TRUNC(d)",
    "TRUNC(i)",
    "TRUNC(d, 2)",
    "SQRT(d)",
    "SQRT(i)",
    "EXP(d)",
    "LN(d)",
    "POWER(d, 2)",
    "GREATEST(i, 3)",
    "GREATEST(b, CAST(i AS BIGINT))",
    "LEAST(b, CAST(0 AS BIGINT), b + i)",
    "GREATEST(d, e)",
    "LEAST(d, CAST(i AS DOUBLE))",
    "COALESCE(i, 7)",
    "COALESCE(d, e)",
    "COALESCE(d / e, 0e0)",
    "IFNULL(b, CAST(i AS BIGINT))",
    "NULLIF(i, 1)",
    "NULLIF(d, e)",
    "d / e",
    "d % e",
    "d * e - d",
    "0e0 / d",
    "UNIX_TIMESTAMP(ts)",
    "UNIX_DATE(da)",
    "PARSE_DATE(t, 'yyyy')",
    "STRINGTOTIMESTAMP(t, 'yyyy')",
    "TIMESTAMPADD(DAYS, 3, ts)",
    "TIMESTAMPADD(MILLISECONDS, i, ts)",
    "TIMESTAMPSUB(HOURS, i, ts)",
    "DATEADD(DAYS, 3, da)",
    "TIMESUB(MINUTES, 3, ti)",
    "FROM_UNIXTIME(b)",
    "FROM_DAYS(i)",
)
CONDITIONS = (
    *(f"t LIKE '{one}'" for one in ("a%", "%a", "%a%", "a", "%", "a%b", "_a", "a!_%", "", "%%a")),
    "t LIKE '!%a%' ESCAPE '!'",
    "t LIKE u",
    "t NOT LIKE '%b'",
    "LEN(t) > 1 AND UCASE(t) = 'A'",
    "IFNULL(t, 'a') = u",
    "COALESCE(o, true)",
    "NULLIF(o, false) IS NULL",
    "ABS(d) > 1 OR ROUND(e) = 0",
)

WORDS = st.one_of(
    st.sampled_from(
        (
            *(
                "a",
                "A",
                "ab a",
                " a\t",
                "ß",
                "İ",
                "ŉa",
                "é",
                "\U0001f600",
                "a\U0001f600b",
                "\ud7ff",
            ),
            *(
                "",
                "a\nb",
                "a\u2028",
                "\uffff",
                "x" * 70,
                "%41",
                "%",
                "2020",
                "a+b",
                "aa",
                "_a",
                "%a",
            ),
        )
    ),
    st.text("aAbB é\U00010000", max_size=6),
    st.text(max_size=4),
)
DOUBLES = st.one_of(
    st.sampled_from(
        (
            0.0,
            -0.0,
            0.5,
            -0.5,
            1.5,
            2.5,
            -2.5,
            math.inf,
            -math.inf,
            math.nan,
            2.0**52,
            0.49999999999999994,
        )
    ),
    st.sampled_from((1e300, -(2.0**63), 2.0**63, 4503599627370497.5, 1e-320, 0.49999999999999994)),
    st.floats(),
)
INTS = st.one_of(st.integers(-9, 9), st.sampled_from((2**31 - 1, -(2**31))))
LONGS = st.one_of(INTS, st.sampled_from((2**63 - 1, -(2**63))))
DAYS = st.integers(-(10**6), 10**6)
FIELDS: dict[str, tuple[str, st.SearchStrategy[Any]]] = {
    "I": ("int", INTS),
    "B": ("long", LONGS),
    "D": ("double", DOUBLES),
    "E": ("double", DOUBLES),
    "T": ("string", WORDS),
    "U": ("string", WORDS),
    "O": ("boolean", st.booleans()),
    "TS": ("long", st.one_of(st.integers(-(10**13), 10**13), LONGS)),
    "DA": ("int", DAYS),
    "TI": ("int", st.integers(0, 86_399_999)),
}
SCHEMA = {
    "type": "record",
    "name": "W",
    "fields": [{"name": name, "type": ["null", kind]} for name, (kind, _) in FIELDS.items()],
}
PARSED = fastavro.parse_schema(SCHEMA)
REGISTRY = MemoryRegistry({"s-value": json.dumps(SCHEMA)})
ROWS = st.lists(
    st.fixed_dictionaries(
        {name: st.one_of(values, values, values, st.none()) for name, (_, values) in FIELDS.items()}
    ),
    min_size=1,
    max_size=8,
)


def values_of(rows: list[dict[str, Any]]) -> list[list[tuple[str, TopicRecord]]]:
    batch = []
    for place, row in enumerate(rows):
        out = io.BytesIO()
        fastavro.schemaless_writer(out, PARSED, row)
        batch.append(("s", TopicRecord(b"k", prefix_of(1) + out.getvalue(), place)))
    return [batch]


def check(selected: str, rows: list[dict[str, Any]], where: str = "") -> int:
    (plan,) = plans_of(f"{SOURCE}CREATE STREAM q AS SELECT k, {selected} FROM s {where};", {"s": 1})
    batches = values_of(rows)
    want, _ = outcome(plan, copies(batches), 1, None, REGISTRY)
    got, by_columns = outcome(plan, copies(batches), 1, 1, REGISTRY)
    assert got == want
    return by_columns


@settings(max_examples=examples(18), deadline=None)
@given(
    text=st.sampled_from(TEXTS),
    number=st.sampled_from(NUMBERS),
    condition=st.one_of(st.just(""), st.sampled_from(CONDITIONS)),
    rows=ROWS,
)
def test_both_ways_call_functions_alike(
    text: str, number: str, condition: str, rows: list[dict[str, Any]]
) -> None:
    check(f"{text} AS x, {number} AS y", rows, condition and f"WHERE {condition}")


PLAIN = [
    {
        "I": n + 1,
        "B": n - 20,
        "D": n / 4 + 0.3,
        "E": 2.5 - n,
        "T": f"t{n % 7}",
        "U": "a" * (n % 3 + 1),
        "O": n % 2 == 0,
        "TS": n * 10**9,
        "DA": n,
        "TI": n,
    }
    for n in range(30)
]


BY_ROWS = {
    "SPLIT(t, 'a')[1]",
    "UNIX_DATE(da)",
    "t LIKE u",
}
"""Expressions of which a part has no form for columns."""


@pytest.mark.parametrize("one", [*TEXTS, *NUMBERS, *CONDITIONS])
def test_only_these_are_evaluated_record_by_record(
    one: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []
    by_rows = Compiling._by_rows

    def noted(compiler: Compiling, expression: Expression) -> Kernel:
        asked.append(expression)
        return by_rows(compiler, expression)

    monkeypatch.setattr(Compiling, "_by_rows", noted)
    part = f"WHERE {one}" if one in CONDITIONS else ""
    selected = "i" if part else f"{one} AS x"
    (plan,) = plans_of(f"{SOURCE}CREATE STREAM q AS SELECT k, {selected} FROM s {part};", {"s": 1})
    assert HostedPlan.draft(plan).column_stages == (0,)
    assert bool(asked) == (one in BY_ROWS)


@pytest.mark.parametrize(
    "one",
    [one for one in (*TEXTS, *NUMBERS) if not one.startswith(("URL_DECODE", "PARSE", "STRING"))],
)
def test_calls_on_plain_values_go_as_columns(one: str) -> None:
    assert check(f"{one} AS x", PLAIN) == 30


@pytest.mark.parametrize("condition", CONDITIONS)
def test_conditions_on_plain_values_go_as_columns(condition: str) -> None:
    assert check("i", PLAIN, f"WHERE {condition}") == 30


def test_the_bits_of_nan_are_the_row_engines() -> None:
    """x86's own NaN of 0.0/0 has another sign than Java's and Python's."""
    rows = [dict(PLAIN[0], D=value, E=0.0) for value in (0.0, -0.0, math.inf, -math.inf, math.nan)]
    negative = struct.unpack("<d", struct.pack("<Q", 0xFFF8000000000001))[0]
    rows.append(dict(PLAIN[0], D=negative, E=1.0))
    check("d / e AS x, d - d AS y, SQRT(d - 1) AS z, SQRT(-d) AS w, ABS(d) AS v, -d AS u", rows)
