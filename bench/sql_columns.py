"""What a record costs our own code as part of a batch, in columns and one by one; without Spark.

    python -m bench.sql_columns
    python -m bench.sql_columns out Sessions        # only cases with one of these in their names
    python -m bench.sql_columns "Four queries"      # each with its own records, or the same

Microseconds of processor time: from the bytes of keys and values in Arrow arrays to those of the
results, with state over a dictionary of bytes. Rounds of both ways alternate; the best one counts,
but for the first, which finds no state.
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from decimal import Decimal as Number
from time import process_time
from typing import Any

from barnabas.schemas.memory_registry import MemoryRegistry
from barnabas.sql.analysis.analyse import analyse
from barnabas.sql.analysis.commands import QueryCommand, apply
from barnabas.sql.analysis.metastore import MetaStore
from barnabas.sql.columns.sources import RawColumns, Readings
from barnabas.sql.formats.catalog import format_named
from barnabas.sql.formats.format import RecordPart
from barnabas.sql.functions.built_in import functions
from barnabas.sql.plan.encoding import encode_plan
from barnabas.sql.plan.steps import QueryPlan
from barnabas.sql.schema import Column, Part
from barnabas.sql.spark.hosted import HostedPlan
from barnabas.sql.spark.hosting import COLUMNS_FROM, Hosting
from barnabas.sql.spark.parcels import Parcel, Raw, decode_parcel, encode_parcel
from barnabas.sql.spark.state import PartitionState
from barnabas.sql.syntax.parser import parse
from barnabas.sql.types import BIGINT, DOUBLE, INTEGER, STRING, Decimal

RECORDS = 10_000
ROUNDS = 15
KEYS = 1_000
PARTITIONS = 2
"""Of state, where records get a new key; topics have one."""
SOURCE = """
CREATE STREAM s (k STRING KEY, i INT, b BIGINT, d {type}, t STRING{more})
  WITH (kafka_topic='s', value_format='{format}');
CREATE STREAM r (k STRING KEY, i INT, t STRING) WITH (kafka_topic='r', value_format='{format}');
CREATE TABLE p (k STRING PRIMARY KEY, name STRING) WITH (kafka_topic='p', value_format='JSON');
"""
FILTER = "CREATE STREAM q AS SELECT k, i + 1 AS i, d, t FROM s WHERE b % 4 < 3;"
FIELDS = (
    "CREATE STREAM q AS SELECT k, a->n + 1 AS i, a->u->d AS d, a->u->t AS t FROM s WHERE b % 4 < 3;"
)
INTO = (
    "CREATE STREAM q WITH (value_format='{format}') AS SELECT k, i + 1 AS i, d, {more} FROM s"
    " WHERE b % 4 < 3;"
)
CALLS = """
CREATE STREAM q AS SELECT k, UCASE(t) AS u, SUBSTRING(t, 1, 4) AS p, ROUND(d) AS r,
  COALESCE(t, '') AS t, URL_EXTRACT_HOST('http://' + REPLACE(t, ' ', '.')) AS h
  FROM s WHERE t LIKE 'text%' AND LEN(t) > 3 AND ABS(i) < 1000;
"""
CASTS = """
CREATE STREAM q AS SELECT k, CAST(d AS STRING) AS x, CAST(i AS STRING) AS y,
  CAST(SUBSTRING(t, 6) AS INT) AS z FROM s;
"""
COUNT = "CREATE TABLE q AS SELECT k, COUNT(*) AS n FROM s WINDOW TUMBLING (SIZE 10 SECONDS) {more};"
COUNT_BY_D = (
    COUNT.replace("k,", "d,")
    .replace("q AS", "q WITH (key_format='JSON') AS")
    .format(more="GROUP BY d")
)
JOIN = "CREATE STREAM q AS SELECT {key}, s.i, p.name FROM s JOIN p ON {key} = p.k;"
SESSIONS = "CREATE TABLE q AS SELECT k, COUNT(*) AS n FROM s WINDOW SESSION ({gap}) GROUP BY k;"
JOIN_STREAMS = """
CREATE STREAM q AS SELECT s.k, s.i, s.t, r.t AS u FROM s JOIN r
  WITHIN 10 SECONDS GRACE PERIOD 1 SECONDS ON s.k = r.k;
"""
JOINED = "FROM s JOIN p ON s.k = p.k"
CASES = {
    "Filter": (FILTER, "JSON", "DOUBLE"),
    "Filter, DELIMITED in and out": (FILTER, "DELIMITED", "DOUBLE"),
    "Filter, Avro in and out": (FILTER, "AVRO", "DOUBLE"),
    "Filter, Avro with a DECIMAL in and out": (FILTER, "AVRO", "DECIMAL(12, 2)"),
    "Filter, a DECIMAL among the columns": (FILTER, "JSON", "DECIMAL(12, 2)"),
    "Filter with eight functions": (CALLS, "JSON", "DOUBLE"),
    "Filter, three fields of structs": (FIELDS, "JSON", "DOUBLE"),
    "Filter, a MAP among the columns": (FILTER, "JSON", "DOUBLE"),
    "Filter, JSON_SR out": (INTO.format(format="JSON_SR", more="t"), "JSON", "DOUBLE"),
    "Filter, Protobuf out": (INTO.format(format="PROTOBUF", more="t"), "JSON", "DOUBLE"),
    "Filter, Protobuf in and out": (FILTER, "PROTOBUF", "DOUBLE"),
    "Filter, Protobuf in": (INTO.format(format="JSON", more="t"), "PROTOBUF", "DOUBLE"),
    "Filter, JSON_SR in and out": (FILTER, "JSON_SR", "DOUBLE"),
    "Filter, Avro out": (INTO.format(format="AVRO", more="t"), "JSON", "DOUBLE"),
    "Filter, Avro with an ARRAY out": (
        INTO.format(format="AVRO", more="ARRAY[t, 'x'] AS x"),
        "JSON",
        "DOUBLE",
    ),
    "Windowed count": (COUNT.format(more="GROUP BY k"), "JSON", "DOUBLE"),
    "Windowed count, DELIMITED in": (COUNT.format(more="GROUP BY k"), "DELIMITED", "DOUBLE"),
    "Windowed count, Avro in": (COUNT.format(more="GROUP BY k"), "AVRO", "DOUBLE"),
    "Windowed count, Protobuf in": (COUNT.format(more="GROUP BY k"), "PROTOBUF", "DOUBLE"),
    "Windowed count, JSON_SR in": (COUNT.format(more="GROUP BY k"), "JSON_SR", "DOUBLE"),
    "Windowed count, HAVING": (
        COUNT.format(more="GROUP BY k HAVING COUNT(*) > 5"),
        "JSON",
        "DOUBLE",
    ),
    "Windowed count, EMIT FINAL": (
        COUNT.replace("SECONDS)", "SECONDS, GRACE PERIOD 1 SECONDS)").format(
            more="GROUP BY k EMIT FINAL"
        ),
        "JSON",
        "DOUBLE",
    ),
    "Sessions, HAVING": (
        SESSIONS.format(gap="5 SECONDS").replace(";", " HAVING COUNT(*) > 5;"),
        "JSON",
        "DOUBLE",
    ),
    "Sessions, EMIT FINAL": (
        SESSIONS.format(gap="500 MILLISECONDS, GRACE PERIOD 1 SECONDS").replace(
            ";", " EMIT FINAL;"
        ),
        "JSON",
        "DOUBLE",
    ),
    "Sessions, one growing for each key": (SESSIONS.format(gap="5 SECONDS"), "JSON", "DOUBLE"),
    "Sessions, 1,000 that end in each second": (
        SESSIONS.format(gap="500 MILLISECONDS"),
        "JSON",
        "DOUBLE",
    ),
    "Three casts": (CASTS, "JSON", "DOUBLE"),
    "PARTITION BY another column": (
        "CREATE STREAM q AS SELECT * FROM s PARTITION BY t;",
        "JSON",
        "DOUBLE",
    ),
    "Windowed count by another column": (
        COUNT.replace("k,", "t,").format(more="GROUP BY t"),
        "JSON",
        "DOUBLE",
    ),
    "Windowed count by a DOUBLE": (COUNT_BY_D, "JSON", "DOUBLE"),
    "Windowed count by a DECIMAL": (COUNT_BY_D, "JSON", "DECIMAL(12, 2)"),
    "Stream joined to a table": (JOIN.format(key="s.k"), "JSON", "DOUBLE"),
    "Stream joined to a table by another column": (JOIN.format(key="s.t"), "JSON", "DOUBLE"),
    "Stream joined to a table, windowed count by the key": (
        COUNT.replace("k, COUNT", "s.k, COUNT")
        .replace("FROM s", JOINED)
        .format(more="GROUP BY s.k"),
        "JSON",
        "DOUBLE",
    ),
    "Stream joined to a table, count by a column of it": (
        f"CREATE TABLE q AS SELECT p.name, COUNT(*) AS n {JOINED} GROUP BY p.name;",
        "JSON",
        "DOUBLE",
    ),
    "Stream joined to a table, a key for each record": (JOIN.format(key="s.k"), "JSON", "DOUBLE"),
    "Stream joined to a stream within 10 s": (JOIN_STREAMS, "JSON", "DOUBLE"),
    "Stream joined to a stream within 10 s, a key for each record": (
        JOIN_STREAMS,
        "JSON",
        "DOUBLE",
    ),
}
MORE: dict[str, tuple[str, Callable[[int], dict[str, Any]]]] = {
    "Filter, three fields of structs": (
        "a STRUCT<n INT, u STRUCT<d DOUBLE, t STRING>>",
        lambda n: {"A": {"N": n % 100, "U": {"D": n % 1_000 + 0.25, "T": f"text {n % 50}"}}},
    ),
    "Filter, a MAP among the columns": (
        "m MAP<STRING, INT>",
        lambda n: {"M": {"x": n, "y": n % 7}},
    ),
}
"""A further column of a case, and the member of the record with a number."""
KEYS_OF = {
    "Stream joined to a table, a key for each record": RECORDS,
    # A record of one stream meets three of the other: one at its own time, two 10 s from it.
    "Stream joined to a stream within 10 s, a key for each record": RECORDS,
}
"""The number of keys in cases that have not KEYS."""
FOUR = (
    FILTER,
    CALLS,
    COUNT.format(more="GROUP BY k"),
    COUNT.format(more="WHERE i > 50 GROUP BY k"),
)
COUNTS = (RECORDS, 250)
"""Records of a batch: of one that lags behind, and of a second's tenth."""
FORMATS = ("JSON", "AVRO", "JSON_SR", "PROTOBUF", "DELIMITED")


class Pages:
    """Pages of state in memory."""

    def __init__(self) -> None:
        self._data: dict[bytes, bytes] = {}

    def get(self, key: bytes) -> bytes | None:
        """Return a page."""
        return self._data.get(key)

    def put(self, key: bytes, data: bytes) -> None:
        """Keep a page."""
        self._data[key] = data

    def remove(self, key: bytes) -> None:
        """Forget a page."""
        del self._data[key]


def plan_of(statements: str) -> QueryPlan:
    """The plan of the only query among the statements."""
    metastore, plan = MetaStore(), None
    for parsed in parse(statements):
        command = analyse(
            parsed.statement,
            metastore,
            {},
            functions(),
            topics={"s": 1, "r": 1, "p": 1},
            text=parsed.text,
        )
        apply(command, metastore, parsed.text)
        if isinstance(command, QueryCommand):
            plan = command.plan
    assert plan is not None
    return plan


def written_values(
    format_name: str, rows: Sequence[Sequence[Any]], number: str, registry: MemoryRegistry
) -> list[bytes]:
    """The rows in a format with schemas, as ksqlDB's own writer writes them."""
    columns = [
        Column(name, sql_type, Part.VALUE)
        for name, sql_type in zip(
            "IBDT",
            (INTEGER, BIGINT, Decimal(12, 2) if "," in number else DOUBLE, STRING),
            strict=True,
        )
    ]
    part = RecordPart(columns, {}, "s-value", registry, wraps=True)
    write = format_named(format_name).serializer(part)
    made = [[i, b, Number(str(d)) if "," in number else d, t] for i, b, d, t in rows]
    return [value for row in made if (value := write(row)) is not None]


def batch(
    format_name: str,
    number: str,
    round_: int,
    registry: MemoryRegistry,
    keys: int,
    more: Callable[[int], dict[str, Any]],
    count: int = RECORDS,
) -> RawColumns:
    """Records whose timestamps go on from round to round."""
    places = range(count)
    rows = [[n % 100, n, n % 1_000 + 0.25, f"text {n % 50}"] for n in places]
    if format_name == "JSON":
        values = [
            json.dumps(dict(zip("IBDT", row, strict=True)) | more(n)).encode()
            for n, row in enumerate(rows)
        ]
    elif format_name in ("AVRO", "JSON_SR", "PROTOBUF"):
        values = written_values(format_name, rows, number, registry)
    else:
        values = [",".join(map(str, row)).encode() for row in rows]
    first = round_ * count
    return RawColumns.of_lists(
        0,
        [first + n for n in places],
        [first + n for n in places],
        [b"key-%d" % (n * 7 % keys) for n in places],
        values,
    )


def table(keys: int) -> RawColumns:
    """A row for each key and each text of the stream's records."""
    names = [*(f"key-{n}" for n in range(keys)), *(f"text {n}" for n in range(50))]
    values = [json.dumps({"NAME": f"name of {name}"}).encode() for name in names]
    offsets = list(range(len(names)))
    return RawColumns.of_lists(0, offsets, [0] * len(names), [n.encode() for n in names], values)


class Way:
    """A plan, run from some number of records on as columns; None: never."""

    def __init__(
        self, plan: QueryPlan, columns_from: int | None, registry: MemoryRegistry, keys: int = KEYS
    ) -> None:
        one = Hosting(plan.query_id, encode_plan(plan), 1, 1, columns_from=columns_from)
        self._plan = HostedPlan(one, registry, plan)
        if len(self._plan.stages) > 1:
            many = replace(one, partitions=PARTITIONS, tasks=PARTITIONS)
            self._plan = HostedPlan(many, registry, plan)
        self._pages: dict[tuple[int, int], Pages] = defaultdict(Pages)
        self._states: dict[tuple[int, int], PartitionState] = defaultdict(PartitionState)
        for (stage, place), topic in self._plan.topology.topics.items():
            if topic == "p":
                self._run([Raw(stage, place, table(keys))])
        self._plan.take_notes()

    def microseconds(self, records: RawColumns) -> float:
        """Of a record; where two streams are joined, both have the same records."""
        topics = self._plan.topology.topics
        raws = [
            Raw(stage, place, records) for (stage, place), name in topics.items() if name != "p"
        ]
        count = len(raws) * len(records)
        began = process_time()
        self._run(raws)
        took = process_time() - began
        notes = self._plan.take_notes()
        is_columnar = self._plan.hosting.columns_from is not None
        assert notes.by_columns == (count if is_columnar else 0), notes
        return took / count * 1e6

    def _run(self, raws: Sequence[Raw]) -> None:
        """Run a batch; parcels between operators become bytes, as on their way through Spark."""
        waiting: dict[tuple[int, int], list[Parcel]] = defaultdict(list)
        for raw in raws:
            for partition, operator, parcel in self._plan.from_source(raw):
                if operator is not None:
                    waiting[operator, partition].append(self._sent(parcel))
        for number in range(len(self._plan.topology.operators)):
            for partition in range(self._plan.topology.partitions):
                at = number, partition
                state = self._states[at]
                state.attach(self._pages[at])
                list(self._plan.run_operator(*at, waiting.pop(at, []), state.open))
                state.flush()

    def _sent(self, parcel: Parcel) -> Parcel:
        is_alone = self._plan.topology.partitions == 1
        return parcel if is_alone else decode_parcel(encode_parcel(parcel))


def four_queries(format_name: str, count: int) -> tuple[float, float]:
    """Microseconds for a record and query, if each query decodes the records and if one does."""
    source = SOURCE.format(type="DOUBLE", format=format_name, more="")
    registry = MemoryRegistry()
    ways = [Way(plan_of(source + query), COLUMNS_FROM, registry) for query in FOUR for _ in "ab"]
    best = [float("inf")] * 2
    for round_ in range(ROUNDS if count == RECORDS else 8 * ROUNDS):
        shared = batch(format_name, "DOUBLE", round_, registry, KEYS, lambda _: {}, count)
        alone = sum(way.microseconds(replace(shared, readings=Readings())) for way in ways[::2])
        together = sum(way.microseconds(shared) for way in ways[1::2])
        for at, took in enumerate((alone, together)):
            best[at] = min(best[at], took / len(FOUR)) if round_ else best[at]
    return best[0], best[1]


def main() -> None:
    """Print a row for each case."""
    asked = sys.argv[1:] or [""]
    for count in COUNTS:
        formats = [one for one in FORMATS if any(part in f"Four queries, {one}" for part in asked)]
        if formats:
            print(f"| {count:,} records | Each decodes | One decodes for all |\n|---|---:|---:|")
        for format_name in formats:
            alone, together = four_queries(format_name, count)
            print(f"| Four queries, {format_name} | {alone:.2f} µs | {together:.2f} µs |")
    print("| | Record by record | As columns |\n|---|---:|---:|")
    for name, (query, format_name, number) in CASES.items():
        if not any(part in name for part in asked):
            continue
        column, more = MORE.get(name, ("", lambda _: {}))
        source = SOURCE.format(type=number, format=format_name, more=column and f", {column}")
        plan = plan_of(source + query)
        registry = MemoryRegistry()
        keys = KEYS_OF.get(name, KEYS)
        rows, columns = (Way(plan, least, registry, keys) for least in (None, COLUMNS_FROM))
        best = [float("inf")] * 2
        for round_ in range(ROUNDS):
            records = batch(format_name, number, round_, registry, keys, more)
            for at, way in enumerate((rows, columns)):
                took = way.microseconds(records)
                best[at] = min(best[at], took) if round_ else best[at]
        print(f"| {name} | {best[0]:.1f} µs | {best[1]:.1f} µs |")


if __name__ == "__main__":
    main()
