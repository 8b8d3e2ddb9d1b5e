"""Topics with structs, arrays, maps and bytes run as columns, as the row engine has them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.sql.runtime.topics import TopicRecord
from support.effort import examples
from support.sql_columns import ODD, TEXTS, WHOLES, Batches, copies, outcome
from support.sql_queries import plans_of

STRUCTS = """
CREATE STREAM s (k STRING KEY, id INT, a STRUCT<id INT, t STRING, u STRUCT<id BIGINT, o BOOLEAN>>,
    b STRUCT<x DOUBLE, ti TIME, ts TIMESTAMP>{more})
  WITH (kafka_topic='s', value_format='JSON');
"""
NESTED = (
    ", l ARRAY<STRUCT<id INT>>, m MAP<STRING, INT>, y BYTES, d STRUCT<n DECIMAL(6, 2), t STRING>"
)
QUERIES = (
    "CREATE STREAM q AS SELECT k, id FROM s WHERE id > 1;",
    "CREATE STREAM q AS SELECT k, a->id AS x, a->u->id AS y, b->x AS z FROM s;",
    "CREATE STREAM q AS SELECT k, UCASE(a->t) AS x, COALESCE(a->id, id) AS y FROM s;",
    "CREATE STREAM q AS SELECT * FROM s;",
    "CREATE STREAM q AS SELECT k, a, a->u AS y, b->ti AS z FROM s WHERE a->id IS NOT NULL;",
    "CREATE STREAM q AS SELECT k, id FROM s WHERE a->u->o;",
    "CREATE STREAM q AS SELECT k, a IS NULL AS x, a->u IS NULL AS y, b->x > 1 AS z FROM s;",
    "CREATE STREAM q AS SELECT k, STRUCT(id := a->id, t := 'c') AS x FROM s WHERE a->t <> 'b';",
    "CREATE STREAM q AS SELECT k, CASE WHEN a->id > 2 THEN a->t ELSE 'no' END AS x FROM s;",
    "CREATE STREAM q AS SELECT id, a, b FROM s PARTITION BY id;",
    "CREATE STREAM q AS SELECT * FROM s PARTITION BY a->t;",
    "CREATE TABLE q AS SELECT k, COUNT(*) AS x, SUM(a->u->id) AS y FROM s GROUP BY k;",
    "CREATE TABLE q AS SELECT k, COLLECT_LIST(a) AS x, COUNT(b) AS y FROM s GROUP BY k;",
    "CREATE TABLE q AS SELECT k, LATEST_BY_OFFSET(a) AS x FROM s GROUP BY k HAVING COUNT(a) > 1;",
    "CREATE TABLE q AS SELECT id AS i, MAX(a->id) AS n FROM s GROUP BY id;",
)
DOUBTING = (
    "CREATE STREAM q AS SELECT k, a->id + id AS y, b->ts AS z FROM s;",
    "CREATE TABLE q AS SELECT a->id AS i, COUNT(*) AS n FROM s GROUP BY a->id;",
)
"""Queries that leave records with NULLs to the row engine."""
NESTED_QUERIES = (
    "CREATE STREAM q AS SELECT k, id, a->id AS x FROM s;",
    "CREATE STREAM q AS SELECT k, l[1]->id AS x, m['p'] AS y, d->t AS z FROM s;",
    "CREATE STREAM q AS SELECT k, d->n + 1 AS x, ARRAY_LENGTH(l) AS y FROM s WHERE m['q'] > 1;",
    "CREATE STREAM q AS SELECT * FROM s;",
    "CREATE STREAM q AS SELECT id, l, m, d FROM s PARTITION BY id;",
    "CREATE TABLE q AS SELECT k, COUNT(l) AS x, COLLECT_LIST(m) AS y FROM s GROUP BY k;",
)
Members = list[tuple[str, Any]]


class _Object:
    """Members in an order of their own, which may have the same name."""

    def __init__(self, members: Members) -> None:
        self._members = members

    def text(self, *, ascii_only: bool) -> str:
        made = [
            f"{json.dumps(name, ensure_ascii=ascii_only)}:{_text(value, ascii_only=ascii_only)}"
            for name, value in self._members
        ]
        return "{" + ",".join(made) + "}"


def _text(value: Any, *, ascii_only: bool) -> str:
    if isinstance(value, _Object):
        return value.text(ascii_only=ascii_only)
    if isinstance(value, list):
        return "[" + ",".join(_text(one, ascii_only=ascii_only) for one in value) + "]"
    return json.dumps(value, ensure_ascii=ascii_only)


@st.composite
def objects(
    draw: st.DrawFn, values: dict[str, st.SearchStrategy[Any]], *, odd: bool, lower: bool
) -> _Object:
    """An object of some of these members, under their names in one or another spelling."""
    members: Members = []
    for name, strategy in values.items():
        choice = draw(st.integers(0, 14))
        if choice == 0:
            continue
        value = None if choice == 1 else draw(strategy)
        if odd and choice == 2:
            value = draw(ODD)
        spelled = name.lower() if lower else name
        if odd and choice == 3:
            spelled = draw(st.sampled_from((name.title(), name.swapcase(), name.replace("I", "ı"))))
        members.append((spelled, value))
        if odd and choice == 4:
            members.append((draw(st.sampled_from((name, name.lower(), name.title()))), draw(ODD)))
    if odd and draw(st.integers(0, 9)) == 0:
        name = draw(st.sampled_from(("extra", "ID", "id", "T", '"id":null', "id\\")))
        members.append((name, draw(st.one_of(ODD, st.sampled_from(("id", "ID"))))))
        members = draw(st.permutations(members))
    return _Object(members)


@st.composite
def batches(draw: st.DrawFn, *, nested: bool) -> Batches:
    """Micro-batches of records."""
    odd, lower = draw(st.booleans()), draw(st.booleans())

    def struct(**values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
        return objects(values, odd=odd, lower=lower)

    whole = st.integers(-3, 6) if not odd else WHOLES
    texts = TEXTS if odd else st.sampled_from(("a", "b", "id", "ID"))
    inner = struct(ID=whole, O=st.booleans())
    columns: dict[str, st.SearchStrategy[Any]] = {
        "ID": whole,
        "A": struct(ID=whole, T=texts, U=inner),
        "B": struct(
            X=st.sampled_from((0.5, 1, 1e7, *((-0.0, 2**70) if odd else ()))),
            TI=st.integers(0, 86_400_000 + odd),
            TS=st.integers(-5, 2 * 10**12),
        ),
    }
    if nested:
        columns |= {
            "L": st.lists(st.one_of(st.none(), struct(ID=whole)), max_size=2),
            "M": st.dictionaries(st.sampled_from(("p", "q")), st.one_of(st.none(), whole)),
            "Y": st.sampled_from(("", "YQ==", "YWI=", *(("*",) if odd else ()))),
            "D": struct(N=st.sampled_from((1, 1.5, 2.25, *((1.555, "7") if odd else ()))), T=texts),
        }
    record = objects(columns, odd=odd, lower=lower)
    ascii_only = draw(st.booleans())
    made: Batches = []
    for _ in range(draw(st.integers(1, 2))):
        batch = []
        for number in range(draw(st.integers(1, 7))):
            body = draw(record).text(ascii_only=ascii_only).encode("utf-8", "surrogatepass")
            if odd and draw(st.integers(0, 15)) == 0:
                body = draw(st.sampled_from((b"null", b"{}", b" " + body, b"[]", body[:-1])))
            key = draw(st.sampled_from((b"a", b"b")))
            batch.append(("s", TopicRecord(key, body, number, ())))
        made.append(batch)
    return made


@settings(max_examples=examples(18), deadline=None)
@given(
    query=st.sampled_from((*QUERIES, *DOUBTING)),
    records=batches(nested=False),
    parts=st.integers(1, 2),
)
def test_both_ways_take_structs_alike(query: str, records: Batches, parts: int) -> None:
    (plan,) = plans_of(STRUCTS.format(more="") + query, {"s": parts})
    want, none = outcome(plan, copies(records), parts, None)
    got, _ = outcome(plan, copies(records), parts, 1)
    assert none == 0
    assert got == want


@settings(max_examples=examples(15), deadline=None)
@given(query=st.sampled_from(NESTED_QUERIES), records=batches(nested=True), parts=st.integers(1, 2))
def test_both_ways_take_arrays_and_maps_alike(query: str, records: Batches, parts: int) -> None:
    (plan,) = plans_of(STRUCTS.format(more=NESTED) + query, {"s": parts})
    want, _ = outcome(plan, copies(records), parts, None)
    got, _ = outcome(plan, copies(records), parts, 1)
    assert got == want


def _plain(number: int, *, lower: bool) -> bytes:
    """A record with nothing odd: some members are missing, and some are null."""
    inner = None if number % 5 == 1 else {"ID": number, "O": number % 2 == 0}
    a = {"ID": number % 3, "T": f"t{number % 4}", "U": inner}
    if number % 7 == 2:
        del a["T"]
    row: dict[str, Any] = {"ID": number, "A": None if number % 11 == 3 else a}
    row["B"] = {"X": number + 0.5, "TI": number, "TS": number}
    if number % 3 == 2:
        row["M"] = {"p": number, "id": 7}
    if number % 4 == 1:
        row |= {"L": [{"ID": 1}], "Y": "YQ==", "D": {"N": 1.25, "T": "x"}}
    made = json.dumps(row, separators=(", ", ": ") if lower else (",", ":"))
    return (made.replace("null", "~").lower().replace("~", "null") if lower else made).encode()


def _batch(*, lower: bool) -> Batches:
    return [[("s", TopicRecord(b"k%d" % (n % 5), _plain(n, lower=lower), n)) for n in range(60)]]


@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize("query", QUERIES)
def test_plain_structs_go_as_columns(query: str, lower: bool) -> None:
    """Also if a name is in several structs, and where fields are missing or null."""
    (plan,) = plans_of(STRUCTS.format(more="") + query, {"s": 1})
    want, _ = outcome(plan, _batch(lower=lower), 1, None)
    got, by_columns = outcome(plan, _batch(lower=lower), 1, 1)
    assert got == want
    assert by_columns == 60


@pytest.mark.parametrize("query", NESTED_QUERIES)
def test_plain_arrays_and_maps_go_as_columns(query: str) -> None:
    (plan,) = plans_of(STRUCTS.format(more=NESTED) + query, {"s": 1})
    want, _ = outcome(plan, _batch(lower=False), 1, None)
    got, by_columns = outcome(plan, _batch(lower=False), 1, 1)
    assert got == want
    assert by_columns == 60


@pytest.mark.parametrize(
    ("first", "second"),
    [
        pytest.param('{"ı":5}', '{"i":3}', id="a letter whose upper case is the name's"),
        pytest.param('{"i":5}', '{"I":3}', id="another spelling than before"),
        pytest.param('{"i":5}', '{"I":3,"i":4}', id="both"),
        pytest.param('{"A":{"id":1}}', '{"A":{"Id":2,"id":3}}', id="both, in a struct"),
        pytest.param('{"A":{"id":1},"I":1}', '{"A":{"ID":2},"I":"ID"}', id="as a text"),
        pytest.param('{"A":{"id":1}}', '{"A":{"Id":2},"x":{"id":null}}', id="a null elsewhere"),
        pytest.param('{"A":{"id":1}}', '{"A":{"\\u0069D":2}}', id="by an escape"),
        pytest.param('{"A":{"id":1}}', '{"A":[{"id":1}]}', id="an array for a struct"),
        pytest.param('{"A":{"id":1}}', '{"A":"{}"}', id="a text for a struct"),
        pytest.param('{"A":{"id":1}}', '{"A":{"id":1,"id":2}}', id="twice"),
        pytest.param('{"A":{"id":1}}', '{"A":{"id":1},"A":null}', id="a struct twice"),
    ],
)
def test_members_are_found_by_the_same_spelling(first: str, second: str) -> None:
    source = (
        "CREATE STREAM s (k STRING KEY, i INT, a STRUCT<id INT>)"
        " WITH (kafka_topic='s', value_format='JSON');"
    )
    (plan,) = plans_of(source + "CREATE STREAM q AS SELECT k, i, a->id AS x FROM s;", {"s": 1})
    bodies = (first, second, first)
    batches_: Batches = [[("s", TopicRecord(b"k", body.encode(), 0))] for body in bodies]
    for records in (batches_, [[one for batch in batches_ for one in batch]]):
        want, _ = outcome(plan, copies(records), 1, None)
        got, _ = outcome(plan, copies(records), 1, 1)
        assert got == want


@pytest.mark.parametrize(
    "second",
    [
        '{"Id":null,"A":{"id":3}}',
        '{"Id":4,"A":{"id":null}}',
        '{"Id":4,"A":{"Id":null,"id":3}}',
        '{"Id":4,"A":{"id":3,"Id":null}}',
        '{"Id":4,"id":null}',
        '{"A":{"id":3,"x":{"Id":null}}}',
    ],
)
def test_a_name_with_two_spellings_at_two_depths(second: str) -> None:
    source = (
        "CREATE STREAM s (k STRING KEY, id INT, a STRUCT<id INT>)"
        " WITH (kafka_topic='s', value_format='JSON');"
    )
    (plan,) = plans_of(source + "CREATE STREAM q AS SELECT k, id, a->id AS x FROM s;", {"s": 1})
    bodies = ('{"Id":1,"A":{"id":2}}', second)
    records: Batches = [[("s", TopicRecord(b"k", body.encode(), 0)) for body in bodies]]
    want, _ = outcome(plan, copies(records), 1, None)
    got, _ = outcome(plan, copies(records), 1, 1)
    assert got == want


@pytest.mark.parametrize(
    "odd", [b'{"ID":5,"A":{"U":{"ID":"x"}}}', b'{"ID":5,"M":{"p":"x"}}', b'{"ID":5,"L":{}}']
)
def test_an_unused_column_that_does_not_fit_is_noted(odd: bytes) -> None:
    (plan,) = plans_of(STRUCTS.format(more=NESTED) + QUERIES[0], {"s": 1})
    records: Batches = [[*_batch(lower=False)[0], ("s", TopicRecord(b"k", odd, 0))]]
    want, _ = outcome(plan, copies(records), 1, None)
    got, _ = outcome(plan, copies(records), 1, 1)
    assert got == want
    assert got[1] == 1
