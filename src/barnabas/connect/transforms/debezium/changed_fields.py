"""ExtractChangedRecordState: headers with the names of fields that a change has changed.

Source: io.debezium.transforms.ExtractChangedRecordState (Debezium 3.3).
"""

from __future__ import annotations

from collections.abc import Mapping
from math import copysign, isnan
from typing import Any, ClassVar, Final

from barnabas.connect.config.definition import (
    ConfigType,
    Definition,
    Importance,
    Setting,
    Width,
)
from barnabas.connect.record import ConnectRecord, Header
from barnabas.connect.transforms.base import PlainTransform, require_struct
from barnabas.connect.transforms.debezium.envelope import AFTER, BEFORE, is_envelope
from barnabas.schemas.data.builder import OPTIONAL_STRING, array_of
from barnabas.schemas.data.schema import Schema

_CHANGED: Final = "header.changed.name"
_UNCHANGED: Final = "header.unchanged.name"


def _setting(name: str, title: str, doc: str) -> Setting:
    return Setting(
        name,
        ConfigType.STRING,
        None,
        Importance.LOW,
        doc,
        order=1,
        width=Width.LONG,
        display_name=title,
    )


class ExtractChangedRecordState(PlainTransform):
    """Tells by headers which fields of a row an update changed and which not."""

    definition: ClassVar[Definition] = Definition(
        [
            _setting(
                _CHANGED,
                "Header change name.",
                "The header that lists fields whose values changed; none where it is not set.",
            ),
            _setting(
                _UNCHANGED,
                "Header unchanged name.",
                "The header that lists fields whose values stayed; none where it is not set.",
            ),
        ]
    )

    def _configure(self, parsed: Mapping[str, Any]) -> None:
        self._changed = _header_of(parsed[_CHANGED])
        self._unchanged = _header_of(parsed[_UNCHANGED])

    def apply(self, record: ConnectRecord) -> ConnectRecord:
        """Return the change with the headers, empty where it is no update. Raises ConnectError."""
        if record.value is None or not is_envelope(record):
            return record
        envelope = require_struct(record.value, "Record value should be struct.")
        row, old = envelope.get(AFTER), envelope.get(BEFORE)
        changed: list[str] = []
        unchanged: list[str] = []
        if row is not None and old is not None:
            row = require_struct(row, "After value should be struct.")
            old = require_struct(old, "Before value should be struct.")
            for field, value in zip(row.schema.fields, row.values, strict=True):
                is_same = _is_same(value, old.get_without_default(field.name))
                (unchanged if is_same else changed).append(field.name)
        copy = record.copied()
        for schema, names in ((self._changed, changed), (self._unchanged, unchanged)):
            if schema is not None:
                assert schema.name is not None
                copy.headers.append(Header(schema.name, schema, names))
        return copy


def _header_of(name: str | None) -> Schema | None:
    """The schema of a header, which has the header's name."""
    return array_of(OPTIONAL_STRING, optional=True, name=name) if name else None


def _is_same(value: Any, old: Any) -> bool:
    """Return whether Java's equals holds, by which NaN is NaN and 0.0 is not -0.0."""
    if isinstance(value, float) and isinstance(old, float):
        if isnan(value) or isnan(old):
            return isnan(value) and isnan(old)
        return value == old and copysign(1, value) == copysign(1, old)
    return bool(value == old)
