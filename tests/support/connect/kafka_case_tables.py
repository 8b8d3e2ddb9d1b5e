"""The cases that Kafka's transforms, predicates and converters have run: a table of settings times
random records, from one seed."""

from __future__ import annotations

import random
from base64 import b64encode
from typing import Any

Json = Any
PLACE = "org.apache.kafka.connect."
TRANSFORMS = PLACE + "transforms."
DATA = PLACE + "data."
RECORDS_PER_CASE = 6

DECIMAL = {"type": "BYTES", "name": DATA + "Decimal", "version": 1, "parameters": {"scale": "2"}}
DATE = {"type": "INT32", "name": DATA + "Date", "version": 1}
TIME = {"type": "INT32", "name": DATA + "Time", "version": 1}
TIMESTAMP = {"type": "INT64", "name": DATA + "Timestamp", "version": 1}
NUMBERS = ("INT8", "INT16", "INT32", "INT64", "FLOAT32", "FLOAT64")
DAY_MS = 86_400_000
STRINGS = ["", "a", "true", "12", "-7", "1.5", "1e3", "2020-02-30", "x y", 'q"\\', "ü", "300"]

SETTINGS: dict[str, list[dict[str, str]]] = {
    "Cast": [
        *({"spec": kind} for kind in ("int8", "int64", "float32", "string", "boolean")),
        {"spec": "id:string,n:int8,f:int32,flag:int16"},
        {"spec": "n:boolean,s:float64,f:float32,data:string"},
        {"spec": "s:int32", "replace.null.with.default": "false"},
        {"spec": "at:int64,day:int32,clock:int32,ts:string"},
        {"spec": "at:string,day:string,clock:string,amount:string"},
        {"spec": "amount:float64,inner:int8"},
        {"spec": "n:int64,d:string", "replace.null.with.default": "false"},
        {"spec": "nothing"},
        {"spec": "map"},
        *({"spec": spec} for spec in ("", "id:int8,id:int8", "x:bytes", "x:y:z", "int8,x:int8")),
    ],
    "ExtractField": [
        {"field": "id"},
        {"field": "n", "replace.null.with.default": "false"},
        {"field": "inner.a", "field.syntax.version": "V2"},
        {"field": "inner.deep.z", "field.syntax.version": "v2"},
        {"field": "inner.a"},
        {"field": "inner.none", "field.syntax.version": "V2"},
        {"field": "id.x", "field.syntax.version": "V2"},
        {"field": "`dotted.name`", "field.syntax.version": "V2"},
        {"field": "`dotted.name", "field.syntax.version": "V2"},
        {"field": "x", "field.syntax.version": "V3"},
        {},
    ],
    "Flatten": [{}, {"delimiter": "_"}, {"delimiter": ""}],
    "HeaderFrom": [
        {"fields": "id", "headers": "h", "operation": "move"},
        {"fields": "id,n", "headers": "h,h", "operation": "copy"},
        {"fields": "n", "headers": "x", "operation": "move", "replace.null.with.default": "false"},
        {"fields": "none", "headers": "h", "operation": "copy"},
        {"fields": "id,n", "headers": "h", "operation": "copy"},
        {"fields": "id", "headers": "h", "operation": "steal"},
        {"fields": "", "headers": "h", "operation": "move"},
    ],
    "HoistField": [{"field": "all"}, {}],
    "InsertField": [
        {"topic.field": "topic", "partition.field": "p?", "timestamp.field": "time!"},
        {"offset.field": "o!", "static.field": "fixed", "static.value": "v"},
        {"topic.field": "id"},
        {"static.field": "fixed!", "static.value": "v", "replace.null.with.default": "false"},
        {"partition.field": "p!"},
        {"static.field": "fixed"},
        {},
    ],
    "MaskField": [
        {"fields": "id,n,f,flag,s"},
        {"fields": "data"},
        {"fields": "inner"},
        {"fields": "list,map,at,day,amount"},
        {"fields": "id,n,f,s", "replacement": "42"},
        {"fields": "n", "replacement": "x"},
        {"fields": "flag", "replacement": "1"},
        {"fields": "id", "replacement": "3.7"},
        {"fields": "n", "replacement": "4711", "replace.null.with.default": "false"},
        {"fields": "id", "replacement": ""},
        {"fields": ""},
        {"fields": "id,id"},
    ],
    "ReplaceField": [
        {"exclude": "id,inner"},
        {"include": "id,n,none"},
        {"include": "id,n", "exclude": "id"},
        {"renames": "id:key,n:id"},
        {"renames": "id:key", "exclude": "s,f", "replace.null.with.default": "false"},
        {"renames": "id:n"},
        {"include": "id,id"},
        {"exclude": "id,,id"},
        {"renames": "id:a,id:a"},
        {"renames": "id"},
        {"renames": "a:b:c"},
        {},
    ],
    "SetSchemaMetadata": [
        {"schema.name": "my.Name"},
        {"schema.name": "my.Name", "schema.version": "7", "replace.null.with.default": "false"},
        {"schema.version": "x"},
        {},
    ],
    "TimestampConverter": [
        *(
            {"field": field, "target.type": target, "format": pattern}
            for field, pattern in (("ts", ""), ("at", "yyyy-MM-dd"), ("s", "yyyy-MM-dd HH:mm"))
            for target in ("string", "unix", "Date", "Time", "Timestamp")
        ),
        *(
            {"field": "ts", "target.type": "unix", "unix.precision": unit}
            for unit in ("seconds", "microseconds", "nanoseconds")
        ),
        *(
            {"field": "ts", "target.type": "Timestamp", "unix.precision": unit}
            for unit in ("seconds", "microseconds", "nanoseconds")
        ),
        {"target.type": "string", "format": "EEE, d MMM yyyy HH:mm:ss Z"},
        {"target.type": "Timestamp", "format": "yyyy-MM-dd"},
        {"field": "at", "target.type": "unix", "replace.null.with.default": "false"},
        {"field": "n", "target.type": "Timestamp"},
        {"target.type": "year"},
        {"target.type": "unix", "unix.precision": "hours"},
        {"target.type": "string", "format": "bad pattern"},
    ],
}
PLAIN_SETTINGS: dict[str, list[dict[str, str]]] = {
    "DropHeaders": [{"headers": "h"}, {"headers": "h,h"}, {"headers": "h,g"}, {"headers": ""}, {}],
    "Filter": [{}],
    "InsertHeader": [
        *(
            {"header": "new", "value.literal": text}
            for text in ("x", "12", "[1,2]", '{"a":1}', "null", "2020-01-02", "")
        ),
        {"header": "new"},
    ],
    "RegexRouter": [
        {"regex": "topic-(.*)", "replacement": "new-$1"},
        {"regex": "(?<p>t[a-z]+)-.*", "replacement": "${p}"},
        {"regex": "other", "replacement": "x"},
        {"regex": ".*", "replacement": "$2"},
        {"regex": "(", "replacement": "x"},
        {"replacement": "x"},
    ],
    "TimestampRouter": [
        {},
        {"topic.format": "a.${timestamp}.${topic}", "timestamp.format": "yyyy-MM-dd'T'HH"},
        {"timestamp.format": "yy D w u a hh EEE MMM"},
        {"timestamp.format": "b"},
    ],
    "ValueToKey": [
        {"fields": "id"},
        {"fields": "n,id"},
        {"fields": "n", "replace.null.with.default": "false"},
        {"fields": "none"},
        {"fields": "id,id"},
        {"fields": ""},
    ],
}
PREDICATES: dict[str, list[dict[str, str]]] = {
    "HasHeaderKey": [{"name": "h"}, {"name": ""}, {}],
    "RecordIsTombstone": [{}],
    "TopicNameMatches": [{"pattern": "topic-.*"}, {"pattern": "t"}, {"pattern": "["}, {}],
}
MOMENT_TEXTS = ["2020-02-03", "2020-2-3 4:5", "2021-12-31 23:59", "1970-01-01 00:00", "soon", ""]
MOMENT_PATTERNS = [
    "yyyy-MM-dd'T'HH:mm:ss.SSSX",
    "yyyyMMddHHmmss",
    "yy/M/d h:mm a",
    "EEEE, MMMM d, yyyy G",
    "D yyyy",
    "k:m:s.S z",
    "dd MMM yyyy HH:mm:ss Z",
    "YYYY-'W'ww-u",
    "'o''clock' K",
    "W F E",
]


def cases() -> list[Json]:
    """All cases."""
    rng = random.Random(15)
    made = [*_definitions(), *_transforms(rng), *_moments(rng), *_conversions(rng), *_headers(rng)]
    for name, table in PREDICATES.items():
        for settings in table:
            one = f"{TRANSFORMS}predicates.{name}"
            made.append(_case("predicate", one, settings, records=_records(rng)))
    return made


def _case(kind: str, name: str, settings: dict[str, str], **rest: Json) -> Json:
    return {"kind": kind, "class": name, "settings": settings, **rest}


def _definitions() -> list[Json]:
    names = [
        *(f"{TRANSFORMS}{name}$Value" for name in SETTINGS),
        *(TRANSFORMS + name for name in PLAIN_SETTINGS),
        *(f"{TRANSFORMS}predicates.{name}" for name in PREDICATES),
        PLACE + "json.JsonConverter",
        PLACE + "storage.StringConverter",
        PLACE + "storage.SimpleHeaderConverter",
        *(f"{PLACE}converters.{kind}Converter" for kind in ("Boolean", "Long", "ByteArray")),
    ]
    return [_case("definition", name, {}) for name in names]


def _transforms(rng: random.Random) -> list[Json]:
    made = []
    for name, table in SETTINGS.items():
        for place, settings in enumerate(table):
            side = "Key" if place % 4 == 3 else "Value"
            made.append(
                _case("transform", f"{TRANSFORMS}{name}${side}", settings, records=_records(rng))
            )
    for name, table in PLAIN_SETTINGS.items():
        made += [
            _case("transform", TRANSFORMS + name, settings, records=_records(rng))
            for settings in table
        ]
    return made


def _moments(rng: random.Random) -> list[Json]:
    """Texts of moments, written by SimpleDateFormat, and read."""
    made = []
    name = TRANSFORMS + "TimestampConverter$Value"
    for pattern in MOMENT_PATTERNS:
        numbers = [rng.randrange(-(10**12), 3 * 10**12) for _ in range(4)]
        records = [_record(rng, {"type": "INT64"}, number) for number in [0, *numbers]]
        settings = {"target.type": "string", "format": pattern}
        made.append(_case("transform", name, settings, records=records))
    reads = [
        ("yyyy-MM-dd'T'HH:mm:ss.SSSX", ["2020-01-02T03:04:05.678Z", "2020-01-02T03:04:05.6+02:00"]),
        ("yyyyMMddHHmmss", ["20200102030405", "2020010203040", "20201332256199"]),
        ("yyyy-MM-dd", ["2020-1-2", "20-01-02", "2020-00-00", "2020-14-40x", " 2020-01-02"]),
        ("d MMM yyyy h:mm a", ["3 Feb 2021 12:30 am", "3 february 2021 1:5 PM", "3 X 2021 1:1 AM"]),
        ("D yyyy", ["60 2020", "366 2021"]),
        ("HH:mm z", ["12:30 UTC", "12:30 GMT+01:00", "12:30 +0130"]),
    ]
    for pattern, texts in reads:
        records = [_record(rng, {"type": "STRING"}, text) for text in texts]
        settings = {"target.type": "unix", "format": pattern}
        made.append(_case("transform", name, settings, records=records))
    return made


def _records(rng: random.Random) -> list[Json]:
    """Records with and without schemas, tombstones, and values that are not structs."""
    schema = _struct_schema(rng)
    shapes: list[tuple[Json, Json]] = [
        (schema, _value(rng, schema)),
        (schema, _value(rng, schema)),
        (None, _untyped_struct(rng)),
        (schema | {"optional": True}, None) if rng.random() < 0.5 else (None, None),
        _plain(rng),
        (None, rng.choice([{"long": 300}, {"double": 2.5}, "12", True, {"list": [{"long": 1}]}])),
    ]
    assert len(shapes) == RECORDS_PER_CASE
    return [_record(rng, schema, value) for schema, value in shapes]


def _record(rng: random.Random, schema: Json, value: Json) -> Json:
    """A record whose key is like its value."""
    headers = [
        {"key": key, "schema": {"type": "STRING"}, "value": "v"}
        for key in rng.sample(["h", "g", "h2"], rng.randrange(3))
    ]
    return {
        "topic": rng.choice(["topic-a", "tb"]),
        "partition": rng.choice([0, 3]),
        "offset": rng.choice([None, 17]),
        "key_schema": schema,
        "key": value,
        "value_schema": schema,
        "value": value,
        "timestamp": rng.choice([None, 0, 1_600_000_000_123, 1_600_000_000_123]),
        "headers": headers,
    }


def _plain(rng: random.Random) -> tuple[Json, Json]:
    schema = rng.choice(
        [
            *({"type": kind} for kind in (*NUMBERS, "STRING", "BOOLEAN", "BYTES")),
            *(TIMESTAMP, DATE, TIME, DECIMAL),
            {"type": "STRING", "optional": True},
        ]
    )
    return schema, _value(rng, schema)


def _struct_schema(rng: random.Random) -> Json:
    deep = {"type": "STRUCT", "fields": [["z", {"type": "INT64", "optional": True}]]}
    inner = {
        "type": "STRUCT",
        "optional": rng.random() < 0.5,
        "fields": [["a", {"type": "STRING"}], ["deep", deep | {"optional": True}]],
    }
    ts: Json = rng.choice([TIMESTAMP, {"type": "INT64"}, {"type": "STRING"}, DATE, TIME])
    fields: list[list[Json]] = [
        ["id", {"type": rng.choice(NUMBERS)}],
        ["n", {"type": "INT32", "default": 7, "optional": rng.random() < 0.5}],
        ["f", {"type": "FLOAT64", "optional": True}],
        ["s", {"type": "STRING", "optional": rng.random() < 0.5}],
        ["flag", {"type": "BOOLEAN", "optional": True}],
        ["ts", ts | {"optional": rng.random() < 0.3}],
        ["at", {**TIMESTAMP, **({"default": 86_400_000} if rng.random() < 0.3 else {})}],
        ["day", DATE],
        ["clock", TIME],
        ["d", {"type": "STRING", "default": "dflt"}],
    ]
    extra = [
        ["data", {"type": "BYTES"}],
        ["amount", DECIMAL],
        ["inner", inner],
        ["list", {"type": "ARRAY", "values": {"type": "INT32"}}],
        ["dotted.name", {"type": "STRING", "optional": True}],
    ]
    fields += rng.sample(extra, rng.randrange(len(extra)))
    if rng.random() < 0.2:
        fields.append(["map", {"type": "MAP", "keys": {"type": "STRING"}, "values": inner}])
    schema: Json = {"type": "STRUCT", "fields": fields}
    if rng.random() < 0.5:
        schema |= {"name": "a.Name", "version": 2, "doc": "d", "parameters": {"k": "v"}}
    return schema


def _value(rng: random.Random, schema: Json) -> Json:
    can_be_null = schema.get("optional") or "default" in schema
    if can_be_null and rng.random() < 0.3:
        return None
    name = schema.get("name", "").removeprefix(DATA)
    if name in ("Timestamp", "Date", "Time"):
        ms = rng.choice([0, 1, DAY_MS, 1_600_000_000_123, rng.randrange(2**41)])
        days = ms // DAY_MS * DAY_MS
        return {"Timestamp": ms, "Date": days, "Time": ms - days}[name]
    if name == "Decimal":
        return f"{rng.choice(['', '-'])}{rng.randrange(10**6)}.{rng.randrange(100):02}"
    match schema["type"]:
        case "INT8" | "INT16" | "INT32" | "INT64":
            bits = int(schema["type"][3:]) - 1
            return rng.choice([0, 1, -1, 2**bits - 1, -(2**bits), rng.randrange(2**bits)])
        case "FLOAT32":
            return rng.choice([0.0, 1.5, -300.25, 65536.0, 0.10000000149011612])
        case "FLOAT64":
            return rng.choice([0.0, 1.5, -300.7, 1e10, 0.0001, 1e300, 0.1])
        case "BOOLEAN":
            return rng.random() < 0.5
        case "STRING":
            return rng.choice(STRINGS + MOMENT_TEXTS)
        case "BYTES":
            return b64encode(rng.randbytes(3)).decode()
        case "ARRAY":
            return [_value(rng, schema["values"]) for _ in range(rng.randrange(3))]
        case "MAP":
            return [[key, _value(rng, schema["values"])] for key in ("k", "l")[: rng.randrange(3)]]
    return [_value(rng, inner) for _, inner in schema["fields"]]


def _untyped_struct(rng: random.Random) -> Json:
    entries: list[list[Json]] = [
        ["id", {"long": rng.randrange(1000)}],
        ["n", rng.choice([None, {"long": 5}, {"double": 1.25}, "17", "x"])],
        ["f", {"double": rng.choice([0.5, 1e10, -3.0])}],
        ["s", rng.choice(STRINGS + MOMENT_TEXTS)],
        ["flag", rng.random() < 0.5],
        ["ts", rng.choice([{"long": 1_600_000_000_123}, {"moment": 1_600_000_000_123}, "x"])],
        ["inner", {"map": [["a", "v"], ["deep", {"map": [["z", {"long": 1}]]}]]}],
        ["list", {"list": [{"long": 1}, None]}],
        ["data", {"bytes": "AAH/"}],
    ]
    return {"map": rng.sample(entries, rng.randrange(4, len(entries) + 1))}


def _conversions(rng: random.Random) -> list[Json]:
    made = []
    name = PLACE + "json.JsonConverter"
    tables: list[dict[str, str]] = [
        {},
        {"schemas.enable": "false"},
        {"decimal.format": "numeric"},
        {"schemas.enable": "false", "decimal.format": "NUMERIC"},
        {"replace.null.with.default": "false"},
        {"decimal.format": "x"},
    ]
    for settings in tables:
        steps = []
        for _ in range(12):
            schema = rng.choice([_struct_schema(rng), _plain(rng)[0]])
            steps.append({"schema": schema, "value": _value(rng, schema)})
        steps += [
            {"schema": None, "value": value}
            for value in (
                *(None, {"long": 1}, {"double": 1e10}, "a\x1f\u20ac/", True, {"bytes": "AAH/"}),
                {"list": [{"long": 1}, None, "x"]},
                {"map": [["a", None]]},
                {"decimal": "1.5"},
                {"moment": 0},
            )
        ]
        steps += [
            {"schema": {"type": kind}, "value": {"any": "text"}}
            for kind in (*NUMBERS, "BOOLEAN", "BYTES", "ARRAY", "MAP", "STRUCT")
            if kind != "STRUCT"
        ]
        steps.append({"schema": {"type": "INT32"}, "value": None})
        steps.append({"schema": {"type": "INT32", "optional": True}, "value": None})
        made.append(_case("converter", name, settings, steps=steps))
    for content in (_INT, '{"type":"int32"', '{"type":"x"}', "", '{"type":"string"}'):
        fixed = {"schema.content": content}
        steps = [{"data": _base64(text)} for text in ("5", '"x"', "null", _JSON[-1])]
        made.append(_case("converter", name, fixed, steps=steps))
    made += [
        _case("converter", name, settings, steps=[{"data": _base64(text)} for text in _JSON])
        for settings in tables[:5]
    ]
    plain: list[Json] = [
        {"data": None},
        *({"data": data} for data in ("", "AA==", "AQ==", "AAAAAQ==", "/w==")),
    ]
    for kind in ("Boolean", "Short", "Integer", "Long", "Float", "Double", "ByteArray"):
        steps = [
            *plain,
            {"schema": None, "value": "x"},
            {"schema": {"type": "STRING"}, "value": "x"},
            {"schema": {"type": "BOOLEAN"}, "value": True},
            {"schema": None, "value": None},
        ]
        made.append(_case("converter", f"{PLACE}converters.{kind}Converter", {}, steps=steps))
    texts: list[Json] = [
        *plain,
        *({"schema": (s := _plain(rng)[0]), "value": _value(rng, s)} for _ in range(20)),
        {"schema": (s := _struct_without_bytes(rng)), "value": _value(rng, s)},
    ]
    texts = [step for step in texts if (step.get("schema") or {}).get("type") != "BYTES"]
    made.append(_case("converter", PLACE + "storage.StringConverter", {}, steps=texts))
    latin = {"converter.encoding": "ISO-8859-1"}
    steps = [{"schema": {"type": "STRING"}, "value": "ü€"}, {"data": "/A=="}]
    made.append(_case("converter", PLACE + "storage.StringConverter", latin, steps=steps))
    return made


def _struct_without_bytes(rng: random.Random) -> Json:
    schema = _struct_schema(rng)
    kept = [pair for pair in schema["fields"] if pair[1]["type"] not in ("BYTES", "MAP")]
    return schema | {"fields": kept}


def _base64(text: str) -> str:
    return b64encode(text.encode()).decode()


_INT = '{"type":"int32","optional":true}'
_JSON = [
    "",
    "null",
    "1",
    "01",
    "1 2",
    "[1",
    "tru",
    '{"a":1,"a":2}',
    '{"a":1.5,"b":[1,null,"x",true,12345678901234567890,1e400]}',
    "NaN",
    '"\\u00e9"',
    '{"schema":null,"payload":{"a":[1.5]}}',
    '{"schema":null,"payload":1,"x":2}',
    *(
        f'{{"schema":{_INT},"payload":{p}}}'
        for p in ("5", "null", '"x"', "1.9", "3000000000", "[]")
    ),
    *(
        f'{{"schema":{{"type":"{kind}"}},"payload":{payload}}}'
        for kind in ("int8", "int64", "float", "double", "boolean", "string", "bytes")
        for payload in ("300", "1.5", '"AAA="', "true", "null", '"!"', "{}")
    ),
    '{"schema":{"type":"array"},"payload":[]}',
    f'{{"schema":{{"type":"array","items":{_INT}}},"payload":[1,null,"x"]}}',
    f'{{"schema":{{"type":"array","items":{_INT}}},"payload":{{"a":1}}}}',
    (
        f'{{"schema":{{"type":"map","keys":{{"type":"string"}},"values":{_INT}}},'
        '"payload":{"a":1}}'
    ),
    f'{{"schema":{{"type":"map","keys":{{"type":"string"}},"values":{_INT}}},"payload":[]}}',
    f'{{"schema":{{"type":"map","keys":{_INT},"values":{_INT}}},"payload":[[1,2],[3,null]]}}',
    f'{{"schema":{{"type":"map","keys":{_INT},"values":{_INT}}},"payload":{{}}}}',
    f'{{"schema":{{"type":"map","keys":{_INT},"values":{_INT}}},"payload":[1]}}',
    f'{{"schema":{{"type":"map","keys":{_INT},"values":{_INT}}},"payload":[[1]]}}',
    f'{{"schema":{{"type":"map","keys":{_INT}}},"payload":{{}}}}',
    f'{{"schema":{{"type":"map","values":{_INT}}},"payload":{{}}}}',
    '{"schema":{"type":"struct"},"payload":{}}',
    '{"schema":{"type":"struct","fields":[{"type":"int32"}]},"payload":{}}',
    '{"schema":{"type":"struct","fields":[{"type":"string","field":"s"}]},"payload":{"s":1}}',
    '{"schema":{"type":"struct","fields":[{"type":"string","field":"s"}]},"payload":{}}',
    '{"schema":{"type":"struct","fields":[]},"payload":[]}',
    (
        '{"schema":{"type":"struct","name":"n","version":3,"doc":"d","parameters":{"a":"b"},'
        '"fields":[{"type":"int32","default":4,"field":"x"},'
        '{"type":"string","optional":true,"default":"q","field":"y"}]},"payload":{"y":null}}'
    ),
    '{"schema":{"type":"int32","parameters":{"a":1}},"payload":1}',
    '{"schema":{"type":"int32","default":"x"},"payload":null}',
    '{"schema":{"type":"int32","default":null},"payload":1}',
    '{"schema":{"type":7},"payload":1}',
    '{"schema":{"type":"number"},"payload":1}',
    *(
        f'{{"schema":{{"type":"{kind}","name":"{DATA}{name}"{rest}}},"payload":{payload}}}'
        for kind, name, rest in (
            ("bytes", "Decimal", ',"parameters":{"scale":"2"}'),
            ("bytes", "Decimal", ""),
            ("int32", "Date", ""),
            ("int32", "Time", ""),
            ("int64", "Timestamp", ""),
        )
        for payload in ("5", "1.50", '"AAA="', "true", '"!"', "3000000000")
        if (name, payload) != ("Time", "3000000000")
    ),
]


def _headers(rng: random.Random) -> list[Json]:
    name = PLACE + "storage.SimpleHeaderConverter"
    steps: list[Json] = [{"data": _base64(text)} for text in _HEADER_TEXTS]
    for _ in range(20):
        schema = rng.choice([_plain(rng)[0], _struct_schema(rng)])
        steps.append({"schema": schema, "value": _value(rng, schema)})
    steps += [
        {"schema": None, "value": value}
        for value in (None, "a", {"long": 1}, {"list": ['x"', None]}, {"map": [["a", True]]})
    ]
    return [_case("header", name, {}, steps=steps)]


_HEADER_TEXTS = [
    *("", " ", "a", "true", "false", "null", " true ", "true}", "1", "-1", "+5", "128", "40000"),
    *("3000000000", "9223372036854775808", "1.0", "1.5", "-1e3", "1e40", "1e400", "0x1", "1.5f"),
    *("2020-01-02", "2020-1-2", "2020-13-40", "12:34:56.789Z", "2020-01-02T03:04:05.006Z"),
    *("2020-01-02T03:04:05", "[]", "[1]", "[1,2,300]", "[1, 2.5]", "[1,a]", "[1,", "[,]", "[1,,2]"),
    *('["a","b"]', '["a",1]', "[null]", "[null,1]", "[[1],[2]]", '["2020-01-02"]', "[true,1]"),
    *("{}", '{"a":1}', '{"a":1,"b":2.5}', '{"a":null}', '{"a":"b"}', "{1:2}", "{a:1}", '{"a"}'),
    *('{"a":1', '{"a":[1,2],"b":[]}', '{"a":1,}', '"quoted"', 'a"b', "a\\:b", "{}x", "[1]x", "1,2"),
]
