"""ExtractNewRecordState: the row as it is after a change, in the place of the envelope.

Source: io.debezium.transforms.ExtractNewRecordState (Debezium 3.3).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Final

from barnabas.connect.config.definition import (
    ConfigType,
    Definition,
    Importance,
    Setting,
    Width,
)
from barnabas.connect.config.validators import one_of_any_case
from barnabas.connect.record import ConnectRecord, Header
from barnabas.connect.transforms.base import (
    REPLACE_NULL,
    Rebuild,
    Transform,
    of_fields,
    plain,
    require_struct,
)
from barnabas.connect.transforms.debezium.envelope import (
    AFTER,
    BEFORE,
    OPERATION,
    is_envelope,
    typed,
)
from barnabas.schemas.data.builder import OPTIONAL_STRING, STRING, with_fields
from barnabas.schemas.data.cache import Cache
from barnabas.schemas.data.errors import IllegalArgumentError, NullPointerError
from barnabas.schemas.data.schema import Field, Schema, Struct, Type

_DELETED: Final = "__deleted"
_MODES: Final = ("drop", "tombstone", "rewrite", "rewrite-with-tombstone", "delete-to-tombstone")
_REWRITES: Final = ("rewrite", "rewrite-with-tombstone")
_PLACES: Final[dict[str, str | None]] = {
    "id": "transaction",
    "data_collection_order": "transaction",
    "total_order": "transaction",
    "op": None,
    "ts_ms": None,
    "ts_us": None,
    "ts_ns": None,
    "updateDescription": "updateDescription",
}
"""Where in the envelope a field is that was named alone; others are in `source`."""


def _setting(name: str, kind: ConfigType, default: Any, doc: str, **rest: Any) -> Setting:
    return Setting(
        name, kind, default=default, importance=Importance.LOW, doc=doc, width=Width.SHORT, **rest
    )


class ExtractNewRecordState(Transform):
    """Unwraps changes."""

    definition: ClassVar[Definition] = Definition([
        Setting("delete.tombstone.handling.mode", ConfigType.STRING, default="tombstone",
                doc="Handling of deletes: drop, tombstone, rewrite (the old row with "
                    "__deleted=true), rewrite-with-tombstone or delete-to-tombstone.",
                width=Width.MEDIUM, validator=one_of_any_case(*_MODES)),
        _setting("route.by.field", ConfigType.STRING, "", "The field of the row with the topic."),
        _setting("add.fields.prefix", ConfigType.STRING, "__", "Begins names of added fields."),
        _setting("add.fields", ConfigType.LIST, "",
                 "Fields of the envelope to add, as op,source.ts_ms:new_name."),
        _setting("add.headers.prefix", ConfigType.STRING, "__", "Begins names of added headers."),
        _setting("add.headers", ConfigType.LIST, "",
                 "Fields of the envelope to add as headers, as op,source.ts_ms:new_name."),
        REPLACE_NULL,
        _setting("drop.fields.header.name", ConfigType.STRING, None,
                 "The header that lists fields to leave out."),
        _setting("drop.fields.from.key", ConfigType.BOOLEAN, default=False,
                 doc="Omit them from the key too."),
        _setting("drop.fields.keep.schema.compatible", ConfigType.BOOLEAN, default=True,
                 doc="Omit only optional fields."),
    ])  # fmt: skip

    def _configure(self, parsed: Mapping[str, Any]) -> None:
        self._mode: str = parsed["delete.tombstone.handling.mode"].strip().lower()
        self._route: str = parsed["route.by.field"]
        fields = [_Reference(parsed["add.fields.prefix"], text) for text in parsed["add.fields"]]
        headers = [_Reference(parsed["add.headers.prefix"], t) for t in parsed["add.headers"]]
        self._fields, self._headers = fields, headers
        self._replaces_null: bool = parsed[REPLACE_NULL.name]
        self._drop_header: str | None = parsed["drop.fields.header.name"]
        self._drops_from_key: bool = parsed["drop.fields.from.key"]
        self._keeps_required: bool = parsed["drop.fields.keep.schema.compatible"]
        self._rows: Cache[tuple[Schema, Schema, bool], Rebuild] = Cache(self._plan)
        self._drops: Cache[tuple[Schema, tuple[str, ...]], Rebuild | None] = Cache(self._drop_plan)

    def apply(self, record: ConnectRecord) -> ConnectRecord | None:
        """Return the row, or what the mode makes of a delete. Raises ConnectError."""
        if record.value is None:
            if self._mode != "rewrite-with-tombstone":
                return None
            return self._with_headers(record, None)
        if not is_envelope(record):
            return record
        envelope = require_struct(record.value, "source field insertion", record.value_schema)
        record = self._with_headers(record, envelope)
        row, old = envelope.get(AFTER), _part(envelope, BEFORE)
        if row is not None:
            routed = self._routed(record, require_struct(row, "Read record to set topic routing"))
            return self._dropped(self._row(routed, envelope, AFTER, row, is_deleted=False))
        if old is None:  # a truncation
            return None
        return self._deleted(record, envelope, old)

    def _deleted(
        self, record: ConnectRecord, envelope: Struct, old: Struct
    ) -> ConnectRecord | None:
        if self._mode == "drop":
            return None
        record = self._routed(record, old)
        if self._mode == "delete-to-tombstone":
            return record.with_value(None, None)
        if self._mode == "tombstone":
            field = envelope.schema.field(AFTER)
            return self._dropped(record.with_value(field.schema if field else None, None))
        return self._dropped(self._row(record, envelope, BEFORE, old, is_deleted=True))

    def _row(
        self, record: ConnectRecord, envelope: Struct, place: str, row: Struct, *, is_deleted: bool
    ) -> ConnectRecord:
        plan = self._rows((row.schema, envelope.schema, self._mode in _REWRITES))
        values = plan.values(row)
        if self._mode in _REWRITES:
            values.append("true" if is_deleted else "false")
        values.extend(
            reference.value(envelope)
            for reference in self._fields
            if reference.field(envelope.schema) is not None
        )
        return record.with_value(plan.schema, Struct(plan.schema, values))

    def _plan(self, key: tuple[Schema, Schema, bool]) -> Rebuild:
        row, envelope, is_rewritten = key
        fields = [(field.name, field.schema) for field in row.fields]
        if is_rewritten:
            fields.append((_DELETED, OPTIONAL_STRING))
        for reference in self._fields:
            source_field = reference.field(envelope)
            if source_field is not None:
                fields.append((reference.name, replace(plain(source_field.schema), optional=True)))
        made = with_fields(plain(row), fields)
        replaces_null = is_rewritten and self._replaces_null
        return Rebuild(made, row.fields, replaces_null=replaces_null)

    def _with_headers(self, record: ConnectRecord, envelope: Struct | None) -> ConnectRecord:
        if not self._headers:
            return record
        copy = record.copied()
        for reference in self._headers:
            if envelope is None:
                if reference.name_in_place == OPERATION:
                    copy.headers.append(Header(reference.name, STRING, "d"))
                continue
            field = reference.field(envelope.schema)
            if field is not None:
                schema = replace(plain(field.schema), optional=True)
                copy.headers.append(Header(reference.name, schema, reference.value(envelope)))
        return copy

    def _routed(self, record: ConnectRecord, row: Struct) -> ConnectRecord:
        if not self._route:
            return record
        topic = typed(row, self._route, Type.STRING)
        if topic is None or not topic.strip():
            return record
        copy = record.copied()
        copy.topic = topic
        return copy

    def _dropped(self, record: ConnectRecord) -> ConnectRecord:
        if not self._drop_header:
            return record
        header = next((h for h in record.headers if h.key == self._drop_header), None)
        if header is None or not header.value:
            return record
        copy, names = record.copied(), tuple(header.value)
        if self._drops_from_key and type(copy.key) is Struct:
            plan = self._drops((copy.key.schema, names))
            if plan is not None:
                copy.key_schema, copy.key = plan.schema, plan(copy.key)
        if type(copy.value) is Struct:
            plan = self._drops((copy.value.schema, names))
            if plan is not None:
                copy.value_schema, copy.value = plan.schema, plan(copy.value)
        return copy

    def _drop_plan(self, key: tuple[Schema, tuple[str, ...]]) -> Rebuild | None:
        schema, names = key
        kept = [
            field
            for field in schema.fields
            if field.name not in names or (self._keeps_required and not field.schema.optional)
        ]
        if len(kept) == len(schema.fields):
            return None
        return of_fields(schema, kept, replaces_null=True)


class _Reference:
    """A field of the envelope, `op` or `source.ts_ms`, and the name that it gets."""

    def __init__(self, prefix: str, text: str) -> None:
        parts = text.strip().split(":")
        if len(parts) > 2:
            raise IllegalArgumentError(f"Unexpected field name: {text}")
        steps: Sequence[str] = parts[0].split(".")
        is_alone = len(steps) == 1
        self.name_in_place = steps[0] if is_alone else steps[1]
        self._place = _PLACES.get(steps[0], "source") if is_alone else steps[0]
        own = self.name_in_place if is_alone else f"{self._place}_{self.name_in_place}"
        self.name = prefix + (parts[1] if len(parts) == 2 else own)

    def field(self, envelope: Schema) -> Field | None:
        """The field's place in a schema of envelopes; None if absent."""
        inner = envelope
        if self._place is not None:
            place = envelope.field(self._place)
            if place is None:
                raise NullPointerError(f"There is no {self._place} in the envelope")
            inner = place.schema
        return inner.field(self.name_in_place) or envelope.field(self.name_in_place)

    def value(self, envelope: Struct) -> Any:
        """The field's value in an envelope; null where its struct is null."""
        struct = envelope
        if self._place is not None:
            struct = envelope.get_without_default(self._place)
            if struct is None:
                return None
            if struct.schema.field(self.name_in_place) is None:
                struct = envelope
        return struct.get_without_default(self.name_in_place)


def _part(envelope: Struct, name: str) -> Any:
    return None if envelope.schema.field(name) is None else envelope.get(name)
