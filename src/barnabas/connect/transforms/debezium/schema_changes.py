"""SchemaChangeEventFilter: leaves out changes of tables' definitions by their kind.

Source: io.debezium.transforms.SchemaChangeEventFilter (Debezium 3.3).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from barnabas.connect.config.definition import (
    ConfigType,
    Definition,
    Importance,
    Setting,
    Width,
)
from barnabas.connect.record import ConnectRecord
from barnabas.connect.transforms.base import PlainTransform, require_struct
from barnabas.connect.transforms.debezium.envelope import refused, typed
from barnabas.schemas.data.errors import IllegalArgumentError, NullPointerError
from barnabas.schemas.data.schema import Type

_NAME: Final = "schema.change.event.exclude.list"
_KINDS: Final = ("CREATE", "ALTER", "DROP", "TRUNCATE", "DATABASE")
_SCHEMAS: Final = (".SchemaChangeKey", ".SchemaChangeValue")


def _kinds(name: str, value: Any) -> None:
    if not value:
        raise refused(name, value, "A value is required")
    if not set(_list(value)) <= set(_KINDS):
        raise refused(name, value, f"Values must be among {', '.join(_KINDS)}")


def _list(text: str) -> list[str]:
    return [kind.strip() for kind in text.rstrip(",").split(",")]


class SchemaChangeEventFilter(PlainTransform):
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
