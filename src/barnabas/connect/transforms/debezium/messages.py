"""Transforms of events that are not changes of rows: messages in PostgreSQL's log, schema changes.

`pg_logical_emit_message` writes messages; from those with JSON the transform makes events that
EventRouter takes. Source:
io.debezium.connector.postgresql.transforms.DecodeLogicalDecodingMessageContent and
io.debezium.transforms.SchemaChangeEventFilter (Debezium 3.3).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from barnabas.connect.config.definition import ConfigType, Definition, Importance, Setting, Width
from barnabas.connect.record import ConnectRecord
from barnabas.connect.transforms.base import Transform, require_struct
from barnabas.connect.transforms.debezium.envelope import (
    AFTER,
    OPERATION,
    DebeziumError,
    refused,
    required,
    typed,
)
from barnabas.connect.transforms.debezium.json_payload import expand
from barnabas.schemas.data.builder import struct_of
from barnabas.schemas.data.cache import Cache
from barnabas.schemas.data.errors import DataError, IllegalArgumentError, NullPointerError
from barnabas.schemas.data.schema import Schema, Struct, Type

_NULLS: Final = "fields.null.include"
_TITLE: Final = "Defines whether to include fields with null values to the decoded structure"
_MESSAGES: Final = "io.debezium.connector.postgresql.MessageValue"
_MESSAGE, _CONTENT = "message", "content"


class DecodeLogicalDecodingMessageContent(Transform):
    """Reads the JSON of messages, and gives each the look of an insert."""

    definition: ClassVar[Definition] = Definition(
        [
            Setting(
                _NULLS,
                ConfigType.BOOLEAN,
                default=False,
                doc="Keep null fields, as optional bytes.",
                order=1,
                width=Width.MEDIUM,
                display_name=_TITLE,
            )
        ]
    )

    def _configure(self, parsed: Mapping[str, Any]) -> None:
        self._keeps_null: bool = parsed[_NULLS]
        self._schemas: Cache[tuple[Schema, Schema], Schema] = Cache(_envelope)

    def apply(self, record: ConnectRecord) -> ConnectRecord:
        """Return the message as an insert without a key. Raises ConnectError."""
        if record.value_schema is None or record.value_schema.name != _MESSAGES:
            return record
        value = require_struct(record.value, "Retrieve a record value")
        content_schema, content = self._content(value)
        schema = self._schemas((value.schema, content_schema))
        made = Struct.of(schema)
        for field in schema.fields:
            if field.name == AFTER:
                made.put(AFTER, content)
            else:
                made.put(field.name, "c" if field.name == OPERATION else value.get(field.name))
        copy = record.with_value(schema, made)
        copy.key_schema = copy.key = None
        return copy

    def _content(self, value: Struct) -> tuple[Schema, Any]:
        message = require_struct(
            value.get(_MESSAGE), "Retrieve content of a logical decoding message"
        )
        field = message.schema.field(_CONTENT)
        if field is None or field.schema.type is not Type.BYTES:
            raise DebeziumError("The content of a logical decoding message is non-binary")
        content = typed(message, _CONTENT, Type.BYTES)
        if content is None:
            raise DataError("A logical decoding message has no content")
        text = bytes(content).decode("utf-8", "replace")
        try:
            return expand(text, None, keeps_null=self._keeps_null)
        except ValueError as error:  # not the text: contents of records stay out of logs
            raise DebeziumError(
                "Unable to parse logical decoding message content JSON string"
            ) from error


def _envelope(key: tuple[Schema, Schema]) -> Schema:
    message, content = key
    fields = [(field.name, field.schema) for field in message.fields if field.name != _MESSAGE]
    return struct_of([*fields, (AFTER, content)], name=f"{message.name}.Envelope")


_NAME: Final = "schema.change.event.exclude.list"
_KINDS: Final = ("CREATE", "ALTER", "DROP", "TRUNCATE", "DATABASE")
_SCHEMAS: Final = (".SchemaChangeKey", ".SchemaChangeValue")


def _kinds(name: str, value: Any) -> None:
    required(name, value)
    if not set(_list(value)) <= set(_KINDS):
        raise refused(name, value, f"Values must be among {', '.join(_KINDS)}")


def _list(text: str) -> list[str]:
    return [kind.strip() for kind in text.rstrip(",").split(",")]


class SchemaChangeEventFilter(Transform):
    """Drops schema changes of some kinds."""

    definition: ClassVar[Definition] = Definition(
        [
            Setting(
                _NAME,
                ConfigType.STRING,
                None,
                Importance.HIGH,
                f"The kinds of changes to leave out, with commas: {', '.join(_KINDS)}.",
                order=1,
                width=Width.SHORT,
                display_name="Schema change event exclude list",
                validator=_kinds,
            )
        ]
    )

    def _configure(self, parsed: Mapping[str, Any]) -> None:
        self._excluded = frozenset(_list(parsed[_NAME]))

    def apply(self, record: ConnectRecord) -> ConnectRecord | None:
        """Return the record, or None for a change to leave out. Raises ConnectError."""
        schema = record.value_schema
        if record.value is None or schema is None or not (schema.name or "").endswith(_SCHEMAS):
            return record
        change = require_struct(record.value, "Read schema change event to filter", schema)
        tables = typed(change, "tableChanges", Type.ARRAY)
        if tables is None:
            return None
        kind = tables[0].get("type") if tables else "DATABASE"
        if kind is None:
            raise NullPointerError("A change of a table has no type")
        if kind not in _KINDS:
            raise IllegalArgumentError(
                "No enum constant io.debezium.schema.SchemaChangeEvent."
                f"SchemaChangeEventType.{kind}"
            )
        return None if kind in self._excluded else record
