"""The cases that Debezium's transforms have run: a table of settings times random change events."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from support.connect import debezium_more_cases

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
TIME = "io.debezium.time."
MOMENTS: Json = {
    "type": "STRUCT",
    "name": "srv.public.t.Value",
    "optional": True,
    "fields": [
        ["id", {"type": "INT32"}],
        *(
            [name, {"type": kind, "name": TIME + name, "optional": True}]
            for name, kind in (
                ("Timestamp", "INT64"),
                ("MicroTimestamp", "INT64"),
                ("NanoTimestamp", "INT64"),
                ("ZonedTimestamp", "STRING"),
                ("ZonedTime", "STRING"),
                ("Date", "INT32"),
                ("MicroTime", "INT64"),
            )
        ),
        ["connect", {"type": "INT64", "name": "org.apache.kafka.connect.data.Timestamp"}],
        ["dflt", {"type": "INT64", "name": TIME + "Timestamp", "default": 7}],
        ["plain", {"type": "INT64"}],
    ],
}
SOURCE_OF_TABLE: Json = {
    "type": "STRUCT",
    "name": "io.debezium.connector.postgresql.Source",
    "fields": [
        ["db", TEXT],
        ["table", TEXT],
        ["at", {"type": "INT64", "name": TIME + "Timestamp"}],
    ],
}
ZONES: list[dict[str, str]] = [
    *(
        {"converted.timezone": zone}
        for zone in (
            "+05:30",
            "-03:00:15",
            "Z",
            "+00:00",
            "GMT+2",
            "nowhere",
            "",
            "+5",
            "Asia/None",
        )
    ),
    {},
    {"converted.timezone": "-08:00", "include.list": "source:t1"},
    {"converted.timezone": "-08:00", "include.list": "source:other"},
    {"converted.timezone": "-08:00", "include.list": "source:t1:Timestamp"},
    {"converted.timezone": "-08:00", "include.list": "source:t1:Timestamp, connect"},
    {"converted.timezone": "-08:00", "include.list": "topic:srv.public.t1:MicroTimestamp"},
    {"converted.timezone": "-08:00", "include.list": "t1:ZonedTimestamp,t1:connect"},
    {"converted.timezone": "-08:00", "include.list": "source:t1,t1:connect,topic:other"},
    {"converted.timezone": "-08:00", "include.list": "srv.public.t1:before.connect"},
    {"converted.timezone": "-08:00", "include.list": "t1:source.at,t1:after.connect"},
    {"converted.timezone": "-08:00", "include.list": "SOURCE:t1:connect"},
    {"converted.timezone": "-08:00", "include.list": "t1"},
    {"converted.timezone": "-08:00", "include.list": "source:t1:a,source:t1:b"},
    {"converted.timezone": "-08:00", "include.list": "so/urce:t1"},
    {"converted.timezone": "-08:00", "exclude.list": "source:t1"},
    {"converted.timezone": "-08:00", "exclude.list": "source:other"},
    {"converted.timezone": "-08:00", "exclude.list": "topic:srv.public.t1:connect"},
    {"converted.timezone": "-08:00", "exclude.list": "t1:source.at,t1:after.connect"},
    {"converted.timezone": "-08:00", "exclude.list": "t1;:x"},
    {"converted.timezone": "-08:00", "include.list": "source:a", "exclude.list": "source:b"},
]
REGIONS = ("Europe/London", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe", "UTC")
HEADERS: list[dict[str, str]] = [
    {"headers": "h", "fields": "from_h", "operation": "copy"},
    {"headers": "h", "fields": "from_h", "operation": "move"},
    {"headers": "h,drop", "fields": "a,b", "operation": "move"},
    {"headers": "h, drop", "fields": "source.a,b", "operation": "copy"},
    {"headers": "h", "fields": "op.a", "operation": "copy"},
    {"headers": "h", "fields": "missing.a", "operation": "copy"},
    {"headers": "h", "fields": "after.q.b", "operation": "copy"},
    {"headers": "h,h", "fields": "a,b", "operation": "copy"},
    {"headers": "h", "fields": "op", "operation": "copy"},
    {"headers": "absent", "fields": "x", "operation": "move"},
    {"headers": "h", "fields": "a,b", "operation": "move"},
    {"headers": "h", "fields": "a", "operation": "rename"},
    {"headers": "h", "fields": "a"},
    {"fields": "a", "operation": "move"},
    {"headers": "h", "operation": "move"},
    {"headers": "a b", "fields": "a", "operation": "move"},
    {"headers": "h,,i", "fields": "a,b,c", "operation": "move"},
    {"headers": "", "fields": "a", "operation": "move"},
]
COLUMN = "__debezium.source.column."
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
    return [
        *made,
        *_cases_of_moments(rng),
        *_cases_of_headers(rng),
        *_cases_of_columns(rng),
        *debezium_more_cases.cases(rng, _change, [_tombstone(rng), _plain(rng)]),
    ]


def _case(name: str, settings: dict[str, str], records: list[Json]) -> Json:
    return {"kind": "transform", "class": PLACE + name, "settings": settings, "records": records}


def _change(rng: random.Random, row: Json, source: Json, make: Callable[[], Json], op: str) -> Json:
    """A change event with rows that `make` gives."""
    schema = {
        "type": "STRUCT",
        "name": "srv.public.t.Envelope",
        "version": 2,
        "doc": "of a table",
        "fields": [["before", row], ["after", row], ["source", source], ["op", TEXT]],
    }
    before, after = (make() if op in "ud" else None), (make() if op in "cur" else None)
    told = ["shop", "t1", 1_600_000_000_000][: len(source["fields"])]
    return _record(rng, schema, [before, after, told, op])


def _cases_of_moments(rng: random.Random) -> list[Json]:
    made = []
    for settings in [*ZONES, *({"converted.timezone": zone} for zone in REGIONS)]:
        has_times = settings.get("converted.timezone") not in REGIONS[:-1]  # today's offset counts

        def row(has_times: bool = has_times) -> Json:
            return _moments(rng, has_times=has_times)

        records = [_change(rng, MOMENTS, SOURCE_OF_TABLE, row, op) for op in "cudcut"]
        records += [_event(rng, "u", is_outbox=False), _tombstone(rng), _plain(rng)]
        made.append(_case("TimezoneConverter", settings, records))
    return made


def _moments(rng: random.Random, *, has_times: bool) -> Json:
    second = rng.choice([0, -1, 1_711_846_800, 1_729_990_800, rng.randrange(-(10**10), 10**10)])
    micro = second * 1_000_000 + rng.choice([0, 1, 999_999])
    zoned = rng.choice(
        [
            None,
            "2024-03-31T01:30:00Z",
            "2024-10-27T00:30:00.5+01:00",
            "1969-12-31T23:59:59.123456789-11:30",
            "2020-02-29t12:00z",
            "0001-01-02T00:00:00.120Z",
        ]
    )
    times = [None, "10:00:00Z", "23:59:59.25+05:30", "00:00-12:00:30"]
    return [
        rng.randrange(100),
        rng.choice([None, micro // 1000]),
        rng.choice([None, micro]),
        rng.choice([None, micro % 10**15 * 1000 + 7]),
        zoned,
        rng.choice(times) if has_times else None,
        19_000,
        5,
        micro // 1000,
        rng.choice([None, 8]),
        micro,
    ]


def _cases_of_headers(rng: random.Random) -> list[Json]:
    made = []
    for settings in HEADERS:
        records = [_event(rng, op, is_outbox=False) for op in "cud"]
        for record in records:  # Debezium keeps the schema that the first record's headers make
            record["headers"] = _record(random.Random(1), None, None)["headers"]
        records += [_tombstone(rng), _plain(rng)]
        made.append(_case("HeaderToValue", settings, records))
    return made


def _cases_of_columns(rng: random.Random) -> list[Json]:
    made = []
    for missing in ("", "type", "name"):
        parameters = {
            "id": {"name": "id", "type": "INT4", "length": "10", "scale": "0"},
            "amount": {"name": "amount", "type": "NUMERIC", "comment": "in cents"},
        }
        for told in parameters.values():
            told.pop(missing, None)
        fields = [
            [
                name,
                {
                    "type": "INT32",
                    "parameters": {COLUMN + key: text for key, text in told.items()},
                },
            ]
            for name, told in parameters.items()
        ]
        row = {"type": "STRUCT", "name": "srv.public.t.Value", "optional": True, "fields": fields}
        records = [
            _change(rng, row, SOURCE_OF_TABLE, lambda: [rng.randrange(9), 5], op) for op in "cudt"
        ]
        records += [_event(rng, "u", is_outbox=False), _tombstone(rng), _plain(rng)]
        made.append(_case("ExtractSchemaToNewRecord", {}, records))
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
