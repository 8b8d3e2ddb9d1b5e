"""Transforms that work on keys or on values.

Each is written once as a subclass of `Sided`; `two_sided` makes of it the two classes that Kafka
names `…$Key` and `…$Value`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

from barnabas.connect.config.definition import Definition
from barnabas.connect.record import ConnectRecord
from barnabas.connect.transforms.base import Transform
from barnabas.schemas.data.errors import DataError
from barnabas.schemas.data.schema import Schema, Struct, java_class


class Sided(Transform, ABC):
    """A transform of the key or the value of a record."""

    is_key: ClassVar[bool] = False

    def configure(self, settings: Mapping[str, Any]) -> None:
        """Take settings, without the prefix. Raises ConfigError."""
        self._configure(self.definition.parse(settings))

    def _configure(self, parsed: Mapping[str, Any]) -> None:
        """Take parsed settings. Raises ConfigError."""

    def apply(self, record: ConnectRecord) -> ConnectRecord | None:
        """Return the record that goes on. Raises ConnectError."""
        if self.is_key:
            return self._apply(record, record.key_schema, record.key)
        return self._apply(record, record.value_schema, record.value)

    @abstractmethod
    def _apply(self, record: ConnectRecord, schema: Schema | None, value: Any) -> ConnectRecord:
        """Return the record with another key or value. Raises ConnectError."""

    def _with(self, record: ConnectRecord, schema: Schema | None, value: Any) -> ConnectRecord:
        """Return a copy of the record with that key or value."""
        copy = record.copied()
        if self.is_key:
            copy.key_schema, copy.key = schema, value
        else:
            copy.value_schema, copy.value = schema, value
        return copy


def two_sided(transform: type[Sided]) -> tuple[type[Sided], type[Sided]]:
    """Return the classes for keys and for values."""
    name, place = transform.__name__, {"__module__": transform.__module__}
    return (
        type(f"{name}Key", (transform,), {**place, "is_key": True}),
        type(f"{name}Value", (transform,), {**place, "is_key": False}),
    )


class PlainTransform(Transform):
    """A transform with settings of which `configure` takes the parsed values."""

    definition: ClassVar[Definition] = Definition()

    def configure(self, settings: Mapping[str, Any]) -> None:
        """Take settings, without the prefix. Raises ConfigError."""
        self._configure(self.definition.parse(settings))

    def _configure(self, parsed: Mapping[str, Any]) -> None:
        """Take parsed settings. Raises ConfigError."""


def require_map(value: Any, purpose: str) -> Mapping[str, Any]:
    """The value, if it is a map. Raises DataError."""
    if isinstance(value, Mapping):
        return value
    raise DataError(
        f"Only Map objects supported in absence of schema for [{purpose}], "
        f"found: {_class_name(value)}"
    )


def require_struct(value: Any, purpose: str, schema: Schema | None = None) -> Struct:
    """The value, if it is a struct; the schema tells what else it is. Raises DataError."""
    if type(value) is Struct:
        return value
    class_name = _class_name(value, schema)
    raise DataError(f"Only Struct objects supported for [{purpose}], found: {class_name}")


def _class_name(value: Any, schema: Schema | None = None) -> str:
    if value is None:
        return "null"
    if type(value) is int and schema is None:
        return "java.lang.Long"
    return java_class(value, schema).removeprefix("class ")
