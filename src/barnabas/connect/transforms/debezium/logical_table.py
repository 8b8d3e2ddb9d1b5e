"""ByLogicalTableRouter: changes of many tables, such as shards, in one topic.

Source: io.debezium.transforms.ByLogicalTableRouter (Debezium 3.3).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, Final

from barnabas.connect.config.definition import (
    ConfigType,
    Definition,
    Importance,
    Setting,
    Width,
)
from barnabas.connect.config.validators import one_of_any_case, optional
from barnabas.connect.config.validators import regex as java_regex
from barnabas.connect.config.values import invalid
from barnabas.connect.record import ConnectRecord
from barnabas.connect.transforms.base import Transform, require_struct
from barnabas.connect.transforms.debezium.envelope import AFTER, BEFORE, is_envelope
from barnabas.connect.transforms.topics import Rewriter
from barnabas.schemas.data.builder import STRING, with_fields
from barnabas.schemas.data.cache import Cache
from barnabas.schemas.data.errors import NullPointerError
from barnabas.schemas.data.schema import Schema, Struct

_LOW: Final = Importance.LOW
_DIGIT_FIRST: Final = re.compile(r"^(?=[0-9])")
_BAD: Final = re.compile(r"[^A-Za-z0-9_.]")


class ByLogicalTableRouter(Transform):
    """Routes by a regular expression, and keeps keys of different tables apart."""

    definition: ClassVar[Definition] = Definition([
        Setting("topic.regex", ConfigType.STRING, importance=_LOW,
                doc="A Java regular expression that the topic has to match.", width=Width.LONG,
                validator=java_regex),
        Setting("topic.replacement", ConfigType.STRING, importance=_LOW,
                doc="The new topic; $1 stands for the first group.", width=Width.LONG),
        Setting("key.enforce.uniqueness", ConfigType.BOOLEAN, default=True, importance=_LOW,
                doc="Add a field with the table's name to the key.", width=Width.SHORT),
        Setting("key.field.regex", ConfigType.STRING, default=None, importance=_LOW,
                doc="Part of the old topic that identifies the table; by default all of it.",
                width=Width.LONG, validator=optional(java_regex)),
        Setting("key.field.name", ConfigType.STRING, default="__dbz__physicalTableIdentifier",
                importance=_LOW, doc="The key's field with the table's name.", width=Width.LONG),
        Setting("key.field.replacement", ConfigType.STRING, default=None, importance=_LOW,
                doc="The replacement for the match of key.field.regex.", width=Width.LONG),
        Setting("schema.name.adjustment.mode", ConfigType.STRING, default="none", importance=_LOW,
                doc="avro replaces characters that names in Avro cannot have.", width=Width.MEDIUM,
                validator=one_of_any_case("none", "avro", "avro_unicode")),
        Setting("logical.table.cache.size", ConfigType.INT, default=16, importance=_LOW,
                doc="Number of schemas in the cache.", width=Width.LONG),
    ])  # fmt: skip

    def _configure(self, parsed: Mapping[str, Any]) -> None:
        self._topic = Rewriter(parsed["topic.regex"], parsed["topic.replacement"])
        regex = (parsed["key.field.regex"] or "").strip()
        replacement = (parsed["key.field.replacement"] or "").strip()
        if regex and not replacement:
            raise invalid(
                "key.field.replacement",
                None,
                "key.field.replacement must be non-empty if key.field.regex is set.",
            )
        self._table = Rewriter(regex, replacement) if regex else None
        self._is_unique: bool = parsed["key.enforce.uniqueness"]
        self._key_field: str = parsed["key.field.name"]
        self._adjusts = parsed["schema.name.adjustment.mode"].lower() != "none"
        size = max(parsed["logical.table.cache.size"], 1)
        self._keys: Cache[tuple[Schema, str], Schema] = Cache(self._key_schema, size)
        self._envelopes: Cache[tuple[Schema, str], Schema] = Cache(self._envelope_schema, size)

    def apply(self, record: ConnectRecord) -> ConnectRecord:
        """Return the record for its new topic. Raises ConnectError."""
        topic = self._topic(record.topic)
        if not topic:
            return record
        copy = record.copied()
        copy.topic = topic
        copy.key_schema = copy.key = None
        if record.key is not None:
            old = require_struct(record.key, "Updating schema", record.key_schema)
            copy.key_schema = self._keys((old.schema, topic))
            values = [old.get(field.name) for field in old.schema.fields]
            if self._is_unique:
                table = self._table(record.topic) if self._table else None
                values.append(record.topic if table is None else table)
            copy.key = Struct(copy.key_schema, values)
        if record.value is not None and is_envelope(record):
            envelope = require_struct(record.value, "Updating schema", record.value_schema)
            copy.value_schema = self._envelopes((envelope.schema, topic))
            copy.value = self._renamed(copy.value_schema, envelope)
        return copy

    def _renamed(self, schema: Schema, envelope: Struct) -> Struct:
        values = []
        for field, new in zip(envelope.schema.fields, schema.fields, strict=True):
            value = envelope.get(field.name)
            if field.name in (BEFORE, AFTER) and value is not None:
                row = require_struct(value, "Updating schema")
                value = Struct(new.schema, [row.get(inner.name) for inner in row.schema.fields])
            values.append(value)
        return Struct(schema, values)

    def _key_schema(self, key: tuple[Schema, str]) -> Schema:
        schema, topic = key
        fields = [(field.name, field.schema) for field in schema.fields]
        if self._is_unique:
            fields.append((self._key_field, STRING))
        return with_fields(replace(schema, name=self._name(f"{topic}.Key"), default=None), fields)

    def _envelope_schema(self, key: tuple[Schema, str]) -> Schema:
        schema, topic = key
        before = schema.field(BEFORE)
        if before is None:
            raise NullPointerError("There is no before in the envelope")
        row = replace(before.schema, name=self._name(f"{topic}.Value"), default=None)
        made = replace(schema, name=self._name(f"{topic}.Envelope"), default=None)
        return with_fields(
            made,
            (
                (field.name, row if field.name in (BEFORE, AFTER) else field.schema)
                for field in schema.fields
            ),
        )

    def _name(self, name: str) -> str:
        if not self._adjusts:
            return name
        # A digit may not be the first, but the second.
        return _BAD.sub("_", _DIGIT_FIRST.sub("_", name))
