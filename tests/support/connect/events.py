"""Debezium's events without what differs from run to run, by topic, to be compared and kept."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from barnabas.connect.converters.json import JsonConverter
from barnabas.connect.record import SourceRecord

GOLDEN: Final = Path(__file__).parents[2] / "golden" / "connect" / "debezium_postgres.json"
LONG: Final = 200
_TIMES: Final = ("ts_ms", "ts_us", "ts_ns")
_OF_THE_SOURCE: Final = (*_TIMES, "version", "txId", "lsn", "sequence")

Event = tuple[str, Any, Any, list[tuple[str, str]]]
"""Topic, key and value as JsonConverter writes them with schemas, headers."""
ByTopic = dict[str, list[Any]]


def events_of(records: Iterable[SourceRecord]) -> list[Event]:
    """Return what JsonConverter makes of our records."""
    keys, values = JsonConverter(), JsonConverter()
    keys.configure({"schemas.enable": "true"}, is_key=True)
    values.configure({"schemas.enable": "true"}, is_key=False)
    return [
        (
            record.topic,
            _json(keys.from_connect(record.topic, record.key_schema, record.key)),
            _json(values.from_connect(record.topic, record.value_schema, record.value)),
            [(h.key, _text(keys, record.topic, h.schema, h.value)) for h in record.headers],
        )
        for record in records
    ]


def _json(data: bytes | None) -> Any:
    return None if data is None else json.loads(data)


def _text(converter: JsonConverter, topic: str, schema: Any, value: Any) -> str:
    """Headers as SimpleHeaderConverter writes them."""
    if isinstance(value, str):
        return value
    written = _json(converter.from_connect(topic, schema, value))["payload"]
    return json.dumps(written, separators=(",", ":"))


def normalised(events: Iterable[Event]) -> ByTopic:
    """By topic: [key, value, headers], each schema once, as an index in the list `schemas`."""
    schemas: list[Any] = []
    topics: ByTopic = {"schemas": schemas}
    for topic, key, value, headers in events:
        row = [
            _numbered(key, schemas),
            _numbered(_steady(value), schemas),
            sorted(map(list, headers)),
        ]
        topics.setdefault(topic, []).append(row)
    return {name: topics[name] for name in sorted(topics)}


def _steady(value: Any) -> Any:
    if value is None:
        return None
    payload = {name: item for name, item in value["payload"].items() if name not in _TIMES}
    payload["source"] = {
        name: item for name, item in payload["source"].items() if name not in _OF_THE_SOURCE
    }
    return {"schema": value["schema"], "payload": _short(payload)}


def _short(value: Any) -> Any:
    if isinstance(value, str) and len(value) > LONG:
        return f"sha256:{hashlib.sha256(value.encode()).hexdigest()}"
    if isinstance(value, dict):
        return {name: _short(item) for name, item in value.items()}
    if isinstance(value, list) and len(value) > LONG:
        return _short(json.dumps(value))
    return value


def _numbered(part: Any, schemas: list[Any]) -> Any:
    if part is None:
        return None
    if part["schema"] not in schemas:
        schemas.append(part["schema"])
    return {"schema": schemas.index(part["schema"]), "payload": part["payload"]}


def resolved(topics: ByTopic) -> ByTopic:
    """With the schemas themselves in place of their numbers."""
    schemas = topics["schemas"]

    def whole(part: Any) -> Any:
        return part and {"schema": schemas[part["schema"]], "payload": part["payload"]}

    return {
        topic: [[whole(key), whole(value), headers] for key, value, headers in rows]
        for topic, rows in topics.items()
        if topic != "schemas"
    }


def written(topics: ByTopic) -> str:
    """As the golden file has it: an event a line."""
    parts = [
        f"{_line(topic)}: [\n" + ",\n".join(map(_line, rows)) + "]"
        for topic, rows in topics.items()
    ]
    return "{\n" + ",\n".join(parts) + "}\n"


def _line(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
