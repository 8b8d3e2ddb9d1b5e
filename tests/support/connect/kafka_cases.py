"""Records, schemas and values as JSON, as `java/ConnectCases.java` reads and writes them, and what
our transforms and converters make of such cases.

With a schema its type says what JSON stands for; without one a tag does: `{"long": 1}`.
"""

from __future__ import annotations

import re
from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, time
from decimal import Decimal
from math import isfinite
from typing import Any

from barnabas.connect.plugins import load
from barnabas.connect.record import ConnectRecord, Header, SinkRecord, SourceRecord
from barnabas.java.numbers import double_text
from barnabas.schemas.data.errors import ConnectError
from barnabas.schemas.data.logical import (
    DAY_MS,
    date_to_days,
    days_to_date,
    ms_to_time,
    ms_to_timestamp,
    time_to_ms,
    timestamp_to_ms,
)
from barnabas.schemas.data.schema import (
    DATE,
    DECIMAL,
    TIME,
    TIMESTAMP,
    Field,
    Schema,
    Struct,
    Type,
)

Json = Any


def ours(case: Json) -> Json:
    """Return what our plugin makes of a case, as the Java program tells it of Kafka's."""
    try:
        return _RUNNERS[case["kind"]](case)
    except ConnectError as error:
        return _error(error)


def _error(error: ConnectError) -> Json:
    return {"error": error.java_name, "text": str(error)}


def _run(steps: list[Json], run: Callable[[Json], Json]) -> Json:
    results = []
    for step in steps:
        try:
            results.append(run(step))
        except ConnectError as error:
            results.append(_error(error))
    return results


def _transform(case: Json) -> Json:
    transform = load(case["class"])()
    transform.configure(case["settings"])

    def run(node: Json) -> Json:
        record = record_of(node)
        result = transform.apply(record)
        assert record == record_of(node), "a transform changed its argument"
        return None if result is None else record_json(result)

    return _run(case["records"], run)


def _predicate(case: Json) -> Json:
    predicate = load(case["class"])()
    predicate.configure(case["settings"])
    return [predicate.test(record_of(node)) for node in case["records"]]


def _converter(case: Json) -> Json:
    converter = load(case["class"])()
    converter.configure(case["settings"], is_key=case.get("is_key", False))

    def run(step: Json) -> Json:
        if "data" in step:
            data = None if step["data"] is None else b64decode(step["data"])
            return _pair(*converter.to_connect("t", data))
        schema = schema_of(step["schema"])
        return _bytes(converter.from_connect("t", schema, value_of(schema, step["value"])))

    return _run(case["steps"], run)


def _header(case: Json) -> Json:
    converter = load(case["class"], "header_converter")()
    converter.configure(case["settings"])

    def run(step: Json) -> Json:
        if "data" in step:
            return _pair(*converter.to_connect("t", "h", b64decode(step["data"])))
        schema = schema_of(step["schema"])
        return _bytes(converter.from_connect("t", "h", schema, value_of(schema, step["value"])))

    return _run(case["steps"], run)


def _pair(schema: Schema | None, value: Any) -> Json:
    return {"schema": schema_json(schema), "value": value_json(schema, value)}


def _bytes(data: bytes | None) -> Json:
    return {"data": None if data is None else b64encode(data).decode()}


def _definition(case: Json) -> Json:
    return {
        setting.name: {
            "type": setting.type.value,
            "importance": setting.importance.value,
            "required": setting.is_required,
            "default": None if setting.is_required else _default_text(setting.default),
            "group": setting.group,
            "order": setting.order,
            "width": setting.width.value,
            "display_name": setting.display_name or setting.name,
        }
        for setting in load(case["class"]).definition.settings.values()
    }


def _default_text(value: Any) -> str:
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: "null"}[value]
    return str(value)


_RUNNERS: dict[str, Callable[[Json], Json]] = {
    "transform": _transform,
    "predicate": _predicate,
    "converter": _converter,
    "header": _header,
    "definition": _definition,
}


def record_of(node: Json) -> ConnectRecord:
    """The record that JSON describes: of a sink if it has an offset, else of a source."""
    key_schema, value_schema = schema_of(node["key_schema"]), schema_of(node["value_schema"])
    rest: dict[str, Any] = {
        "topic": node["topic"],
        "partition": node["partition"],
        "key_schema": key_schema,
        "key": value_of(key_schema, node["key"]),
        "value_schema": value_schema,
        "value": value_of(value_schema, node["value"]),
        "timestamp_ms": node["timestamp"],
        "headers": [
            Header(h["key"], schema := schema_of(h["schema"]), value_of(schema, h["value"]))
            for h in node["headers"]
        ],
    }
    if node["offset"] is None:
        return SourceRecord(source_partition={}, source_offset={}, **rest)
    rest["partition"] = rest["partition"] or 0
    return SinkRecord(
        offset=node["offset"],
        original_topic=node["topic"],
        original_partition=rest["partition"],
        original_offset=node["offset"],
        **rest,
    )


def record_json(record: ConnectRecord) -> Json:
    """The JSON of a record that a transform made."""
    return {
        "topic": record.topic,
        "partition": record.partition,
        "key_schema": schema_json(record.key_schema),
        "key": value_json(record.key_schema, record.key),
        "value_schema": schema_json(record.value_schema),
        "value": value_json(record.value_schema, record.value),
        "timestamp": record.timestamp_ms,
        "headers": [
            {"key": h.key, "schema": schema_json(h.schema), "value": value_json(h.schema, h.value)}
            for h in record.headers
        ],
    }


def schema_of(node: Json) -> Schema | None:
    """The schema that JSON describes."""
    if node is None:
        return None
    fields = []
    for place, (name, inner) in enumerate(node.get("fields", ())):
        schema = schema_of(inner)
        assert schema is not None
        fields.append(Field(name, place, schema))
    rest: dict[str, Any] = {
        "optional": node.get("optional", False),
        "name": node.get("name"),
        "version": node.get("version"),
        "doc": node.get("doc"),
        "parameters": node.get("parameters", {}),
        "fields": tuple(fields),
        "key_schema": schema_of(node.get("keys")),
        "value_schema": schema_of(node.get("values")),
    }
    made = Schema(Type[node["type"]], **rest)
    if "default" in node:
        made = Schema(made.type, default=value_of(made, node["default"]), **rest)
    return made


def schema_json(schema: Schema | None) -> Json:
    """The JSON of a schema."""
    if schema is None:
        return None
    node: Json = {"type": schema.type.name}
    if schema.optional:
        node["optional"] = True
    for name in ("name", "version", "doc"):
        if getattr(schema, name) is not None:
            node[name] = getattr(schema, name)
    if schema.parameters:
        node["parameters"] = dict(schema.parameters)
    if schema.type is Type.STRUCT:
        node["fields"] = [[f.name, schema_json(f.schema)] for f in schema.fields]
    if schema.type is Type.MAP:
        node["keys"] = schema_json(schema.key_schema)
    if schema.type in (Type.MAP, Type.ARRAY):
        node["values"] = schema_json(schema.value_schema)
    if schema.default is not None:
        node["default"] = value_json(schema, schema.default)
    return node


def value_of(schema: Schema | None, node: Json) -> Any:
    """The value that JSON stands for."""
    if node is None:
        return None
    if schema is None or (isinstance(node, dict) and "any" in node):
        return _untyped(node["any"] if isinstance(node, dict) and "any" in node else node)
    match schema.name:
        case str(name) if name == DECIMAL:
            return Decimal(node)
        case str(name) if name == DATE:
            return days_to_date(node // DAY_MS)
        case str(name) if name == TIME:
            return ms_to_time(node)
        case str(name) if name == TIMESTAMP:
            return ms_to_timestamp(node)
    match schema.type:
        case Type.BYTES:
            return b64decode(node)
        case Type.FLOAT32 | Type.FLOAT64:
            return float(node)
        case Type.ARRAY:
            return [value_of(schema.value_schema, item) for item in node]
        case Type.MAP:
            return {
                value_of(schema.key_schema, k): value_of(schema.value_schema, v) for k, v in node
            }
        case Type.STRUCT:
            values = [value_of(f.schema, v) for f, v in zip(schema.fields, node, strict=True)]
            return Struct(schema, values)
    return node


def _untyped(node: Json) -> Any:
    if not isinstance(node, dict):
        return node
    [(tag, inner)] = node.items()
    match tag:
        case "bytes":
            return b64decode(inner)
        case "double":
            return float(inner)
        case "decimal":
            return Decimal(inner)
        case "moment":
            return ms_to_timestamp(inner)
        case "list":
            return [_untyped(item) for item in inner]
        case "map":
            return {_untyped(k): _untyped(v) for k, v in inner}
    return inner


def value_json(schema: Schema | None, value: Any) -> Json:
    """The JSON of a value."""
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, Struct):
        fields = value.schema.fields
        return [value_json(f.schema, v) for f, v in zip(fields, value.values, strict=True)]
    tag, node = _tagged(schema, value)
    return {tag: node} if schema is None else node


def _tagged(schema: Schema | None, value: Any) -> tuple[str, Json]:
    if isinstance(value, int):
        return "long", value
    if isinstance(value, float):
        return "double", value if isfinite(value) else double_text(value)
    if isinstance(value, Decimal):
        return "decimal", str(value)
    if isinstance(value, datetime):
        return "moment", timestamp_to_ms(value.astimezone(UTC))
    if isinstance(value, date):
        return "moment", date_to_days(value) * DAY_MS
    if isinstance(value, time):
        return "moment", time_to_ms(value)
    if isinstance(value, (list, tuple)):
        items = schema.value_schema if schema else None
        return "list", [value_json(items, item) for item in value]
    if isinstance(value, Mapping):
        keys, items = (schema.key_schema, schema.value_schema) if schema else (None, None)
        return "map", [[value_json(keys, k), value_json(items, v)] for k, v in value.items()]
    return "bytes", b64encode(value).decode()


def comparable(node: Json) -> Json:
    """JSON of results. The order of a map's entries without a schema does not count, nor does the
    hash that Java shows of an object.
    """
    if isinstance(node, str):
        return re.sub(r"@[0-9a-f]+\b", "@", node)
    if isinstance(node, dict):
        return {
            key: sorted(comparable(item), key=repr) if key == "map" else comparable(item)
            for key, item in node.items()
        }
    return [comparable(item) for item in node] if isinstance(node, list) else node
