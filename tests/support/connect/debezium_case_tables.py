"""The cases that Debezium's transforms have run: a table of settings times random change events."""

from __future__ import annotations

import random
from typing import Any

Json = Any
PLACE = "io.debezium.transforms."
TEXT: Json = {"type": "STRING"}
OPTIONAL_TEXT: Json = {"type": "STRING", "optional": True}
LONG: Json = {"type": "INT64"}
OPTIONAL_LONG: Json = {"type": "INT64", "optional": True}
SOURCE: Json = {
    "type": "STRUCT",
    "name": "io.debezium.connector.postgresql.Source",
    "fields": [["connector", TEXT], ["db", TEXT], ["ts_ms", LONG], ["lsn", OPTIONAL_LONG]],
}
TRANSACTION: Json = {
    "type": "STRUCT",
    "name": "event.block",
    "optional": True,
    "fields": [["id", TEXT], ["total_order", LONG]],
}
ROW: Json = {
    "type": "STRUCT",
    "name": "srv.public.t.Value",
    "optional": True,
    "fields": [
        ["id", {"type": "INT32"}],
        ["name", OPTIONAL_TEXT],
        ["kind", {"type": "STRING", "default": "plain"}],
        ["size", {"type": "INT32", "optional": True, "default": 3}],
    ],
}
MICROS: Json = {"type": "INT64", "name": "io.debezium.time.MicroTimestamp", "optional": True}
OUTBOX: Json = {
    "type": "STRUCT",
    "name": "srv.public.outbox.Value",
    "optional": True,
    "fields": [
        ["id", TEXT],
        ["aggregatetype", TEXT],
        ["aggregateid", TEXT],
        ["type", TEXT],
        ["payload", OPTIONAL_TEXT],
        ["at", MICROS],
        ["version", {"type": "INT32"}],
        ["shard", {"type": "INT32", "optional": True}],
    ],
}
KEY: Json = {"type": "STRUCT", "name": "srv.public.t.Key", "fields": [["id", {"type": "INT32"}]]}
MODES = ("drop", "tombstone", "rewrite", "rewrite-with-tombstone", "delete-to-tombstone")

UNWRAP: list[dict[str, str]] = [
    {},
    *({"delete.tombstone.handling.mode": mode} for mode in MODES),
    {"add.fields": "op,source.ts_ms,db,ts_ms"},
    {"add.fields": "op:what,source.lsn:pos,total_order,none", "add.fields.prefix": ""},
    {"add.headers": "op,source.db:database,ts_ms", "add.headers.prefix": "h."},
    {"route.by.field": "name"},
    {
        "delete.tombstone.handling.mode": "rewrite",
        "add.fields": "op",
        "add.headers": "op",
        "route.by.field": "kind",
    },
    {"drop.fields.header.name": "drop"},
    {
        "drop.fields.header.name": "drop",
        "drop.fields.from.key": "true",
        "drop.fields.keep.schema.compatible": "false",
    },
    {"delete.tombstone.handling.mode": "rewrite", "replace.null.with.default": "false"},
]
ROUTE: list[dict[str, str]] = [
    {},
    {"table.fields.additional.placement": "type:header:eventType,version:header"},
    {"table.fields.additional.placement": "type:envelope,version:envelope:v,shard:partition"},
    {"table.field.event.timestamp": "at", "route.topic.replacement": "ev.${routedByValue}.x"},
    {"table.field.event.key": "type", "table.field.event.payload": "aggregateid"},
    {"table.expand.json.payload": "true"},
    {
        "table.expand.json.payload": "true",
        "table.json.payload.null.behavior": "optional_bytes",
        "table.fields.additional.placement": "type:envelope",
    },
    {"route.tombstone.on.empty.payload": "true"},
    {"table.op.invalid.behavior": "fatal"},
    {"table.field.event.payload": "none"},
    {"table.field.event.id": "none"},
    {"table.field.event.timestamp": "version"},
    {"route.topic.regex": "order(.*)", "route.topic.replacement": "orders$1"},
    {
        "table.fields.additional.placement": "none:header",
        "table.fields.additional.error.on.missing": "false",
    },
    {
        "table.field.event.schema.version": "version",
        "table.fields.additional.placement": "type:envelope",
    },
]
TABLES: list[dict[str, str]] = [
    {"topic.regex": "(.*)\\.t(.*)", "topic.replacement": "$1.all"},
    {"topic.regex": "other", "topic.replacement": "x"},
    {
        "topic.regex": "(.*)",
        "topic.replacement": "my-$1",
        "key.field.regex": ".*\\.(t.*)",
        "key.field.replacement": "table-$1",
    },
    {"topic.regex": "(.*)", "topic.replacement": "a", "key.enforce.uniqueness": "false"},
    {
        "topic.regex": "(.*)",
        "topic.replacement": "1-$1",
        "schema.name.adjustment.mode": "avro",
    },
]
PAYLOADS = [
    *("", " ", "text", "{", "null", "7", "{}", '{"a":1}', '{"a":1.5,"b":[1,2]}'),
    '{"a":{"b":[{"c":1},{"c":2}],"n":null},"l":5000000000,"t":true,"e":[]}',
    '{"a":[1,"x"]}',
    None,
]


def cases() -> list[Json]:
    """All cases."""
    rng = random.Random(16)
    made = []
    for name, table, is_outbox in (
        ("ExtractNewRecordState", UNWRAP, False),
        ("outbox.EventRouter", ROUTE, True),
        ("ByLogicalTableRouter", TABLES, False),
    ):
        for settings in table:
            records = [_event(rng, op, is_outbox=is_outbox) for op in "ccudrt"]
            if is_outbox:
                records += [_event(rng, "c", is_outbox=True) for _ in range(12)]
            records += [_tombstone(rng), _plain(rng)]
            made.append(
                {
                    "kind": "transform",
                    "class": PLACE + name,
                    "settings": settings,
                    "records": records,
                }
            )
    return made


def _event(rng: random.Random, op: str, *, is_outbox: bool) -> Json:
    row = OUTBOX if is_outbox else ROW
    make = _outbox_row if is_outbox else _row
    schema = {
        "type": "STRUCT",
        "name": "srv.public.t.Envelope",
        "version": 1,
        "fields": [
            ["before", row],
            ["after", row],
            ["source", SOURCE],
            ["transaction", TRANSACTION],
            ["op", TEXT],
            ["ts_ms", OPTIONAL_LONG],
        ],
    }
    value = [
        make(rng) if op in "ud" else None,
        make(rng) if op in "cur" else None,
        ["postgresql", "shop", 1_600_000_000_000, rng.choice([None, 42])],
        rng.choice([None, ["tx", 2]]),
        op,
        1_600_000_000_500,
    ]
    record = _record(rng, schema, value)
    if is_outbox:
        record["offset"] = None  # Java has no sink's record without a partition
    return record


def _row(rng: random.Random) -> Json:
    name = rng.choice([None, "topic-of-row", "", "x"])
    return [rng.randrange(100), name, rng.choice(["k", "plain"]), rng.choice([None, 3, 4])]


def _outbox_row(rng: random.Random) -> Json:
    return [
        "e1",
        "order",  # Debezium keeps the schema's name of the first it sees
        "o7",
        "Created",
        rng.choice(PAYLOADS),
        rng.choice([None, 1_600_000_000_123_456]),
        rng.choice([1, 2]),
        rng.choice([None, 3]),
    ]


def _record(rng: random.Random, schema: Json, value: Json) -> Json:
    headers = [{"key": "h", "schema": TEXT, "value": "v"}]
    if rng.random() < 0.6:
        names = {"type": "ARRAY", "values": TEXT}
        headers.append({"key": "drop", "schema": names, "value": ["name", "size", "id"]})
    return {
        "topic": "srv.public.t1",  # Debezium keeps names of schemas of the first it sees
        "partition": 0,
        "offset": rng.choice([None, 17]),
        "key_schema": KEY,
        "key": [rng.randrange(100)],
        "value_schema": schema,
        "value": value,
        "timestamp": None,
        "headers": headers,
    }


def _tombstone(rng: random.Random) -> Json:
    return _record(rng, None, None)


def _plain(rng: random.Random) -> Json:
    return _record(rng, {"type": "STRUCT", "fields": [["a", TEXT]]}, ["x"])
