"""EventRouter: rows of an outbox table as the events that they hold.

Source: io.debezium.transforms.outbox.EventRouter (Debezium 3.3). Tracing is left out.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Literal, cast

from barnabas.connect.config.definition import (
    ConfigType,
    Definition,
    Importance,
    Setting,
    Width,
)
from barnabas.connect.config.validators import one_of_any_case
from barnabas.connect.config.validators import regex as java_regex
from barnabas.connect.config.values import invalid
from barnabas.connect.record import ConnectRecord, Header
from barnabas.connect.transforms.base import Transform, require_struct
from barnabas.connect.transforms.debezium.envelope import (
    AFTER,
    OPERATION,
    is_envelope,
    typed,
)
from barnabas.connect.transforms.debezium.json_payload import expand
from barnabas.connect.transforms.topics import Rewriter
from barnabas.schemas.data.builder import STRING, struct_of
from barnabas.schemas.data.cache import Cache
from barnabas.schemas.data.errors import ConnectError, IllegalStateError
from barnabas.schemas.data.schema import Schema, Struct, Type
from barnabas.schemas.data.text import java_text

log = logging.getLogger(__name__)
_PAYLOAD: Final = "payload"
_PER_MS: Final[dict[str | None, int]] = {
    "io.debezium.time.Timestamp": 1,
    "io.debezium.time.MicroTimestamp": 1000,
    "io.debezium.time.NanoTimestamp": 1_000_000,
}


@dataclass(slots=True, frozen=True)
class _Additional:
    """A column that goes on beside the payload."""

    place: Literal["header", "envelope", "partition"]
    field: str
    alias: str


def _additional(name: str, specs: list[str]) -> list[_Additional]:
    made = []
    for spec in specs:
        parts = [part.strip() for part in spec.split(":")]
        place = parts[1].lower() if len(parts) in (2, 3) else ""
        if place not in ("header", "envelope", "partition"):
            raise invalid(
                name,
                specs,
                "A comma-separated list of valid String pairs or trios is expected but got: "
                f"{java_text(specs)}",
            )
        made.append(_Additional(place, parts[0], parts[-1] if len(parts) == 3 else parts[0]))  # type: ignore[arg-type]  # one of three
    return made


def _column(name: str, default: str | None, doc: str, **rest: Any) -> Setting:
    return Setting(
        name,
        ConfigType.STRING,
        default=default,
        importance=rest.pop("importance", Importance.LOW),
        doc=doc,
        group=rest.pop("group", "Table"),
        width=Width.MEDIUM,
        **rest,
    )


_PLACEMENT: Final = "table.fields.additional.placement"


class EventRouter(Transform):
    """Routes events of an outbox."""

    definition: ClassVar[Definition] = Definition([
        _column("table.field.event.id", "id", "The column with the event's id."),
        _column("table.field.event.key", "aggregateid", "The column with the event's key."),
        _column("table.field.event.type", "type", "The column with the event's type."),
        _column("table.field.event.payload", "payload", "The column with the event itself."),
        _column("table.field.event.timestamp", None,
                "The column with the record's time; without it, when the row was seen.",
                importance=Importance.MEDIUM),
        Setting(_PLACEMENT, ConfigType.LIST, default=None, importance=Importance.HIGH,
                doc="Further columns, as column:header, column:envelope:alias or column:partition.",
                group="Table", width=Width.MEDIUM,
                validator=lambda name, value: _check_additional(name, value)),
        Setting("table.fields.additional.error.on.missing", ConfigType.BOOLEAN, default=True,
                doc="Fail if such a column is missing.", group="Table", width=Width.MEDIUM),
        _column("table.field.event.schema.version", None, "The column with the schema's version."),
        _column("table.op.invalid.behavior", "warn",
                "Action when a row is updated: warn, error (in the log) or fatal.",
                importance=Importance.MEDIUM, validator=one_of_any_case("warn", "error", "fatal")),
        Setting("table.expand.json.payload", ConfigType.BOOLEAN, default=False,
                doc="Read a JSON payload as a struct.", group="Table", width=Width.MEDIUM),
        _column("table.json.payload.null.behavior", "ignore",
                "Handling of null in such JSON: ignore or optional_bytes.",
                importance=Importance.MEDIUM,
                validator=one_of_any_case("ignore", "optional_bytes")),
        _column("route.by.field", "aggregatetype", "The column of which the topic is made.",
                importance=Importance.HIGH, group="Router"),
        _column("route.topic.regex", "(?<routedByValue>.*)",
                "A Java regular expression that this column has to match.", group="Router",
                validator=java_regex),
        _column("route.topic.replacement", "outbox.event.${routedByValue}",
                "The topic that is made of the match.", importance=Importance.HIGH, group="Router"),
        Setting("route.tombstone.on.empty.payload", ConfigType.BOOLEAN, default=False,
                importance=Importance.HIGH, doc="Write a tombstone for an empty payload.",
                group="Router", width=Width.MEDIUM),
    ])  # fmt: skip

    def _configure(self, parsed: Mapping[str, Any]) -> None:
        self._id: str = parsed["table.field.event.id"]
        self._key: str | None = parsed["table.field.event.key"]
        self._payload: str = parsed["table.field.event.payload"]
        self._time: str | None = parsed["table.field.event.timestamp"]
        self._version: str | None = parsed["table.field.event.schema.version"]
        self._route: str = parsed["route.by.field"]
        self._topic = Rewriter(parsed["route.topic.regex"], parsed["route.topic.replacement"])
        self._makes_tombstones: bool = parsed["route.tombstone.on.empty.payload"]
        self._on_update: str = parsed["table.op.invalid.behavior"].lower()
        self._expands: bool = parsed["table.expand.json.payload"]
        self._keeps_null = parsed["table.json.payload.null.behavior"].lower() != "ignore"
        self._is_strict: bool = parsed["table.fields.additional.error.on.missing"]
        self._additional = _additional(_PLACEMENT, parsed[_PLACEMENT] or [])
        self._has_envelope = any(field.place == "envelope" for field in self._additional)
        self._schemas: Cache[tuple[Schema, Schema, str | None, int | None], Schema] = Cache(
            self._schema
        )

    def apply(self, record: ConnectRecord) -> ConnectRecord | None:
        """Return the event. Raises ConnectError."""
        if record.value is None:
            return None
        if not is_envelope(record):
            return record
        change = require_struct(record.value, "Detect Debezium Operation", record.value_schema)
        operation = typed(change, OPERATION, Type.STRING)
        if operation == "d":
            return None
        if operation == "u":
            self._updated(record)
            return None
        return self._event(record, change, require_struct(change.get(AFTER), "Read Outbox Event"))

    def _updated(self, record: ConnectRecord) -> None:
        if self._on_update == "fatal":
            raise IllegalStateError(
                f"Unexpected update message received {java_text(record.key)}, fail."
            )
        level = logging.ERROR if self._on_update == "error" else logging.WARNING
        log.log(level, "An update of an outbox row is ignored; topic %s", record.topic)

    def _event(self, record: ConnectRecord, change: Struct, row: Struct) -> ConnectRecord:
        schema, payload = _column_of(row, self._payload, "payload"), row.get(self._payload)
        copy = record.copied()
        copy.timestamp_ms = self._timestamp(change, row)
        event_id = row.get(self._id)
        copy.headers.append(Header("id", _column_of(row, self._id, "event-id"), event_id))
        if self._expands:
            schema, payload = self._expanded(schema, payload)
        topic = typed(row, self._route, Type.STRING)
        routed = None if topic is None else self._topic(topic)
        copy.topic = topic if routed is None else routed
        copy.partition = None
        is_empty = payload is None or not java_text(payload, schema).strip()
        copy.value_schema, copy.value = schema, payload
        if self._has_envelope:
            copy.value_schema = self._schemas((schema, row.schema, topic, self._version_of(row)))
            copy.value = Struct.of(copy.value_schema, {_PAYLOAD: payload})
        self._add(copy, row)
        if is_empty and self._makes_tombstones:
            copy.value_schema = copy.value = None
        key = None if self._key is None else row.schema.field(self._key)
        copy.key_schema = STRING if key is None else key.schema
        copy.key = None if self._key is None else row.get(self._key)
        return copy

    def _add(self, copy: ConnectRecord, row: Struct) -> None:
        for extra in self._additional:
            field = row.schema.field(extra.field)
            if field is None and not self._is_strict:
                continue
            value = row.get(extra.field)
            if extra.place == "envelope":
                copy.value.put(extra.alias, value)
            elif extra.place == "header":
                assert field is not None
                copy.headers.append(Header(extra.alias, field.schema, value))
            else:
                copy.partition = typed(row, extra.field, Type.INT32)

    def _expanded(self, schema: Schema, payload: Any) -> tuple[Schema, Any]:
        if not isinstance(payload, str):
            log.warning("The payload is not a text and cannot be expanded")
            return schema, payload
        try:
            return expand(payload, self._payload, keeps_null=self._keeps_null)
        except (ValueError, ConnectError, RecursionError) as error:
            log.warning("JSON expansion failed: %s", type(error).__name__)
            return schema, payload

    def _timestamp(self, change: Struct, row: Struct) -> int | None:
        if self._time is None:
            return _seen_at(change)
        schema = _column_of(row, self._time, "timestamp")
        value = typed(row, self._time, Type.INT64)
        if value is None:
            return _seen_at(change)
        if schema.name is None:
            raise ConnectError(
                f"Unsupported field type {schema.type.name} (without logical schema name) "
                "for event timestamp"
            )
        divisor = _PER_MS.get(schema.name)
        if divisor is None:
            raise ConnectError(f"Unsupported field type {schema.name} for event timestamp")
        return int(value) // divisor

    def _version_of(self, row: Struct) -> int | None:
        if self._version is None:
            return None
        return cast("int | None", typed(row, self._version, Type.INT32))

    def _schema(self, key: tuple[Schema, Schema, str | None, int | None]) -> Schema:
        payload, row, topic, version = key
        name = java_text(topic)
        if row.name is not None:
            place, _, last = row.name.rpartition(".")
            name = f"{place}.{name}.{last}" if place else f"{name}.{last}"
        fields = {_PAYLOAD: payload}
        for extra in self._additional:
            field = row.field(extra.field)
            if extra.place == "envelope" and field is not None:
                fields[extra.alias] = field.schema
        return struct_of(fields, name=name, version=version)


def _seen_at(change: Struct) -> int | None:
    return cast("int | None", typed(change, "ts_ms", Type.INT64))


def _check_additional(name: str, value: Any) -> None:
    _additional(name, value or [])


def _column_of(row: Struct, name: str, what: str) -> Schema:
    field = row.schema.field(name)
    if field is None:
        raise ConnectError(f"Unable to find {what} field {name} in event")
    return field.schema
