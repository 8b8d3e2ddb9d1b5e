"""Debezium's envelope of a change: before, after, source, op."""

from __future__ import annotations

from typing import Any

from barnabas.connect.config.values import invalid
from barnabas.connect.record import ConnectRecord
from barnabas.schemas.data.errors import ConfigError, ConnectError, DataError
from barnabas.schemas.data.schema import Struct, Type

BEFORE, AFTER, SOURCE, OPERATION = "before", "after", "source", "op"


class DebeziumError(ConnectError):
    """An error for which Debezium raises a DebeziumException."""

    java_name = "io.debezium.DebeziumException"


def required(name: str, value: Any) -> None:
    """Raises ConfigError, in Debezium's words, for a setting without a value."""
    if not value:
        raise refused(name, value, "A value is required")


def refused(name: str, value: Any, text: str) -> ConfigError:
    """The error for a setting's value, in Debezium's words."""
    shown = ",".join(value) if isinstance(value, list) else value
    return invalid(name, shown, f"The '{name}' value is invalid: {text}")


def is_envelope(record: ConnectRecord) -> bool:
    """Return whether the value is a change in Debezium's envelope."""
    schema = record.value_schema
    return schema is not None and schema.name is not None and schema.name.endswith(".Envelope")


def typed(struct: Struct, name: str, kind: Type) -> Any:
    """The value of a field as it was put. Raises DataError if its type is another."""
    field = struct.schema.field(name)
    if field is None:
        raise DataError(f"{name} is not a valid field name")
    if field.schema.type is not kind:
        raise DataError(f"Field '{name}' is not of type {kind.name}")
    return struct.values[field.index]
