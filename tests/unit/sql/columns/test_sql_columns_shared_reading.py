"""Queries that get the same records share what one of them has decoded.

The results, state and notes of each are the same as if it alone had the records.
"""

from __future__ import annotations

import gc
import weakref
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st

from barnabas.schemas.memory_registry import MemoryRegistry
from barnabas.schemas.registry_client import RegistryClient
from barnabas.sql.columns.sources import RawColumns, Readings, column_source, name_of
from barnabas.sql.errors import AnalysisError
from barnabas.sql.formats.catalog import format_named
from barnabas.sql.formats.format import RecordPart
from barnabas.sql.plan.encoding import encode_plan
from barnabas.sql.plan.steps import QueryPlan
from barnabas.sql.runtime.forms import SourceForm
from barnabas.sql.runtime.topics import TopicReader
from barnabas.sql.schema import Column, Part
from barnabas.sql.spark.hosted import HostedPlan
from barnabas.sql.spark.hosting import Hosting
from barnabas.sql.spark.parcels import Raw, Results
from barnabas.sql.spark.state import PartitionState
from barnabas.sql.types import BIGINT, BOOLEAN, DOUBLE, INTEGER, STRING, TIMESTAMP, SqlType
from support.effort import examples
from support.sql_columns import bodies, decoded_parts, states_of
from support.sql_damage import broken
from support.sql_hosted import DictionaryPages
from support.sql_queries import plans_of

WRITTEN: dict[str, tuple[SqlType, st.SearchStrategy[Any]]] = {
    "I": (INTEGER, st.integers(-3, 6)),
    "B": (BIGINT, st.sampled_from((0, 7, 2**31, -(2**63)))),
    "D": (DOUBLE, st.sampled_from((0.5, -1.25, 1e300))),
    "T": (STRING, st.sampled_from(("a", "é", "7", ""))),
    "O": (BOOLEAN, st.booleans()),
    "TS": (TIMESTAMP, st.integers(0, 10**6)),
}
"""Columns of records, and values for them."""
ALL = "i INT, b BIGINT, d DOUBLE, t STRING, o BOOLEAN, ts TIMESTAMP"
DECLARED = {
    "KAFKA": ("i INT", "i INT", "i BIGINT", "i STRING", "i DOUBLE"),
    "DELIMITED": (
        ALL,
        ALL,
        ALL.replace("i INT", "i STRING"),
        ALL.replace("i INT", "i BIGINT"),
        "i INT",
    ),
    "JSON": (
        ALL,
        ALL,
        "i BIGINT, b BIGINT, d DOUBLE, t STRING",
        "i INT, t STRING",
        "t STRING, i INT",
        "i STRING, b BIGINT",
        "i INT, b DECIMAL(6, 2), d DECIMAL(9, 4)",
        "i INT, t ARRAY<STRING>, ts TIMESTAMP",
    ),
}
"""Columns of streams over one topic, by format; formats that are not here have those of JSON."""
FORMATS = (*DECLARED, "JSON_SR", "AVRO", "PROTOBUF", "PROTOBUF_NOSR")
SETTINGS = ("", "", "", ", key_format='JSON'", ", timestamp='ts'")
SOURCES = """
CREATE STREAM s (k STRING KEY, {columns}) WITH (kafka_topic='s', value_format='{of}'{more});
CREATE STREAM r (k STRING KEY, {columns}) WITH (kafka_topic='s', value_format='{of}'{more});
CREATE TABLE p (k STRING PRIMARY KEY, {columns}) WITH (kafka_topic='s', value_format='{of}'{more});
"""
QUERIES = (
    "CREATE STREAM q AS SELECT * FROM s;",
    "CREATE STREAM q AS SELECT k, i, ROWTIME AS x, ROWOFFSET AS y FROM s WHERE i IS NOT NULL;",
    "CREATE STREAM q AS SELECT k, 1 / (CAST(i AS BIGINT) - 1) AS x FROM s;",
    "CREATE STREAM q WITH (value_format='JSON') AS SELECT * FROM s PARTITION BY i;",
    "CREATE TABLE q AS SELECT k, COUNT(*) AS x FROM s GROUP BY k;",
    "CREATE TABLE q AS SELECT i, COUNT(*) AS x FROM s GROUP BY i;",
    """CREATE TABLE q AS SELECT k, MAX(i) AS x FROM s WINDOW TUMBLING (SIZE 3 SECONDS)
      GROUP BY k HAVING COUNT(*) > 1;""",
    """CREATE STREAM q WITH (value_format='JSON') AS SELECT s.k, s.i, r.i FROM s JOIN r
      WITHIN 5 SECONDS GRACE PERIOD 1 SECONDS ON s.k = r.k;""",
    """CREATE STREAM q WITH (value_format='JSON') AS SELECT s.k, s.i, p.i FROM s JOIN p
      ON s.k = p.k;""",
)


class Member:
    """A query of a shared stream, as its worker runs it: all in one partition."""

    def __init__(self, plan: QueryPlan, schemas: MemoryRegistry) -> None:
        properties = (("ksql.logging.processing.rows.include", "true"),)
        hosting = Hosting(plan.query_id, encode_plan(plan), 1, 1, properties, columns_from=1)
        self._plan = HostedPlan(hosting, schemas, plan)
        self._query = str(plan)
        self._state, self._pages = PartitionState(), DictionaryPages()
        self._made: list[Any] = []

    def run(self, records: Sequence[RawColumns]) -> None:
        """Run one micro-batch."""
        try:
            self._run(records)
        except Exception as failure:  # noqa: BLE001  # it must fail of the same thing
            self._made.append(f"{type(failure).__name__}: {failure}")

    def _run(self, records: Sequence[RawColumns]) -> None:
        plan = self._plan
        placed = [
            made
            for stage, place in plan.topology.topics
            for one in records
            for made in plan.from_source(Raw(stage, place, one))
        ]
        incoming = [one for _, number, one in placed if number is not None]
        if plan.topology.operators:
            self._state.attach(self._pages)
            placed += plan.run_operator(0, 0, incoming, self._state.open)
            self._state.flush()
        for _, number, one in placed:
            if number is None:
                assert isinstance(one, Results)
                self._made.append((*one.lists(), one.headers))
        notes = plan.take_notes()
        self._made.append((notes.read, notes.count, notes.notes, notes.by_columns, notes.latest_ms))

    def outcome(self) -> Any:
        """All that came of it: results and notes in their order, and the state."""
        return self._made, states_of(self._query, {(0, 0): self._pages.data})


def written_by(format_name: str, registry: MemoryRegistry) -> Any:
    """The format's writer of rows of WRITTEN."""
    columns = [Column(name, sql_type, Part.VALUE) for name, (sql_type, _) in WRITTEN.items()]
    part = RecordPart(columns, {}, "s-value", registry, wraps=True)
    return format_named(format_name).serializer(part)


@st.composite
def values(draw: st.DrawFn, format_name: str, write: Any) -> bytes | None:
    """The bytes of a value: one in ten is damaged."""
    if format_name == "JSON":
        return draw(bodies(odd=True))
    if format_name == "KAFKA":
        return draw(st.sampled_from((None, b"", b"a", b"\0\0\0\1", bytes(7) + b"\2", b"\xff")))
    row = [draw(one) for _, one in WRITTEN.values()]
    if format_name == "DELIMITED":
        line = ",".join(map(str, row))
        odd = (None, b"", b"\xff", line.encode() + b",1", b'"' + line.encode(), b"x,,,,,")
        return draw(st.sampled_from(odd)) if not draw(st.integers(0, 9)) else line.encode()
    value: bytes = write(row)
    return value if draw(st.integers(0, 9)) else draw(broken(value))


@st.composite
def parts(draw: st.DrawFn, format_name: str, write: Any) -> list[list[RawColumns]]:
    """Micro-batches of one partition of a topic, each in some parts."""
    keys = st.sampled_from((b"a", b"a", b"b", b'"a"', b'"b"', None, b"\xff"))
    now_ms = first = 0
    made = []
    for _ in range(draw(st.integers(1, 3))):
        batch = []
        for _ in range(draw(st.integers(1, 3))):
            size = draw(st.integers(1, 8))
            stamps = [now_ms + draw(st.integers(-2_000, 4_000)) for _ in range(size)]
            now_ms = max(now_ms, *stamps)
            given_ = [draw(st.sampled_from(((), (), (("h", b"1"),)))) for _ in range(size)]
            records = RawColumns.of_lists(
                0,
                list(range(first, first + size)),
                stamps,
                [draw(keys) for _ in range(size)],
                [draw(values(format_name, write)) for _ in range(size)],
                given_ if any(given_) else None,
            )
            first += size
            batch.append(records)
        made.append(batch)
    return made


@st.composite
def plans(draw: st.DrawFn, format_name: str) -> QueryPlan:
    """A query over a stream of the topic."""
    columns = draw(st.sampled_from(DECLARED.get(format_name, DECLARED["JSON"])))
    more = draw(st.sampled_from(SETTINGS if "ts TIMESTAMP" in columns else SETTINGS[:-1]))
    statements = SOURCES.format(columns=columns, of=format_name, more=more)
    query = draw(st.sampled_from(QUERIES))
    try:
        (plan,) = plans_of(statements + query, {"s": 1}, MemoryRegistry())
    except AnalysisError:  # such as a join of one partition by time and another
        reject()
    return plan


@settings(max_examples=examples(40), deadline=None)
@given(data=st.data(), format_name=st.sampled_from(FORMATS))
def test_queries_with_the_same_records_do_what_they_do_with_their_own(
    data: st.DataObject, format_name: str
) -> None:
    registry = MemoryRegistry()
    write = None if format_name in DECLARED else written_by(format_name, registry)
    # Later ids are higher, and damage makes lower ones. It must not make the id of a sink's schema,
    # which is registered for one query and not yet for the one before.
    registry.add("other", "AVRO", '"int"', given_id=10)
    batches = data.draw(parts(format_name, write))
    formats = [format_name] * data.draw(st.integers(1, 3))
    if data.draw(st.integers(0, 4)) == 0:
        formats.append(data.draw(st.sampled_from(("JSON", "DELIMITED", "KAFKA"))))
    members = [data.draw(plans(one)) for one in formats]
    members += [data.draw(st.sampled_from(members)) for _ in range(data.draw(st.integers(1, 2)))]
    registries = deepcopy(registry), deepcopy(registry)
    alone, together = ([Member(plan, one) for plan in members] for one in registries)
    waiting: list[list[RawColumns]] = [[] for _ in members]
    for number, batch in enumerate(batches):
        is_last = number == len(batches) - 1
        for at, own in enumerate(waiting):
            own += batch
            if data.draw(st.integers(0, 3)) or is_last:  # else it reads them with the next ones
                is_other_object = data.draw(st.booleans())
                alone[at].run([replace(one, readings=Readings()) for one in own])
                together[at].run([replace(one) for one in own] if is_other_object else own)
                own.clear()
    assert [one.outcome() for one in together] == [one.outcome() for one in alone]
    assert registries[1].subjects == registries[0].subjects


# --- what is decoded how often ---------------------------------------------------------------


SCHEMAS = MemoryRegistry()
JSON_SOURCE = SOURCES.format(columns="i INT, t STRING", of="JSON", more="")
BODIES = [b'{"I":1,"T":"a"}', b'{"I":"x"}', b'{"I":2}', b"[", b'{"I":3,"T":"b"}']


def json_records(first: int = 0) -> RawColumns:
    """Records of which the second and the fourth cannot be read."""
    places = list(range(first, first + len(BODIES)))
    return RawColumns.of_lists(0, places, [1_000 * at for at in places], [b"a"] * 5, BODIES)


def plan_over(source: str, query: str) -> QueryPlan:
    (plan,) = plans_of(source + query, {"s": 1})
    return plan


@pytest.mark.parametrize("pieces", [1, 3])
def test_one_query_decodes_for_all(monkeypatch: pytest.MonkeyPatch, pieces: int) -> None:
    with decoded_parts(monkeypatch) as decoded:
        members = [Member(plan_over(JSON_SOURCE, QUERIES[at]), SCHEMAS) for at in (4, 4, 6)]
        records = [json_records(5 * number) for number in range(pieces)]
        for member in members:
            member.run(records)
    assert decoded == ["s-key", "s-value"]
    for member in members:
        (*_, notes), _ = member.outcome()
        assert notes[0] == 5 * pieces
        assert notes[1] == 2 * pieces, "each notes what it cannot read"


@pytest.mark.parametrize(
    ("other", "also"),
    [
        ("i BIGINT, t STRING", ["s-value"]),
        ("t STRING, i INT", ["s-value"]),
        ("i INT", ["s-value"]),
        ("i INT, t STRING", []),
    ],
)
def test_streams_with_other_columns_are_decoded_again(
    monkeypatch: pytest.MonkeyPatch, other: str, also: list[str]
) -> None:
    with decoded_parts(monkeypatch) as decoded:
        records = json_records()
        for source in (JSON_SOURCE, SOURCES.format(columns=other, of="JSON", more="")):
            Member(plan_over(source, QUERIES[1]), SCHEMAS).run([records])
    assert decoded == ["s-key", "s-value", *also]


def test_a_batch_of_many_unreadable_records_is_decoded_by_each_query(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("barnabas.sql.columns.sources._UNREADABLE_MAX", 1)
    records = json_records()
    for _ in range(2):
        member = Member(plan_over(JSON_SOURCE, QUERIES[0]), SCHEMAS)
        member.run([records])
        (*_, notes), _ = member.outcome()
        assert notes[1] == 2


def test_readings_are_freed_with_their_records() -> None:
    member = Member(plan_over(JSON_SOURCE, QUERIES[4]), SCHEMAS)
    parts_ = [json_records(), json_records(5)]
    member.run(parts_)
    frame = source_of(JSON_SOURCE).read(RawColumns.joined(parts_))[0]
    held = [weakref.ref(frame.places), *(weakref.ref(part.readings) for part in parts_)]
    del frame
    assert all(one() is not None for one in held)
    gc.collect()
    gc.disable()
    try:
        parts_.clear()
        assert [one() for one in held] == [None] * len(held)
    finally:
        gc.enable()


def source_of(statements: str) -> Any:
    """The source for batches of a query over all columns."""
    plan = HostedPlan.draft(plan_over(statements, QUERIES[0]))
    (stage,) = plan.stages
    form = stage.chain(0)[0].form
    assert isinstance(form, SourceForm)
    return column_source(form, None, lambda: TopicReader(form.step, None, lambda *_: None))


def test_no_step_can_change_what_others_read() -> None:
    source, records = source_of(JSON_SOURCE), json_records()
    frame, rowless = source.read(records)
    shared = [
        frame.places,
        frame.timestamps,
        rowless,
        frame.columns[0].data,
        frame.columns[1].valid,
    ]
    for array in shared:
        with pytest.raises(ValueError, match="read-only"):
            array[0] = array[1]
    frame.doubt[:] = True
    frame.columns.clear()
    again, _ = source.read(records)
    assert again.columns[0].to_list() == [1, 2, 3]
    assert not again.doubt.any()


def test_only_the_last_readings_are_kept() -> None:
    readings: Readings[None] = Readings()
    made = [readings.of(number, lambda: np.zeros(1)) for number in range(40)]
    assert readings.of(39, lambda: np.ones(1)) is made[39]
    assert readings.of(0, lambda: np.ones(1)) is not made[0]


@pytest.mark.parametrize(
    ("other", "is_same"),
    [
        (RegistryClient("http://a:1"), True),
        (RegistryClient("http://a:1/"), True),
        (RegistryClient("http://b:1"), False),
        (RegistryClient("http://a:1", user_info="u:p"), False),
        (MemoryRegistry(), False),
        (None, False),
    ],
)
def test_readings_with_schemas_of_one_registry_are_the_same(other: Any, *, is_same: bool) -> None:
    part = RecordPart([Column("I", INTEGER)], {}, "s-value", RegistryClient("http://a:1"), True)
    assert (name_of("AVRO", part) == name_of("AVRO", part._replace(schemas=other))) == is_same


@pytest.mark.parametrize(
    "other",
    [
        {"columns": [Column("I", BIGINT)]},
        {"columns": [Column("J", INTEGER)]},
        {"properties": {"delimiter": "|"}},
        {"subject": "s-key"},
        {"wraps": False},
    ],
)
def test_all_that_decides_what_is_read_is_in_its_name(other: dict[str, Any]) -> None:
    part = RecordPart([Column("I", INTEGER)], {}, "s-value", None, True)
    assert name_of("JSON", part) != name_of("JSON", part._replace(**other))
    assert name_of("JSON", part) != name_of("AVRO", part)
    assert name_of("JSON", part) == name_of("JSON", part._replace(columns=(Column("I", INTEGER),)))
