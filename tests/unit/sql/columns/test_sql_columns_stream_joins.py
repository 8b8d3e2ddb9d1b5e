"""Stream-stream joins run as columns, as the row engine has them."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.sql.runtime.topics import TopicRecord
from barnabas.sql.spark.hosted import HostedPlan
from support.effort import examples
from support.sql_columns import Batches, copies, outcome
from support.sql_queries import plans_of

STREAMS = """
CREATE STREAM s (k STRING KEY, i INT, t STRING) WITH (kafka_topic='s', value_format='JSON');
CREATE STREAM r (k STRING KEY, j INT, u STRING) WITH (kafka_topic='r', value_format='JSON');
"""
KINDS = ("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL OUTER JOIN")
WITHINS = (
    "WITHIN 3 SECONDS",
    "WITHIN 3 SECONDS GRACE PERIOD 0 SECONDS",
    "WITHIN 2 SECONDS GRACE PERIOD 1 SECONDS",
    "WITHIN (0 SECONDS, 3 SECONDS) GRACE PERIOD 2 SECONDS",
    "WITHIN (4 SECONDS, 1 SECONDS) GRACE PERIOD 1 SECONDS",
    "WITHIN 1 MINUTE GRACE PERIOD 30 SECONDS",
)
ON = ("s.k = r.k", "s.k = r.k", "s.t = r.k", "s.k = r.u", "s.t = r.u", "UCASE(s.t) = r.k")
SELECTED = (
    "i AS w, t + '' AS x, j AS y, u + '' AS z",
    "i + j AS x, COALESCE(t, u) AS y, s.k + '' AS z",
    "100 / i AS x, s.ROWTIME AS y, r.ROWTIME AS z",
    "j AS x, CAST(u AS INT) AS y",
)
KEYS = (b"a", b"a", b"b", b"c")
STEPS_MS = (
    (0, 1_000, 3_000, 3_001),
    (-3_000, -1_000, 0, 0, 500, 2_000, 3_000),
    (-9_000, -6_000, -3_001, -2_000, 0, 0, 1_000, 3_000, 9_000),
    (-70_000, -2_000, 0, 1_000, 4_000, 130_000),
    (0, 100),
)


@st.composite
def queries(draw: st.DrawFn) -> str:
    """A join of two streams, by their keys or other columns."""
    kind, within = draw(st.sampled_from(KINDS)), draw(st.sampled_from(WITHINS))
    on, selected = draw(st.sampled_from(ON)), draw(st.sampled_from(SELECTED))
    where = draw(st.sampled_from(("", "", "WHERE i > 1", "WHERE 10 / j > 2", "WHERE j IS NULL")))
    key = "ROWKEY" if kind.startswith("FULL") else on.split(" = ")["UCASE" in on]
    return (
        f"CREATE STREAM q AS SELECT {key} AS key, {selected} FROM s {kind} r {within} ON {on}"
        f" {where};"
    )


@st.composite
def batches(draw: st.DrawFn) -> Batches:
    """Records of both streams that are often at the edge of a window, equal, or late."""
    odd = draw(st.integers(0, 3)) == 0
    now_ms = draw(st.sampled_from((0, 5_000, 1_600_000_000_000)))
    steps = draw(st.sampled_from(STEPS_MS))
    made: Batches = []
    for _ in range(draw(st.integers(1, 4))):
        batch: list[tuple[str, TopicRecord]] = []
        for _ in range(draw(st.integers(1, 14))):
            now_ms = max(0, now_ms + draw(st.sampled_from(steps)))
            topic = draw(st.sampled_from(("s", "r")))
            key = draw(st.sampled_from((*KEYS, None) if draw(st.integers(0, 3)) == 0 else KEYS))
            headers = (("h", b"%d" % len(batch)),) if draw(st.integers(0, 9)) == 0 else ()
            number = draw(st.one_of(st.none(), st.integers(-1, 3)))
            text = draw(st.sampled_from(("a", "b", "A", "", "7", None)))
            names = ("I", "T") if topic == "s" else ("J", "U")
            shown = "null" if text is None else f'"{text}"'
            value: bytes | None = (
                f'{{"{names[0]}":{"null" if number is None else number},"{names[1]}":{shown}}}'
            ).encode()
            if odd and draw(st.integers(0, 9)) == 0:
                value = draw(st.sampled_from((None, b"x", b"", b'{"T":"\\ud800"}')))
            batch.append((topic, TopicRecord(key, value, now_ms, headers)))
        made.append(batch)
    return made


@settings(max_examples=examples(18), deadline=None)
@given(query=queries(), records=batches(), partitions=st.integers(1, 2))
def test_both_ways_join_streams_alike(query: str, records: Batches, partitions: int) -> None:
    (plan,) = plans_of(STREAMS + query, {"s": partitions, "r": partitions})
    want, none = outcome(plan, copies(records), partitions, None)
    for least in (1, 6):  # from six records on some batches go as columns, others as records
        got, _ = outcome(plan, copies(records), partitions, least)
        assert got == want
    assert none == 0


def _record(topic: str, key: bytes, time_ms: int, number: int = 1) -> tuple[str, TopicRecord]:
    names = b"IT" if topic == "s" else b"JU"
    body = b'{"%c":%d,"%c":"k%d"}' % (names[0], number, names[1], number % 3)
    return topic, TopicRecord(key, body, time_ms)


def _plain(first: int, count: int) -> list[tuple[str, TopicRecord]]:
    """Records of both streams in turn; one key in four has none of the right one."""
    return [
        _record("rs"[n % 4 < 2 or n % 8 == 2], b"k%d" % (n // 2 % 4), 400 * n, n + 1)
        for n in range(first, first + count)
    ]


PLAIN: Batches = [_plain(0, 40), _plain(40, 5), _plain(45, 55), _plain(100, 3), _plain(103, 40)]
"""Batches of which the small ones go as records, if those of ten and more go as columns."""


@pytest.mark.parametrize("partitions", [1, 2])
@pytest.mark.parametrize(
    ("kind", "within", "on"),
    [
        *((kind, within, ON[0]) for kind in KINDS for within in WITHINS[:4]),
        *((kind, WITHINS[2], on) for kind in KINDS[:2] for on in ON[2:4]),
    ],
)
def test_plain_records_are_joined_as_columns(
    kind: str, within: str, on: str, partitions: int
) -> None:
    key = "ROWKEY" if kind.startswith("FULL") else on.split(" = ")[0]
    query = f"CREATE STREAM q AS SELECT {key}, i, j, u + t AS x FROM s {kind} r {within} ON {on};"
    (plan,) = plans_of(STREAMS + query, {"s": partitions, "r": partitions})
    want, _ = outcome(plan, copies(PLAIN), partitions, None)
    got, by_columns = outcome(plan, copies(PLAIN), partitions, 1)
    assert len(want[0]) > 15
    assert got == want
    assert by_columns == sum(map(len, PLAIN))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("within", WITHINS[:3])
def test_a_query_changes_between_records_and_columns(kind: str, within: str) -> None:
    """Each way goes on with the state that the other has left."""
    key = "ROWKEY" if kind.startswith("FULL") else "s.k"
    query = f"CREATE STREAM q AS SELECT {key}, i, j FROM s {kind} r {within} ON s.k = r.k;"
    (plan,) = plans_of(STREAMS + query, {"s": 1, "r": 1})
    want, _ = outcome(plan, copies(PLAIN), 1, None)
    got, by_columns = outcome(plan, copies(PLAIN), 1, 10)
    assert got == want
    assert by_columns == 135


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "times",
    [
        pytest.param("s0 r2 s2 r4 s4.001 r9", id="at the edges"),
        pytest.param("s5 s5 r5 r5 s5 r3 r7", id="of one time"),
        pytest.param("s0 r9 s3 r4 s9 r6 s12 r30", id="late"),
        pytest.param("s0 s1 r9 s9 r20 s2 r40", id="that wait and are emitted"),
        pytest.param("s0 s5 r3 r1 s6 r30", id="that wait for a late one"),
        pytest.param("r0 s50 r49 s51 s120 r119 r200", id="of many segments"),
        pytest.param("s0 n1 r9 n9 s9 r10 n40", id="without a key among them"),
        pytest.param("s10 s1 r1 r10 s11 r2", id="past retention"),
    ],
)
def test_joins_of_one_batch(kind: str, times: str) -> None:
    """Also with a batch for each record, and with two batches."""
    key = "ROWKEY" if kind.startswith("FULL") else "s.k"
    within = "WITHIN 2 SECONDS GRACE PERIOD 1 SECONDS"
    query = f"CREATE STREAM q AS SELECT {key}, i, j FROM s {kind} r {within} ON s.k = r.k;"
    (plan,) = plans_of(STREAMS + query, {"s": 1, "r": 1})
    batch = []
    for number, entry in enumerate(times.split()):
        time_ms = int(float(entry[1:]) * 1_000)
        topic, record = _record("r" if entry[0] == "r" else "s", b"a", time_ms, number)
        record.key = None if entry[0] == "n" else record.key
        batch.append((topic, record))
    for records in ([batch], [batch[:3], batch[3:]], [[one] for one in batch]):
        want, _ = outcome(plan, copies(records), 1, None)
        got, by_columns = outcome(plan, copies(records), 1, 1)
        assert got == want
        assert by_columns == len(batch)


def test_records_of_one_time_meet_in_the_order_in_which_they_came() -> None:
    """Those of a later batch may be in a bundle that ends before."""
    query = "CREATE STREAM q AS SELECT s.k, i, j FROM s JOIN r WITHIN 9 SECONDS ON s.k = r.k;"
    (plan,) = plans_of(STREAMS + query, {"s": 1, "r": 1})
    records = [
        [_record("s", b"a", 1_000 * time_s, number) for time_s, number in batch]
        for batch in (((5, 1), (7, 2)), ((2, 3), (5, 4)))
    ]
    records.append([_record("r", b"a", 5_000)])
    want, _ = outcome(plan, copies(records), 1, None)
    got, by_columns = outcome(plan, copies(records), 1, 1)
    assert [value for _, value, *_ in want[0]] == [b'{"I":%d,"J":1}' % n for n in (3, 1, 4, 2)]
    assert got == want
    assert by_columns == 5


def test_joined_rows_in_doubt_go_through_the_row_engine() -> None:
    query = (
        "CREATE STREAM q AS SELECT s.k, 100 / i AS x, j FROM s JOIN r WITHIN 9 SECONDS ON s.k = r.k"
        " WHERE 100 / j > 2;"
    )
    (plan,) = plans_of(STREAMS + query, {"s": 1, "r": 1})
    numbers = (1, 0, 2, 3, 0, 4)
    batch = [
        _record(topic, b"k%d" % number, 100 * at, number)
        for at, number in enumerate(numbers)
        for topic in ("s", "r")
    ]
    want, _ = outcome(plan, copies([batch]), 1, None)
    got, by_columns = outcome(plan, copies([batch]), 1, 1)
    assert got == want
    assert want[1] > 1  # divisions by zero
    assert by_columns == 12 - 3  # the records of k0 that met another


@pytest.mark.parametrize(
    ("query", "stages"),
    [
        ("SELECT s.k, i, j FROM s JOIN r WITHIN 1 HOUR ON s.k = r.k", (0,)),
        ("SELECT s.k, i, j FROM s LEFT JOIN r WITHIN 1 HOUR ON s.k = r.k", (0,)),
        ("SELECT s.t, i, j FROM s JOIN r WITHIN 1 HOUR ON s.t = r.k", (0, 1)),
        ("SELECT s.t, i, j FROM s JOIN r WITHIN 1 HOUR ON s.t = r.u", (0, 1, 2)),
        ("SELECT s.k, i, j FROM s JOIN r WITHIN 1 HOUR ON s.k = r.k PARTITION BY j", (0,)),
    ],
)
def test_stages_with_stream_joins_are_declared(query: str, stages: tuple[int, ...]) -> None:
    (plan,) = plans_of(f"{STREAMS} CREATE STREAM q AS {query};", {"s": 2, "r": 2})
    draft = HostedPlan.draft(plan)
    hosted = draft.spread(replace(draft.hosting, partitions=2, tasks=2))
    assert hosted.column_stages == stages
