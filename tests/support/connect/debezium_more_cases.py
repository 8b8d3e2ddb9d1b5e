"""Further cases of Debezium's transforms: partitions, schema changes, changed fields, vectors."""

from __future__ import annotations

import random
from base64 import b64encode
from collections.abc import Callable
from typing import Any

Json = Any
Change = Callable[[random.Random, Json, Json, Callable[[], Json], str], Json]
PLACE = "io.debezium.transforms."
TEXT: Json = {"type": "STRING"}
DATA = "org.apache.kafka.connect.data."


def _optional(kind: str, **rest: Any) -> Json:
    return {"type": kind, "optional": True, **rest}


KINDS: Json = {
    "type": "STRUCT",
    "name": "srv.public.t.Value",
    "optional": True,
    "fields": [
        ["i8", _optional("INT8")],
        ["i16", _optional("INT16")],
        ["i32", _optional("INT32", default=-7)],
        ["i64", _optional("INT64")],
        ["f32", _optional("FLOAT32")],
        ["f64", _optional("FLOAT64")],
        ["flag", _optional("BOOLEAN")],
        ["text", _optional("STRING")],
        ["amount", _optional("BYTES", name=f"{DATA}Decimal", parameters={"scale": "2"})],
        ["day", _optional("INT32", name=f"{DATA}Date")],
        ["at", _optional("INT64", name=f"{DATA}Timestamp")],
        ["list", _optional("ARRAY", values=_optional("INT64"))],
        ["map", _optional("MAP", keys=TEXT, values=_optional("INT32"))],
        ["inner", {"type": "STRUCT", "optional": True, "fields": [["n", _optional("INT32")]]}],
    ],
}
SOURCE: Json = {"type": "STRUCT", "fields": [["db", TEXT], ["table", TEXT]]}
NAMES = [name for name, _ in KINDS["fields"]]
TEXTS = [
    *(None, "", "a", "twelve chars", "exactly 16 bytes", "more than sixteen bytes"),
    *("hélas", "日本語のテキスト", "🙂 and 𝔘", "x" * 100),
]
FIELDS = "partition.payload.fields"
NUMBER = "partition.topic.num"
PARTITIONS: list[dict[str, str]] = [
    *(
        {FIELDS: f"change.{name}", NUMBER: "97", "partition.hash.function": function}
        for name in NAMES[:-1]
        for function in ("java", "murmur")
    ),
    {FIELDS: "change.text,source.table,op", NUMBER: "3"},
    {FIELDS: " after.i32 , before.i32,after.inner.n", NUMBER: "5"},
    {FIELDS: "after.i32,change.i32", NUMBER: "5", "partition.hash.function": " MURMUR "},
    {FIELDS: "after. i32 ,nothing", NUMBER: "5", "partition.hash.function": "other"},
    {FIELDS: "nothing,op.x,before.none", NUMBER: "5"},
    {FIELDS: "change.inner.n", NUMBER: "1"},
    {FIELDS: "op", NUMBER: "11"},
    {FIELDS: "a,,b", NUMBER: "5"},
    {FIELDS: "a", NUMBER: "0"},
    {FIELDS: "a", NUMBER: "-1"},
    {FIELDS: "a"},
    {NUMBER: "4"},
]
NAME = "schema.change.event.exclude.list"
FILTERS: list[dict[str, str]] = [
    {NAME: "CREATE"},
    {NAME: "DROP, TRUNCATE ,ALTER"},
    {NAME: "DATABASE,"},
    {},
]
CHANGED: list[dict[str, str]] = [
    {},
    {"header.changed.name": "changed"},
    {"header.unchanged.name": "same"},
    {"header.changed.name": "changed", "header.unchanged.name": "same"},
    {"header.changed.name": " "},
]
ADDED = (
    "partitions.PartitionRouting",
    "SchemaChangeEventFilter",
    "ExtractChangedRecordState",
    "VectorToJsonConverter",
)

MESSAGE_CLASS = "io.debezium.connector.postgresql.transforms.DecodeLogicalDecodingMessageContent"
CONTENTS = [
    *("{}", '{"a":1}', '{"id":"e1","n":null,"inner":{"x":[1,2],"y":true},"f":0.5}', '{"é":"ü"}'),
    *("text", "", " {}"),
]


def cases(rng: random.Random, change: Change, others: list[Json]) -> list[Json]:
    """The cases; `others` are records that are not changes."""
    return [
        *_cases_of_partitions(rng, change, others),
        *_cases_of_schema_changes(others),
        *_cases_of_changed_fields(rng, change, others),
        _case("VectorToJsonConverter", {}, [*_vectors(), *others]),
        *_cases_of_messages(others[1:]),
        *({"kind": "definition", "class": PLACE + name, "settings": {}} for name in ADDED),
        {"kind": "definition", "class": MESSAGE_CLASS, "settings": {}},
    ]


def _case(name: str, settings: dict[str, str], records: list[Json]) -> Json:
    return {"kind": "transform", "class": PLACE + name, "settings": settings, "records": records}


def _row(rng: random.Random) -> Json:
    return [
        rng.choice([None, -128, 0, 127]),
        rng.choice([None, -(2**15), 5]),
        rng.choice([None, -(2**31), -1, 2**31 - 1, 42]),
        rng.choice([None, -(2**63), -1, 2**40 + 3, 2**63 - 1]),
        rng.choice([None, 0.5, -1.25, 2.0**70]),
        rng.choice([None, 0.1, -0.0, 0.0, 1e300]),
        rng.choice([None, True, False]),
        rng.choice(TEXTS),
        rng.choice([None, "0.00", "-1.25", "12345678901234567890123.45", "42949672.96"]),
        rng.choice([None, 0, 86_400_000, -86_400_000 * 40_000]),
        rng.choice([None, 0, -1, 1_600_000_000_123]),
        rng.choice([None, [], [1, None, -5], [2**40]]),
        rng.choice([None, [], [["a", 1], ["b", None]]]),
        rng.choice([None, [None], [3]]),
    ]


def _cases_of_partitions(rng: random.Random, change: Change, others: list[Json]) -> list[Json]:
    made = []
    for settings in PARTITIONS:
        records: list[Json] = []
        for op in "cudrtmcccudcuc":
            record = change(rng, KINDS, SOURCE, lambda: _row(rng), op)
            record["offset"] = 17 if len(records) == 9 else None
            records.append(record)
        made.append(_case("partitions.PartitionRouting", settings, [*records, *others]))
    return made


def _cases_of_schema_changes(others: list[Json]) -> list[Json]:
    table: Json = {"type": "STRUCT", "fields": [["type", _optional("STRING")], ["id", TEXT]]}
    tables = {"type": "ARRAY", "optional": True, "values": table}
    records = []
    for kinds in (None, [], ["CREATE"], ["ALTER", "CREATE"], ["DROP"], ["TRUNCATE"], [None]):
        changes = None if kinds is None else [[kind, "t"] for kind in kinds]
        records.append(_change_of_schema(tables, changes))
    records.append(_change_of_schema(tables, [["RENAME", "t"]]))
    records.append(_change_of_schema(TEXT, "CREATE"))
    records.append(_change_of_schema(tables, [["CREATE", "t"]], "SchemaChangeKey"))
    records.append(_change_of_schema(tables, [["CREATE", "t"]], "Other"))
    return [_case("SchemaChangeEventFilter", s, [*records, *others]) for s in FILTERS]


def _change_of_schema(tables: Json, changes: Json, name: str = "SchemaChangeValue") -> Json:
    schema = {
        "type": "STRUCT",
        "name": f"io.debezium.connector.mysql.{name}",
        "fields": [["ddl", TEXT], ["tableChanges", tables]],
    }
    return _record(schema, ["create …", changes])


def _cases_of_changed_fields(rng: random.Random, change: Change, others: list[Json]) -> list[Json]:
    def changed() -> Json:
        row = _row(random.Random(3))
        for place in rng.sample(range(len(row)), 5):
            row[place] = _row(rng)[place]
        return row

    made = []
    for settings in CHANGED:
        records = [change(rng, KINDS, SOURCE, changed, op) for op in "cuuuudrt"]
        made.append(_case("ExtractChangedRecordState", settings, [*records, *others]))
    return made


def _cases_of_messages(others: list[Json]) -> list[Json]:
    def message(content: Json, kind: str = "BYTES") -> Json:
        fields = [["prefix", _optional("STRING")], ["content", _optional(kind)]]
        inner = {"type": "STRUCT", "name": "Message", "fields": fields}
        schema = {
            "type": "STRUCT",
            "name": "io.debezium.connector.postgresql.MessageValue",
            "version": 1,
            "fields": [
                ["op", TEXT],
                ["ts_ms", _optional("INT64")],
                ["source", SOURCE],
                ["message", inner],
            ],
        }
        return _record(schema, ["m", 7, ["shop", ""], ["outbox", content]])

    records = [message(b64encode(text.encode()).decode()) for text in CONTENTS]
    records += [message("{}", "STRING"), *others]
    return [
        {"kind": "transform", "class": MESSAGE_CLASS, "settings": settings, "records": records}
        for settings in ({}, {"fields.null.include": "true"})
    ]


def _vectors() -> list[Json]:
    place = "io.debezium.data."
    dense: Json = {"type": "ARRAY", "name": f"{place}DoubleVector", "values": {"type": "FLOAT64"}}
    short: Json = {"type": "ARRAY", "name": f"{place}FloatVector", "values": {"type": "FLOAT32"}}
    sparse: Json = {
        "type": "STRUCT",
        "name": f"{place}SparseDoubleVector",
        "fields": [
            ["dimensions", {"type": "INT16"}],
            ["vector", {"type": "MAP", "keys": {"type": "INT16"}, "values": {"type": "FLOAT64"}}],
        ],
    }
    row: Json = {
        "type": "STRUCT",
        "name": "srv.public.t.Value",
        "version": 3,
        "optional": True,
        "fields": [
            ["id", {"type": "INT32", "default": 4}],
            ["dense", {**dense, "optional": True}],
            ["short", {**short, "optional": True, "doc": "lost"}],
            ["sparse", {**sparse, "optional": True}],
            ["list", {"type": "ARRAY", "optional": True, "values": dense}],
        ],
    }
    needed: Json = {"type": "STRUCT", "fields": [["v", dense], ["inner", row]]}
    rows: list[Json] = [
        [1, [1.0, -0.5, 1e-7], [0.1, 3.25e4], [5, [[4, 0.25], [1, 2.0]]], [[1.5]]],
        [1, [], [], [0, []], []],
        [1, None, None, None, None],
    ]
    return [
        *(_record(row, values) for values in rows),
        *(_record(needed, [[1.25], values]) for values in [*rows, None]),
        _record({"type": "ARRAY", "values": TEXT}, ["a", "b"]),
        _record(TEXT, "text"),
    ]


def _record(schema: Json, value: Json) -> Json:
    return {
        "topic": "t",
        "partition": 2,
        "offset": None,
        "key_schema": TEXT,
        "key": "k",
        "value_schema": schema,
        "value": value,
        "timestamp": 5,
        "headers": [],
    }
