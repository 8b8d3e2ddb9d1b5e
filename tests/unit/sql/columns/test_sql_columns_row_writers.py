"""Stages whose results have a format or types that no writer of columns has run as columns all the
same: their results are those of the row engine, byte for byte, and so are the notes."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st

from barnabas.schemas.errors import RegistryError
from barnabas.schemas.memory_registry import MemoryRegistry
from barnabas.schemas.wire_format import PREFIX_BYTES
from barnabas.sql.errors import AnalysisError
from barnabas.sql.formats.registry_wire import SCHEMA_ID
from barnabas.sql.plan.steps import QueryPlan, StreamSink
from barnabas.sql.runtime.topics import TopicRecord, key_part, value_part
from barnabas.sql.spark.hosted import HostedPlan
from support.effort import examples
from support.sql_columns import Batches, copies, outcome
from support.sql_queries import plans_of
from support.sql_rows import SOURCE, Rows, rows, without_chance, written

VALUES = (
    "value_format='PROTOBUF'",
    "value_format='PROTOBUF', value_protobuf_nullable_representation='OPTIONAL'",
    "value_format='PROTOBUF', value_protobuf_nullable_representation='WRAPPER'",
    "value_format='PROTOBUF_NOSR'",
    "value_format='JSON_SR'",
    "value_format='AVRO'",
)
BARE = (
    "value_format='JSON_SR', wrap_single_value=false",
    "value_format='JSON', wrap_single_value=false",
    "value_format='AVRO', wrap_single_value=false",
)
KEYS = ("KAFKA", "JSON", "JSON_SR", "AVRO", "PROTOBUF", "PROTOBUF_NOSR", "DELIMITED")
QUERIES = (
    "SELECT * FROM s",
    "SELECT k, i + 1 AS x, d / 2 AS y, a->x AS z, ts FROM s WHERE o",
    "SELECT k, FROM_DAYS(i) AS x, t, n FROM s WHERE t <> 'b'",
    "SELECT k, l, m, a, STRUCT(n := n, l := l, m := m) AS b, ARRAY[a, a] AS c FROM s",
    "SELECT k, ARRAY[t, 'x'] AS x, MAP('p' := d) AS y FROM s WHERE i > 0",
    "SELECT k, CAST(t AS BYTES) AS x, DATEADD(DAYS, 2147483647, FROM_DAYS(i)) AS y FROM s",
)
NEW_KEYS = ("t", "i", "i + 1", "d", "n", "ts", "FROM_DAYS(i)", "a", "t, i")
ONE = ("t", "i", "d", "n", "o", "ts", "FROM_DAYS(i) AS x", "l", "m", "a", "ARRAY[a] AS x")


def _check(
    plan: QueryPlan, records: Batches, registry: MemoryRegistry, partitions: int = 1
) -> tuple[int, int]:
    """Both ways give the same; how many records went as columns, and how many notes were made."""
    _register(plan, registry)
    want, none = outcome(plan, copies(records), partitions, None, registry)
    got, by_columns = outcome(plan, copies(records), partitions, 1, registry)
    assert none == 0
    assert without_chance(got) == without_chance(want)
    return by_columns, got[1] if len(got) > 1 else 0


def _register(plan: QueryPlan, registry: MemoryRegistry) -> None:
    """Register the schemas of the results: ids come from the order of the first key and value."""
    step = plan.step
    assert isinstance(step, StreamSink)
    for format_, part in (key_part(step, registry), value_part(step, registry)):
        if format_.schemas is not None and part.columns and SCHEMA_ID not in part.properties:
            text = format_.schemas.text(part.columns, part.properties, wraps=part.wraps)
            registry.register(part.subject, format_.schemas.schema_type, text)


def _plan(query: str, partitions: int = 1) -> QueryPlan:
    (plan,) = plans_of(SOURCE.format(format="JSON") + query, {"s": partitions})
    return plan


@st.composite
def queries(draw: st.DrawFn) -> str:
    """Queries whose results have all these formats."""
    key = draw(st.sampled_from(KEYS))
    if draw(st.integers(0, 2)) == 0:
        with_ = draw(st.sampled_from(BARE))
        selected = f"SELECT k, {draw(st.sampled_from(ONE))} FROM s"
    else:
        with_ = draw(st.sampled_from(VALUES))
        selected = draw(st.sampled_from(QUERIES))
    if selected == QUERIES[0] and draw(st.booleans()):
        selected += f" PARTITION BY {draw(st.sampled_from(NEW_KEYS))}"
    return f"CREATE STREAM q WITH ({with_}, key_format='{key}') AS {selected};"


@settings(max_examples=examples(30), deadline=None)
@given(query=queries(), given_rows=rows(), partitions=st.integers(1, 2))
def test_both_ways_are_equal(query: str, given_rows: Rows, partitions: int) -> None:
    try:
        plan = _plan(query, partitions)
    except AnalysisError:  # a format that cannot have these columns
        reject()
    records, registry = written("JSON", given_rows)
    _check(plan, records, registry, partitions)


ROW = [7, 1.5, "t", True, 5, None, {"X": 1, "Y": "y"}, ["a"], {"p": 1}]
ALL = f"AS {QUERIES[0]};"
JOIN = """
CREATE TABLE p (k STRING PRIMARY KEY, name STRING) WITH (kafka_topic='p', value_format='JSON');
CREATE STREAM q WITH ({with_}) AS SELECT s.k, i, l, a, p.name FROM s JOIN p ON s.k = p.k;
"""


@pytest.mark.parametrize("with_", VALUES)
@pytest.mark.parametrize("query", QUERIES[:5])
def test_plain_records_go_as_columns(query: str, with_: str) -> None:
    plan = _plan(f"CREATE STREAM q WITH ({with_}) AS {query};")
    records, registry = written("JSON", [[ROW] * 60])
    assert _check(plan, records, registry) == (60, 0)
    assert HostedPlan.draft(plan).column_stages == (0,)


@pytest.mark.parametrize("with_", BARE)
@pytest.mark.parametrize("selected", ONE)
def test_plain_bare_values_go_as_columns(selected: str, with_: str) -> None:
    plan = _plan(f"CREATE STREAM q WITH ({with_}) AS SELECT k, {selected} FROM s;")
    records, registry = written("JSON", [[ROW, [None] * len(ROW)] * 30])
    assert _check(plan, records, registry)[0] >= 30


@pytest.mark.parametrize("key", KEYS)
def test_plain_keys_go_as_columns(key: str) -> None:
    plan = _plan(f"CREATE STREAM q WITH (key_format='{key}') {ALL}")
    records, registry = written("JSON", [[ROW] * 60])
    assert _check(plan, records, registry) == (60, 0)


@pytest.mark.parametrize("key", KEYS)
def test_new_keys_that_are_null_are_written_as_the_row_engine_writes_them(key: str) -> None:
    """Some formats have bytes for a NULL key."""
    plan = _plan(f"CREATE STREAM q WITH (key_format='{key}') AS {QUERIES[0]} PARTITION BY t;")
    records, registry = written("JSON", [[ROW, [None, 1.5, None, *ROW[3:]]] * 30])
    has_bytes = key in ("PROTOBUF", "DELIMITED")
    assert _check(plan, records, registry) == (30 if has_bytes else 60, 0)


@pytest.mark.parametrize("with_", [*VALUES, *(f"key_format='{key}'" for key in KEYS)])
def test_what_a_join_gives_goes_as_columns(with_: str) -> None:
    text = SOURCE.format(format="JSON") + JOIN.format(with_=with_)
    (plan,) = plans_of(text, {"s": 1, "p": 1})
    records, registry = written("JSON", [[ROW] * 60])
    changes = [("p", TopicRecord(b"k%d" % n, b'{"NAME":"n%d"}' % n, 0)) for n in range(2)]
    by_columns, notes = _check(plan, [changes, *records], registry)
    assert by_columns == 62
    assert notes == 0


NAMED = {
    "type": "record",
    "name": "Named",
    "fields": [
        {"name": "I", "type": "int"},
        {"name": "L", "type": ["null", {"type": "array", "items": ["null", "string"]}]},
        {"name": "more", "type": "string", "default": "m"},
    ],
}


def test_values_that_a_schema_of_others_does_not_take_are_noted_alone() -> None:
    """A schema that the statement names may require what columns lack."""
    records, registry = written("JSON", [[[n, *ROW[1:]] for n in range(60)]])
    schema_id = registry.register("x", "AVRO", json.dumps(NAMED))
    lacking = [dict(json.loads(record.value or b""), I=None) for _, record in records[0][:3]]
    for place, row in zip((20, 31, 32), lacking, strict=True):
        records[0][place][1].value = json.dumps(row).encode()
    with_ = f"value_format='AVRO', value_schema_id={schema_id}"
    text = SOURCE.format(format="JSON")
    query = f"CREATE STREAM q WITH ({with_}) AS SELECT k, i, l FROM s;"
    (plan,) = plans_of(text + query, {"s": 1}, registry)
    assert _check(plan, records, registry) == (57, 3)


@pytest.mark.parametrize("with_", VALUES[:4])
def test_only_arrays_with_nulls_go_through_the_row_engine(with_: str) -> None:
    """Protobuf has no NULL in an array."""
    plan = _plan(f"CREATE STREAM q WITH ({with_}) AS SELECT k, i, ARRAY[t, 'x'] AS x FROM s;")
    given_rows = [[[n, 1.5, None if n in (20, 31) else "t", *ROW[3:]] for n in range(60)]]
    records, registry = written("JSON", given_rows)
    by_columns, notes = _check(plan, records, registry)
    assert (by_columns, notes) == (58, 2)


class _Refusing(MemoryRegistry):
    """A registry that takes no schemas; `asked` counts the attempts."""

    asked = 0
    retriable = False

    def register(self, subject: str, schema_type: str, text: str) -> int:
        type(self).asked += 1
        raise RegistryError("no schemas today", retriable=self.retriable)


class _Unreachable(_Refusing):
    retriable = True


@pytest.mark.parametrize("registry", [_Refusing(), _Unreachable()])
@pytest.mark.parametrize("with_", [VALUES[0], VALUES[4], VALUES[5]])
def test_a_registry_that_takes_no_schema_is_asked_once_more_in_a_batch(
    with_: str, registry: _Refusing
) -> None:
    plan = _plan(f"CREATE STREAM q WITH ({with_}) {ALL}")
    records, _ = written("JSON", [[ROW] * 60])
    kind = type(registry)
    kind.asked = 0
    want, _ = outcome(plan, copies(records), 1, None, registry)
    by_rows, kind.asked = kind.asked, 0
    got, by_columns = outcome(plan, copies(records), 1, 1, registry)
    assert got == want
    assert by_columns == 0
    assert (by_rows, kind.asked) == ((1, 2) if registry.retriable else (60, 61))


def test_values_of_json_sr_are_json_behind_the_id_of_their_schema() -> None:
    plan = _plan("CREATE STREAM q WITH (value_format='JSON_SR') AS SELECT k, i, t, m FROM s;")
    records, registry = written("JSON", [[ROW] * 3])
    (results, *_), by_columns = outcome(plan, copies(records), 1, 1, registry)
    assert by_columns == 3
    value = results[0][1]
    assert value[:PREFIX_BYTES] == b"\0\0\0\0\1"
    assert json.loads(value[PREFIX_BYTES:]) == {"I": 7, "T": "t", "M": [{"key": "p", "value": 1}]}


@pytest.mark.parametrize("columns_from", [None, 1])
@pytest.mark.parametrize(
    ("bodies", "results", "notes"),
    [
        pytest.param((b'{"T":"a"}', b'{"T":null}'), 0, 1, id="the last"),
        pytest.param((b'{"T":null}', b'{"T":"a"}'), 1, 0, id="one before the last"),
    ],
)
def test_only_the_last_row_of_a_key_must_fit_its_schema(
    bodies: tuple[bytes, ...], results: int, notes: int, columns_from: int | None
) -> None:
    """Of a batch each key has one result; if that cannot be written, no earlier one takes its
    place."""
    source = "CREATE STREAM s (k STRING KEY, t STRING) WITH (kafka_topic='s', value_format='JSON');"
    query = (
        "CREATE TABLE q WITH (value_format='PROTOBUF') AS"
        " SELECT k, LATEST_BY_OFFSET(ARRAY[t], false) AS x FROM s GROUP BY k;"
    )
    (plan,) = plans_of(source + query, {"s": 1})
    records: Batches = [[("s", TopicRecord(b"k", body, 0)) for body in bodies]]
    found, _ = outcome(plan, records, 1, columns_from, MemoryRegistry())
    assert (len(found[0]), found[1]) == (results, notes)
