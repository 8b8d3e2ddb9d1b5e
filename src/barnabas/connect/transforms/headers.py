"""Transforms of headers: DropHeaders, InsertHeader and HeaderFrom.

Source: org.apache.kafka.connect.transforms (Kafka 4.3).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from barnabas.connect.config.definition import (
    ConfigType,
    Definition,
    Importance,
    Setting,
)
from barnabas.connect.config.validators import list_of, non_null, one_of
from barnabas.connect.record import ConnectRecord, Header
from barnabas.connect.transforms.base import (
    REPLACE_NULL,
    Rebuild,
    Sided,
    Transform,
    non_empty_list,
    of_fields,
    require_map,
    require_struct,
    two_sided,
)
from barnabas.schemas.data.cache import Cache
from barnabas.schemas.data.errors import ConfigError, NullPointerError
from barnabas.schemas.data.schema import Schema, Struct
from barnabas.schemas.data.value_text import text_to_value


class DropHeaders(Transform):
    """Removes headers."""

    definition: ClassVar[Definition] = Definition(
        [
            Setting(
                "headers",
                ConfigType.LIST,
                importance=Importance.HIGH,
                doc="The headers to remove.",
                validator=list_of(is_empty_allowed=False),
                is_distinct=True,
            )
        ]
    )

    def _configure(self, parsed: Mapping[str, Any]) -> None:
        self._names = frozenset(parsed["headers"])

    def apply(self, record: ConnectRecord) -> ConnectRecord:
        """Return the record without them."""
        copy = record.copied()
        copy.headers = [header for header in copy.headers if header.key not in self._names]
        return copy


class InsertHeader(Transform):
    """Adds a header with a fixed value."""

    definition: ClassVar[Definition] = Definition([
        Setting("header", ConfigType.STRING, importance=Importance.HIGH, doc="The header's name.",
                validator=non_null),
        Setting("value.literal", ConfigType.STRING, importance=Importance.HIGH,
                doc="The header's value; its type is that which the text looks like.",
                validator=non_null),
    ])  # fmt: skip

    def _configure(self, parsed: Mapping[str, Any]) -> None:
        schema, value = text_to_value(parsed["value.literal"])
        self._header = Header(parsed["header"], schema, value)

    def apply(self, record: ConnectRecord) -> ConnectRecord:
        """Return the record with the header."""
        copy = record.copied()
        copy.headers.append(self._header)
        return copy


class HeaderFrom(Sided):
    """Copies or moves fields to headers."""

    definition: ClassVar[Definition] = Definition([
        Setting("fields", ConfigType.LIST, importance=Importance.HIGH,
                doc="The fields to copy or move.", validator=non_empty_list),
        Setting("headers", ConfigType.LIST, importance=Importance.HIGH,
                doc="The headers' names, one for each field.", validator=non_empty_list),
        Setting("operation", ConfigType.STRING, importance=Importance.HIGH,
                doc="copy keeps the fields, move removes them.", validator=one_of("move", "copy")),
        REPLACE_NULL,
    ])  # fmt: skip

    def _configure(self, parsed: Mapping[str, Any]) -> None:
        self._fields: list[str] = parsed["fields"]
        self._headers: list[str] = parsed["headers"]
        if len(self._fields) != len(self._headers):
            raise ConfigError(
                "'fields' config must have the same number of elements as 'headers' config."
            )
        self._operation: str = parsed["operation"]
        self._replaces_null: bool = parsed[REPLACE_NULL.name]
        self._moves: Cache[Schema, Rebuild] = Cache(self._move)

    def _apply(self, record: ConnectRecord, schema: Schema | None, value: Any) -> ConnectRecord:
        purpose = f"header {self._operation}"
        is_move = self._operation == "move"
        if schema is None:
            entries = dict(require_map(value, purpose))
            headers = [
                Header(header, None, value.get(name))
                for name, header in zip(self._fields, self._headers, strict=True)
            ]
            for name in self._fields if is_move else ():
                entries.pop(name, None)
            changed = self._with(record, None, entries)
        else:
            struct = require_struct(value, purpose, schema)
            changed = record.copied()
            if is_move:
                made = self._moves(schema)(struct)
                changed = self._with(record, made.schema, made)
            headers = [
                self._header(schema, struct, name, header)
                for name, header in zip(self._fields, self._headers, strict=True)
            ]
        changed.headers.extend(headers)
        return changed

    def _header(self, schema: Schema, struct: Struct, name: str, header: str) -> Header:
        value = None
        if struct.schema.field(name) is not None:
            value = struct.get(name) if self._replaces_null else struct.get_without_default(name)
        field = schema.field(name)
        if field is None:
            raise NullPointerError(f"There is no field {name}")
        return Header(header, field.schema, value)

    def _move(self, schema: Schema) -> Rebuild:
        kept = [field for field in schema.fields if field.name not in self._fields]
        return of_fields(schema, kept, replaces_null=self._replaces_null)


HeaderFromKey, HeaderFromValue = two_sided(HeaderFrom)
