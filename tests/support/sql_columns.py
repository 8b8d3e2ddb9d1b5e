"""Queries that run as columns, values for them, and what comes of both ways to run them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import strategies as st

from barnabas.schemas.memory_registry import MemoryRegistry
from barnabas.sql.columns import reading
from barnabas.sql.columns.vectors import Read, Reader
from barnabas.sql.formats.format import RecordPart
from barnabas.sql.plan.steps import QueryPlan
from barnabas.sql.runtime.bundles import entries_of
from barnabas.sql.runtime.rows_encoding import unpack
from barnabas.sql.runtime.topics import TopicRecord
from barnabas.sql.spark.paged_store import PagedStore
from barnabas.sql.spark.state import ChunkedPages
from support.sql_hosted import DictionaryPages, SmallHost

CONDITIONS = (
    "i % 2 = 0",
    "i > 3 AND b < 100",
    "NOT (o) OR d >= 0.5",
    "i IS NOT NULL AND 100 / i > 2",
    "t = 'a' OR t <> 'b'",
    "t > 'a'",
    "t IN ('a', 'é', 'x')",
    "i IN (1, 2, 2147483647)",
    "b IN (1, 2)",
    "b BETWEEN -5 AND 5",
    "d BETWEEN i AND b",
    "d <> 0.0",
    "d = i",
    "b IS DISTINCT FROM i",
    "d IS NOT DISTINCT FROM b",
    "t LIKE 'a%'",
    "ts > '2020-01-01T00:00:00'",
    "LEN(t) > 2",
    "CASE WHEN i > 0 THEN o WHEN b > 0 THEN d > 1 ELSE t IS NULL END",
    "o",
    "o = true",
)
SELECTIONS = (
    "i + 1 AS x, b * i AS y, d / i AS z",
    "i - 2147483647 AS x, b + 9223372036854775807 AS y, -i AS z",
    "b / i AS x, b % i AS y, i % 7 AS z",
    "d % 0.3 AS x, d / 0.0 AS y, -d AS z",
    "t + '!' AS x, UCASE(t) AS y, SUBSTRING(t, 1, 2) AS z",
    "CAST(i AS BIGINT) AS x, CAST(b AS INT) AS y, CAST(i AS STRING) AS z",
    "CAST(d AS BIGINT) AS x, CAST(t AS INT) AS y, CAST(o AS STRING) AS z",
    "CAST(d AS STRING) AS x, CAST(ts AS STRING) AS y, CAST(t AS DOUBLE) AS z",
    "CASE i WHEN 1 THEN 'one' WHEN 2 THEN t END AS x, COALESCE(t, 'none') AS y, 1 AS z",
    "ROWTIME AS x, ts AS y, ROWOFFSET AS z",
    "d AS x, t AS y, o AS z",
    "b AS x, IFNULL(i, 5) AS y, ABS(i) AS z",
    "ARRAY[i, 1] AS x, STRUCT(a := t) AS y, MAP('a' := d) AS z",
)
AGGREGATES = (
    "COUNT(*) AS x",
    "COUNT(i) AS x, SUM(i) AS y",
    "SUM(b) AS x, SUM(d) AS y",
    "MIN(i) AS x, MAX(b) AS y, MIN(ts) AS z",
    "AVG(i) AS x, AVG(d) AS y",
    "MIN(d) AS x, MAX(t) AS y",
    "LATEST_BY_OFFSET(t) AS x, EARLIEST_BY_OFFSET(i) AS y",
    "COLLECT_LIST(i) AS x, COUNT_DISTINCT(t) AS y",
    "SUM(i + 1) AS x, SUM(100 / i) AS y",
    "TOPK(i, 2) AS x, STDDEV_SAMP(d) AS y",
    "COLLECT_SET(t) AS x, HISTOGRAM(t) AS y, LATEST_BY_OFFSET(i, 2) AS z",
)
HAVINGS = (
    ("COUNT(*) AS x", "COUNT(*) > 1"),
    ("COUNT(*) AS x", "COUNT(*) < 3"),
    ("COUNT(i) AS x, SUM(i) AS y", "SUM(i) % 2 = 0 AND COUNT(i) > 0"),
    ("SUM(b) AS x", "SUM(b) > 3 OR k = 'a'"),
    ("SUM(i) AS x, MAX(b) AS y", "SUM(i) < 0 OR MAX(b) > 2"),
    ("MAX(t) AS x", "MAX(t) > 'a'"),
    ("AVG(i) AS x, LATEST_BY_OFFSET(t) AS y", "AVG(i) >= 1 AND LATEST_BY_OFFSET(t) <> 'a'"),
    ("SUM(d) AS x", "SUM(d) > 1.0"),
    ("COUNT(*) AS x, MIN(i) AS y", "MIN(i) + 1 > 0"),
    ("COLLECT_LIST(i) AS x", "ARRAY_LENGTH(COLLECT_LIST(i)) = 2"),
    ("COUNT(*) AS x", "10 / (COUNT(*) - 2) > 3"),
)
WINDOWS = (
    "",
    "WINDOW TUMBLING (SIZE 10 SECONDS)",
    "WINDOW TUMBLING (SIZE 10 SECONDS, GRACE PERIOD 5 SECONDS)",
    "WINDOW TUMBLING (SIZE 3 SECONDS, GRACE PERIOD 0 SECONDS)",
    "WINDOW TUMBLING (SIZE 3 SECONDS, RETENTION 20 SECONDS, GRACE PERIOD 7 SECONDS)",
    "WINDOW HOPPING (SIZE 10 SECONDS, ADVANCE BY 3 SECONDS, GRACE PERIOD 4 SECONDS)",
    "WINDOW HOPPING (SIZE 2 SECONDS, ADVANCE BY 2 SECONDS, GRACE PERIOD 1 SECONDS)",
)


@st.composite
def queries(draw: st.DrawFn) -> str:
    """A filter and selection, or an aggregate."""
    where = draw(st.sampled_from(("", *(f"WHERE {condition}" for condition in CONDITIONS))))
    if draw(st.booleans()):
        selected = draw(st.sampled_from(SELECTIONS))
        return f"CREATE STREAM q AS SELECT k, {selected} FROM s {where};"
    window = draw(st.sampled_from(WINDOWS))
    final = "EMIT FINAL" if window and draw(st.integers(0, 2)) == 0 else ""
    if draw(st.booleans()):
        made, having = draw(st.sampled_from(HAVINGS))
        group = f"GROUP BY k HAVING {having}"
        return f"CREATE TABLE q AS SELECT k, {made} FROM s {window} {where} {group} {final};"
    made = draw(st.sampled_from(AGGREGATES))
    return f"CREATE TABLE q AS SELECT k, {made} FROM s {window} {where} GROUP BY k {final};"


CERTAIN = [made for made in SELECTIONS if "(t AS" not in made and "ARRAY" not in made]
"""Selections of which no column fails, and which columns' writers write."""


WHOLES = st.one_of(
    st.integers(-3, 6),
    st.sampled_from((2**31 - 1, -(2**31), 2**31, 2**63 - 1, -(2**63), 2**63, 10**30)),
)
DOUBLES = st.one_of(
    st.sampled_from((0.0, -0.0, 0.5, 1e7, 1e-4, 1e300, 123456.75)), st.floats(-10, 10), WHOLES
)
TEXTS = st.one_of(
    st.sampled_from(("a", "b", "abc", "é", "\ud83d\ude00", '"', "\\", "\n", "K", "\uffff", "")),
    st.text(max_size=4),
)


SOURCES = """
CREATE STREAM s (k STRING KEY, i INT, b BIGINT, d DOUBLE, t STRING, o BOOLEAN, ts TIMESTAMP)
  WITH (kafka_topic='s', value_format='JSON');
"""
ODD = st.sampled_from((True, 1, "7", "x", 1.5, [1], {"a": 1}, "\ud800"))
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "I": WHOLES,
    "B": WHOLES,
    "D": DOUBLES,
    "T": TEXTS,
    "O": st.booleans(),
    "TS": st.integers(-(10**6), 2 * 10**12),
}
MALFORMED = (
    b"",
    b" ",
    b"null",
    b"7",
    b"[]",
    b"{",
    b"{}",
    b'{"I":1}{"I":2}',
    b'{"I":1},{"I":2}',
    b'{"I":1} tail}',
    b'{"I":[{"B":1}',
    b'{"B":1}]}',
    b'{"I":1,"I":2}',
    b'{"I":1,"i":2}',
    b'{"i":1,"I":null}',
    b'{"\\u0049":1}',
    b'{"T":"\xff"}',
    b'{"T":"a\nb"}',
    b'{"T":"\\ud800"}',
    b'{"D":NaN}',
    b'{"D":-0}',
    b'{"D":1e999}',
    b'{"I":01}',
    b'\xef\xbb\xbf{"I":1}',
    '{"\u0131":5}'.encode(),
    b'{"A\\u0054":1}',
    b'{"x":' + b"[" * 600 + b"]" * 600 + b"}",
    b'{"x":' + b"[" * 20_000 + b"]" * 20_000 + b"}",
)


@st.composite
def bodies(draw: st.DrawFn, *, odd: bool) -> bytes | None:
    """The bytes of a value."""
    kind = draw(st.integers(0, 30))
    if odd and kind == 0:
        return draw(st.sampled_from((None, *MALFORMED)))
    lower = odd and kind % 3 == 1
    members: dict[str, Any] = {}
    for name, values in VALUES.items():
        choice = draw(st.integers(0, 12))
        if choice == 0:
            continue
        value = draw(values)
        if choice == 1:
            value = None
        elif odd and choice == 2:
            value = draw(ODD)
        members[name.lower() if lower else name] = value
    if odd and kind == 2:
        members["extra"] = draw(ODD)
    return json.dumps(members, ensure_ascii=draw(st.booleans()), separators=(",", ":")).encode(
        "utf-8", "surrogatepass"
    )


@st.composite
def batches(draw: st.DrawFn) -> list[list[tuple[str, TopicRecord]]]:
    """Micro-batches of records, mostly in the order of their timestamps."""
    odd = draw(st.booleans())
    now_ms = draw(st.sampled_from((0, 1_600_000_000_000)))
    made = []
    for _ in range(draw(st.integers(1, 3))):
        batch = []
        for _ in range(draw(st.integers(1, 12))):
            now_ms = max(0, now_ms + draw(st.integers(-2_000, 9_000)))
            keys: Any = st.sampled_from((b"a", b"b", b"c"))
            key = draw(st.one_of(keys, st.sampled_from((None, b"\xff", b""))) if odd else keys)
            headers = (("h", b"1"),) if draw(st.integers(0, 9)) == 0 else ()
            batch.append(("s", TopicRecord(key, draw(bodies(odd=odd)), now_ms, headers)))
        made.append(batch)
    return made


JOINED = """
CREATE STREAM s (k STRING KEY, i INT, t STRING) WITH (kafka_topic='s', value_format='JSON');
CREATE TABLE p (k STRING PRIMARY KEY, name STRING, age INT)
  WITH (kafka_topic='p', value_format='JSON');
"""


@st.composite
def both_sides(draw: st.DrawFn) -> list[list[tuple[str, TopicRecord]]]:
    """Micro-batches of a stream's records and a table's changes."""
    now_ms, made = 0, []
    odd = draw(st.booleans())
    for _ in range(draw(st.integers(1, 3))):
        batch = []
        for _ in range(draw(st.integers(1, 14))):
            now_ms = max(0, now_ms + draw(st.integers(-1_000, 2_000)))
            key: bytes | None = draw(st.sampled_from((b"a", b"b", b"c", b"d")))
            if odd and draw(st.integers(0, 9)) == 0:
                key = draw(st.sampled_from((None, b"\xff")))
            headers = (("h", b"1"),) if draw(st.integers(0, 9)) == 0 else ()
            if draw(st.integers(0, 3)):
                value = draw(bodies(odd=odd))
                batch.append(("s", TopicRecord(key, value, now_ms, headers)))
                continue
            row = {"NAME": draw(TEXTS), "AGE": draw(st.integers(0, 3))}
            body = json.dumps(row).encode()
            given = (None, body, body, b"{}", b'{"NAME":"\\ud800"}' if odd else body, b"x")
            value = draw(st.sampled_from(given[: None if odd else 5]))
            batch.append(("p", TopicRecord(key, value, now_ms, headers)))
        made.append(batch)
    return made


SIDES = (b"-left", b"-right")
"""Ends of the names of the stores in which a stream-stream join keeps records."""
AFTER_ALL_TIMES = 1 << 62
EMPTY_BYTES_MAX = 32
"""The root of an empty store, with the byte before it that says that it is whole."""
Batches = list[list[tuple[str, TopicRecord]]]
"""Micro-batches of records with their topics."""


def outcome(
    plan: QueryPlan,
    records: Batches,
    partitions: int,
    columns_from: int | None,
    schemas: MemoryRegistry | None = None,
) -> tuple[Any, int]:
    """Return the results for the records, and how many went as columns."""
    properties = (("ksql.logging.processing.rows.include", "true"),)
    registry = deepcopy(schemas)
    host = SmallHost(
        plan, partitions, columns_from=columns_from, properties=properties, schemas=registry
    )
    try:
        for batch in records:
            host.batch(batch)
    except Exception as failure:  # noqa: BLE001  # both must fail of the same thing
        return (f"{type(failure).__name__}: {failure}",), 0
    state = {place: pages.data for place, pages in host.pages.items()}
    found = [(r.key, r.value, r.timestamp_ms, r.headers) for r in host.results]
    return (
        found,
        host.notes.count,
        host.notes.notes,
        states_of(str(plan), state),
        None if registry is None else registry.subjects,
    ), host.notes.by_columns


def states_of(query: str, state: dict[tuple[int, int], dict[bytes, bytes]]) -> Any:
    """The contents of stores, without the stamps that differ with each batch. The state of some
    aggregates has the time at which it was made. A store without entries is the same as none."""
    if "_BY_OFFSET" in query:
        return None
    return {place: _contents(pages) for place, pages in state.items()}


def _contents(pages: dict[bytes, bytes]) -> dict[bytes, Any]:
    """The pages of stores; in place of those of a stream-stream join's sides, their records."""
    contents: dict[bytes, Any] = {
        key: data
        for key, data in pages.items()
        if not key.startswith(b"\x00stamp") and not _is_empty(key, data)
    }
    stores = {key: key.partition(b"\x00")[0] for key in contents}
    for name in {name for name in stores.values() if name.endswith(SIDES)}:
        view = DictionaryPages()
        view.data = pages
        store = PagedStore(name.decode(), ChunkedPages(view))
        contents = {key: data for key, data in contents.items() if stores.get(key) != name}
        # As texts: keys may be NaN, which equals nothing, and have fields that are None.
        contents[name] = sorted(
            repr((*head, time_ms, number, row))
            for (*head, first_ms, first), value in store.range((), (AFTER_ALL_TIMES,))
            for time_ms, number, row in entries_of(first_ms, first, value)
        )
    return contents


def _is_empty(key: bytes, data: bytes) -> bool:
    """Return whether it is the root of a store without entries."""
    return key.endswith(bytes(8)) and len(data) < EMPTY_BYTES_MAX and not unpack(data[1:])[1]


def copies(records: Batches) -> Batches:
    """The same, for a host that changes them."""
    return [
        [(topic, TopicRecord(r.key, r.value, r.timestamp_ms, r.headers)) for topic, r in batch]
        for batch in records
    ]


@contextmanager
def decoded_parts(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The subjects of parts that were decoded, each time. It counts with readers made within."""
    decoded: list[str] = []
    made_by = reading.reader

    def reader(format_name: str, part: RecordPart) -> Reader:
        read = made_by(format_name, part)

        def counting(data: Any) -> Read:
            decoded.append(part.subject)
            return read(data)

        return counting

    with monkeypatch.context() as patched:
        patched.setattr(reading, "reader", reader)
        yield decoded
