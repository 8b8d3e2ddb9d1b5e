"""What a record costs on its way through converters and transforms, in microseconds.

A struct of ten fields, one of them a Timestamp: each converter in both directions, each transform
alone, and the way of a sink's record: JSON converter, InsertField, ReplaceField. The best of five.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from barnabas.connect.converters.registry import RegistryConverter
from barnabas.connect.plugins import load
from barnabas.connect.record import SinkRecord
from barnabas.schemas.data import builder
from barnabas.schemas.data.schema import Struct
from barnabas.schemas.registry_client import StoredSchema
from bench.settings import Settings

Figures = dict[str, dict[str, float]]
ROUNDS = 5
TRANSFORMS = "org.apache.kafka.connect.transforms."
SCHEMA = builder.struct_of(
    {
        "id": builder.INT64,
        "name": builder.STRING,
        "price": builder.FLOAT64,
        "count": builder.INT32,
        "ok": builder.BOOLEAN,
        "note": builder.OPTIONAL_STRING,
        "at": builder.TIMESTAMP_SCHEMA,
        "place": builder.STRING,
        "kind": builder.STRING,
        "size": builder.OPTIONAL_INT64,
    },
    name="shop.Order",
)
VALUE = Struct.of(
    SCHEMA,
    {
        "id": 1,
        "name": "an order",
        "price": 12.5,
        "count": 3,
        "ok": True,
        "at": datetime(2026, 1, 1, tzinfo=UTC),
        "place": "a place of some letters",
        "kind": "usual",
        "size": 5,
    },
)
STEPS: dict[str, dict[str, str]] = {
    "InsertField$Value": {"topic.field": "topic", "timestamp.field": "seen"},
    "ReplaceField$Value": {"exclude": "note", "renames": "place:where"},
    "Cast$Value": {"spec": "count:int64,price:string"},
    "TimestampConverter$Value": {
        "field": "at",
        "target.type": "string",
        "format": "yyyy-MM-dd HH:mm:ss",
    },
    "RegexRouter": {"regex": "(.*)", "replacement": "new-$1"},
}


_JSON = "org.apache.kafka.connect.json.JsonConverter"
CONVERTERS: dict[str, tuple[str, dict[str, str]]] = {
    "json": (_JSON, {}),
    "json_plain": (_JSON, {"schemas.enable": "false"}),
    "avro": ("io.confluent.connect.avro.AvroConverter", {}),
    "json_schema": ("io.confluent.connect.json.JsonSchemaConverter", {}),
    "protobuf": ("io.confluent.connect.protobuf.ProtobufConverter", {}),
}


class OneStore:
    """A registry with one schema of each type, to measure what comes after it."""

    def __init__(self) -> None:
        self._schemas: list[StoredSchema] = []

    def register(self, subject: str, schema_type: str, text: str) -> int:
        """Keep the schema."""
        self._schemas.append(StoredSchema(len(self._schemas), schema_type, text, ()))
        return len(self._schemas) - 1

    def by_id(self, schema_id: int) -> StoredSchema:
        """Give it again."""
        return self._schemas[schema_id]


def best_us(run: Callable[[], Any], count: int) -> float:
    """Microseconds of a call, the best round of some."""
    best = float("inf")
    for _ in range(ROUNDS):
        start = time.perf_counter()
        for _ in range(count):
            run()
        best = min(best, time.perf_counter() - start)
    return best / count * 1e6


def converter(name: str, settings: dict[str, str]) -> Any:
    """A converter of values; those with a registry get one that costs nothing."""
    made = load(name)()
    if isinstance(made, RegistryConverter):
        settings = {"schema.registry.url": "http://127.0.0.1:1", **settings}
    made.configure(settings, is_key=False)
    if isinstance(made, RegistryConverter):
        made._store = OneStore()  # type: ignore[assignment]
    return made


def sink_record(schema: Any, value: Any) -> SinkRecord:
    """A record as a sink's flow makes it."""
    return SinkRecord(
        topic="orders",
        partition=0,
        value_schema=schema,
        value=value,
        timestamp_ms=1_767_225_600_000,
        offset=1,
        original_topic="orders",
        original_partition=0,
        original_offset=1,
    )


def flow_round(settings: Settings) -> Figures:
    """Measure each converter in both directions, each transform, and the way of a sink's record."""
    count = settings.connect_calls
    found: dict[str, float] = {}
    for label, (name, given) in CONVERTERS.items():
        made = converter(name, given)
        data = made.from_connect("orders", SCHEMA, VALUE)
        write = best_us(lambda: made.from_connect("orders", SCHEMA, VALUE), count)  # noqa: B023
        read = best_us(lambda: made.to_connect("orders", data), count)  # noqa: B023
        found |= {f"connect_{label}_write_us": write, f"connect_{label}_read_us": read}
    steps = []
    record = sink_record(SCHEMA, VALUE)
    for name, given in STEPS.items():
        transform = load(TRANSFORMS + name)()
        transform.configure(given)
        steps.append(transform)
        label = name.partition("$")[0]
        found[f"connect_{label}_us"] = best_us(lambda: transform.apply(record), count)  # noqa: B023
    made = converter(*CONVERTERS["json"])
    data = made.from_connect("orders", SCHEMA, VALUE)

    def flow() -> None:
        passed: Any = sink_record(*made.to_connect("orders", data))
        for step in steps[:2]:
            passed = step.apply(passed)

    found["connect_flow_us"] = best_us(flow, count)
    return {"barnabas": found}
