"""Batches that run as columns give what the row engine gives: the same results in the same order,
the same state, and the same notes for the processing log."""

from __future__ import annotations

import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st

from barnabas.sql.errors import AnalysisError
from barnabas.sql.runtime.topics import TopicRecord
from support.effort import examples
from support.sql_columns import (
    AGGREGATES,
    CERTAIN,
    CONDITIONS,
    DOUBLES,
    HAVINGS,
    JOINED,
    SOURCES,
    TEXTS,
    WHOLES,
    WINDOWS,
    batches,
    both_sides,
    copies,
    outcome,
    queries,
)
from support.sql_queries import plans_of


@settings(max_examples=examples(21), deadline=None)
@given(query=queries(), records=batches(), partitions=st.integers(1, 2))
def test_both_ways_are_equal(
    query: str, records: list[list[tuple[str, TopicRecord]]], partitions: int
) -> None:
    (plan,) = plans_of(SOURCES + query, {"s": partitions})
    want, none = outcome(plan, copies(records), partitions, None)
    got, _ = outcome(plan, copies(records), partitions, 1)
    assert none == 0
    assert got == want


DELIMITED = """
CREATE STREAM s (k STRING KEY, i INT, b BIGINT, d DOUBLE, t STRING, o BOOLEAN, ts TIMESTAMP)
  WITH (kafka_topic='s', value_format='DELIMITED', key_format='{key}' {more});
"""
CELLS: tuple[st.SearchStrategy[str], ...] = (
    WHOLES.map(str),
    WHOLES.map(str),
    st.one_of(DOUBLES.map(str), st.sampled_from(("-0", "-0.0", "1e5", "NaN", "0x1p3", "1.5f"))),
    TEXTS,
    st.sampled_from(("true", "false", "TRUE", "yes", " true")),
    st.integers(-(10**6), 2 * 10**12).map(str),
)
ODD_CELLS = st.sampled_from(
    (" 1", "+1", "1 ", "x", "\u0661", "1.0", '"1"', '"a""b"', '"', "\n", "1\r")
)


@st.composite
def lines(draw: st.DrawFn, *, odd: bool, delimiter: str) -> bytes | None:
    """The bytes of a value."""
    cells = [draw(cell) if draw(st.integers(0, 9)) else "" for cell in CELLS]
    if odd and draw(st.integers(0, 3)) == 0:
        cells[draw(st.integers(0, 5))] = draw(ODD_CELLS)
    kind = draw(st.integers(0, 15)) if odd else 15
    if kind == 0:
        return draw(
            st.sampled_from((None, b"", b"\xff", b",,,,,", b'"\n",,,,,', b"\n\n1,1,1,a,true,1"))
        )
    if kind == 1:
        cells.append("x")
    return delimiter.join(cells).encode("utf-8", "surrogatepass")


@settings(max_examples=examples(21), deadline=None)
@given(data=st.data(), query=queries(), delimiter=st.sampled_from((",", "TAB", "|", "é")))
def test_both_ways_read_and_write_delimited_values_alike(
    data: st.DataObject, query: str, delimiter: str
) -> None:
    more = "" if delimiter == "," else f", value_delimiter='{delimiter}'"
    key = data.draw(st.sampled_from(("KAFKA", "DELIMITED")))
    if "ARRAY[" in query or "COLLECT_LIST" in query or data.draw(st.booleans()):
        query = query.replace(" AS SELECT", " WITH (value_format='JSON') AS SELECT", 1)
    character = "\t" if delimiter == "TAB" else delimiter
    odd, now_ms = data.draw(st.booleans()), 0
    records = []
    for _ in range(data.draw(st.integers(1, 10))):
        now_ms = max(0, now_ms + data.draw(st.integers(-2_000, 9_000)))
        name = data.draw(st.sampled_from((b"a", b"b", b" c", b'"a"') if odd else (b"a", b"b")))
        value = data.draw(lines(odd=odd, delimiter=character))
        records.append(("s", TopicRecord(name, value, now_ms, ())))
    try:
        (plan,) = plans_of(DELIMITED.format(key=key, more=more) + query, {"s": 1})
    except AnalysisError:  # states of some aggregates cannot be DELIMITED
        reject()
    want, _ = outcome(plan, copies([records]), 1, None)
    got, _ = outcome(plan, copies([records]), 1, 1)
    assert got == want


def test_a_record_without_a_key_of_many_columns_has_none() -> None:
    source = (
        "CREATE STREAM s (a STRING KEY, b INT KEY, i INT) WITH (kafka_topic='s', format='JSON');"
    )
    (plan,) = plans_of(source + "CREATE STREAM q AS SELECT * FROM s;", {"s": 1})
    records = [
        [
            ("s", TopicRecord(b'{"A":"x","B":1}', b'{"I":1}', 1)),
            ("s", TopicRecord(None, b'{"I":2}', 2)),
            ("s", TopicRecord(b'{"A":null}', b'{"I":3}', 3)),
        ]
    ]
    want, _ = outcome(plan, copies(records), 1, None)
    got, by_columns = outcome(plan, copies(records), 1, 1)
    assert got == want
    assert by_columns == 2


PLAIN = [
    [
        (
            "s",
            TopicRecord(
                b"k%d" % (number % 5),
                b'{"I":%d,"B":%d,"D":%d.5,"T":"t%d","O":true,"TS":%d}'
                % (number + 1, number, number, number % 3, number),
                1_000 * number,
            ),
        )
        for number in range(start, start + 40)
    ]
    for start in (0, 40)
]


@pytest.mark.parametrize(
    "query",
    [
        *(f"CREATE STREAM q AS SELECT * FROM s WHERE {condition};" for condition in CONDITIONS),
        *(f"CREATE STREAM q AS SELECT k, {selected} FROM s;" for selected in CERTAIN),
        *(f"CREATE TABLE q AS SELECT k, {made} FROM s GROUP BY k;" for made in AGGREGATES),
        *(f"CREATE TABLE q AS SELECT k, COUNT(*) FROM s {w} GROUP BY k;" for w in WINDOWS),
        *(
            f"CREATE TABLE q AS SELECT k, COUNT(*) FROM s {w} GROUP BY k {having} EMIT FINAL;"
            for w in WINDOWS[1:]
            for having in ("", "HAVING COUNT(*) > 1")
        ),
        *(
            f"CREATE TABLE q AS SELECT k, {made} FROM s {w} GROUP BY k HAVING {having};"
            for made, having in HAVINGS[:7]
            for w in WINDOWS[:2]
        ),
    ],
)
def test_plain_records_go_as_columns(query: str) -> None:
    (plan,) = plans_of(SOURCES + query, {"s": 2})
    want, _ = outcome(plan, copies(PLAIN), 2, None)
    got, by_columns = outcome(plan, copies(PLAIN), 2, 1)
    assert got == want
    assert by_columns == 80


@pytest.mark.parametrize(
    "query",
    [
        *(f"CREATE STREAM q AS SELECT k, {selected} FROM s;" for selected in CERTAIN),
        "CREATE TABLE q AS SELECT k, SUM(i) AS x FROM s GROUP BY k;",
    ],
)
def test_plain_delimited_records_go_as_columns(query: str) -> None:
    (plan,) = plans_of(DELIMITED.format(key="KAFKA", more="") + query, {"s": 2})
    batch = [
        ("s", TopicRecord(b"k%d" % (n % 5), b"%d,%d,%d.5,t%d,true,%d" % (n + 1, n, n, n, n), n, ()))
        for n in range(80)
    ]
    want, _ = outcome(plan, copies([batch]), 2, None)
    got, by_columns = outcome(plan, copies([batch]), 2, 1)
    assert got == want
    assert by_columns == 80


DECIMALS = """
CREATE STREAM s (k STRING KEY, i INT, a DECIMAL(8, 2), z DECIMAL(38, 12))
  WITH (kafka_topic='s', value_format='{format}');
"""
DECIMAL_QUERIES = (
    "CREATE STREAM q AS SELECT * FROM s;",
    "CREATE STREAM q AS SELECT k, a + 1 AS x, a * i AS y, -z AS w FROM s WHERE a > 1.5;",
    "CREATE STREAM q AS SELECT k, CAST(a AS STRING) AS y, CAST(z AS DOUBLE) AS w FROM s;",
    "CREATE STREAM q AS SELECT k, a / i AS x FROM s;",
    "CREATE STREAM q AS SELECT k, CASE WHEN a = z THEN a END AS x, ROUND(a, 1) AS y FROM s;",
    "CREATE STREAM q AS SELECT k, CAST(i AS DECIMAL(4, 1)) AS x, a FROM s WHERE a IS NOT NULL;",
    "CREATE TABLE q AS SELECT k, SUM(a) AS x, MAX(z) AS y, COUNT(a) AS w FROM s GROUP BY k;",
    "CREATE TABLE q AS SELECT k, MIN(a) AS x FROM s GROUP BY k HAVING MIN(a) < 3.5;",
)
NUMBERS = st.one_of(
    st.sampled_from(("0", "-0", "-0.00", "1e2", "1E-1", "1.5000", "-12.25", "0e5", "123456789")),
    st.sampled_from(
        ("1.555", "999999.99", "-999999.995", "1e-12", "0.000000000001", "null", '"7"')
    ),
    st.sampled_from(('"1.5"', '" 1"', '"x"', "true", '"1e1"', "1e30", "NaN", "01", "12345678901")),
    st.sampled_from(("10000000", "-1000000", "999999.99", "1e37", "9" * 27, "9" * 38)),
    st.decimals(-100, 100, places=2).map(str),
)


@settings(max_examples=examples(15), deadline=None)
@given(
    query=st.sampled_from(DECIMAL_QUERIES),
    format_=st.sampled_from(("JSON", "DELIMITED")),
    rows=st.lists(st.tuples(st.integers(-3, 9), NUMBERS, NUMBERS, st.booleans()), max_size=10),
)
def test_both_ways_take_decimals_alike(
    query: str, format_: str, rows: list[tuple[int, str, str, bool]]
) -> None:
    (plan,) = plans_of(DECIMALS.format(format=format_) + query, {"s": 1})
    batch = []
    for at, (whole, one, other, lower) in enumerate(rows):
        body = f"{whole},{one},{other}"
        if format_ == "JSON":
            space = " " if lower else ""
            body = f'{{"I":{whole},"{"a" if lower else "A"}":{space}{one},"Z":{space}{other}}}'
        batch.append(("s", TopicRecord(b"k%d" % (at % 2), body.encode(), at, ())))
    want, _ = outcome(plan, copies([batch]), 1, None)
    got, _ = outcome(plan, copies([batch]), 1, 1)
    assert got == want


@pytest.mark.parametrize(
    "body",
    [
        '{"A":10000000}',
        '{"A":-99999999}',
        '{"A":1e6}',
        '{"A":1e37}',
        '{"Z":99999999999999999999999999999999999999}',
        '{"Z":-100000000000000000000000000}',
        '{"Z":1e38}',
        '{"\\u0041":"1e5"}',
    ],
)
def test_decimals_with_too_many_digits_are_noted(body: str) -> None:
    """Arrow takes them as they are, or other ones if they have more digits than it holds."""
    (plan,) = plans_of(DECIMALS.format(format="JSON") + DECIMAL_QUERIES[0], {"s": 1})
    batch = [("s", TopicRecord(b"k", text.encode(), 0, ())) for text in (body, '{"A":1}')]
    want, _ = outcome(plan, copies([batch]), 1, None)
    got, _ = outcome(plan, copies([batch]), 1, 1)
    assert got == want


@pytest.mark.parametrize("query", [one for one in DECIMAL_QUERIES if "a / i" not in one])
def test_plain_decimals_go_as_columns(query: str) -> None:
    (plan,) = plans_of(DECIMALS.format(format="JSON") + query, {"s": 1})
    batch = [
        ("s", TopicRecord(b"a", b'{"I":%d,"A":%d.5,"Z":0.%d}' % (n, n, n), n, ()))
        for n in range(1, 61)
    ]
    want, _ = outcome(plan, copies([batch]), 1, None)
    got, by_columns = outcome(plan, copies([batch]), 1, 1)
    assert got == want
    assert by_columns == 60


@settings(max_examples=examples(18), deadline=None)
@given(
    kind=st.sampled_from(("JOIN", "LEFT JOIN")),
    where=st.sampled_from(("", "WHERE i > 1", "WHERE p.age > 0", "WHERE 10 / i > 2")),
    selected=st.sampled_from(("i, t, p.name", "p.age + 1 AS x, UCASE(p.name) AS y", "p.age, i")),
    records=both_sides(),
    partitions=st.integers(1, 2),
)
def test_both_ways_join_a_table_alike(
    kind: str,
    where: str,
    selected: str,
    records: list[list[tuple[str, TopicRecord]]],
    partitions: int,
) -> None:
    query = f"CREATE STREAM q AS SELECT s.k, {selected} FROM s {kind} p ON s.k = p.k {where};"
    (plan,) = plans_of(JOINED + query, {"s": partitions, "p": partitions})
    want, _ = outcome(plan, copies(records), partitions, None)
    got, _ = outcome(plan, copies(records), partitions, 1)
    assert got == want


@pytest.mark.parametrize("change", [None, b'{"NAME":"n","AGE":1}'])
@pytest.mark.parametrize("value", [b"", b"x", None])
@pytest.mark.parametrize(
    "query",
    [
        "CREATE STREAM q AS SELECT k, i FROM s WHERE i > 1;",
        "CREATE TABLE q AS SELECT k, COUNT(*) AS n FROM s GROUP BY k;",
        "CREATE TABLE q AS SELECT k, SUM(i) n FROM s WINDOW TUMBLING (SIZE 1 SECONDS) GROUP BY k;",
        "CREATE STREAM q AS SELECT s.k, i, p.name FROM s JOIN p ON s.k = p.k;",
        "CREATE STREAM q AS SELECT s.k, i, p.name FROM s LEFT JOIN p ON s.k = p.k;",
    ],
)
def test_a_batch_without_a_record_that_can_be_read(
    query: str, value: bytes | None, change: bytes | None
) -> None:
    (plan,) = plans_of(JOINED + query, {"s": 2, "p": 2})
    table = [] if change is None else [("p", TopicRecord(b"a", change, 0, ()))]
    unreadable = [("s", TopicRecord(b"a", value, number, ())) for number in range(2)]
    after = [("s", TopicRecord(b"a", b'{"I":2,"T":"t"}', 9, ()))]
    batches = [[*table, *unreadable], after]
    want, _ = outcome(plan, copies(batches), 2, None)
    got, _ = outcome(plan, copies(batches), 2, 1)
    assert got == want


@pytest.mark.parametrize(
    "ignored",
    [
        *("NaN", "Infinity", "-Infinity", "1e999999999999999999999", "1E-9999999999999999999"),
        *("9" * 5_000, "[" * 2_000 + "]" * 2_000, '{"a":' * 1_200 + "1" + "}" * 1_200),
        *(
            "1.",
            "01",
            "-",
            "+1",
            "'a'",
            "[1,]",
            '"\t"',
            '"\\ud800"',
            '"\\x"',
            "nul",
            "1e5",
            "[NaN]",
        ),
    ],
)
def test_members_that_no_column_has_are_judged_alike(ignored: str) -> None:
    """A record is JSON or is not, whichever members the query needs."""
    (plan,) = plans_of(JOINED + "CREATE STREAM q AS SELECT k, i FROM s;", {"s": 1, "p": 1})
    bodies_of = [f'{{"I":1,"OTHER":{ignored}}}', '{"I":2}', f'{{"OTHER":{ignored},"I":3}}']
    batch = [("s", TopicRecord(b"a", body.encode(), 0, ())) for body in bodies_of]
    want, _ = outcome(plan, copies([batch]), 1, None)
    got, _ = outcome(plan, copies([batch]), 1, 1)
    assert got == want
