"""The base of converters, and settings that several share.

Every process that uses a converter makes it with `configure`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final

from barnabas.connect.config.definition import (
    ConfigType,
    Definition,
    Importance,
    Setting,
)
from barnabas.connect.config.validators import one_of
from barnabas.connect.record import SinkColumn
from barnabas.schemas.converters.base import SchemaAndValue
from barnabas.schemas.data.schema import Schema

__all__ = ["CONVERTER_TYPE", "Converter", "HeaderConverter", "RawHeaders", "SchemaAndValue"]

RawHeaders = Sequence[tuple[str, bytes | None]]


class Converter(ABC):
    """Keys or values of one format."""

    definition: ClassVar[Definition] = Definition()

    def configure(self, settings: Mapping[str, Any], *, is_key: bool) -> None:
        """Take settings, without the prefix. Raises ConfigError."""

    @abstractmethod
    def from_connect(self, topic: str, schema: Schema | None, value: Any) -> bytes | None:
        """Return the bytes of a value; None is a tombstone. Raises DataError."""

    @abstractmethod
    def to_connect(
        self, topic: str, data: bytes | None, headers: RawHeaders = ()
    ) -> SchemaAndValue:
        """Return what bytes stand for. Raises DataError."""

    def from_column(
        self, topic: str, schema: Schema | None, values: Sequence[Any]
    ) -> list[bytes | None]:
        """Return the bytes of many values. Raises DataError if one of them cannot be written."""
        return [self.from_connect(topic, schema, value) for value in values]

    def to_column(self, topic: str, data: Sequence[bytes | None]) -> SinkColumn | None:
        """Return what many records' bytes stand for, None if their schemas differ.

        Raises DataError if one of them cannot be read.
        """
        pairs = [self.to_connect(topic, one) for one in data]
        schema = pairs[0][0]
        if any(own is not schema for own, _ in pairs):
            return None
        return SinkColumn(schema, [value for _, value in pairs])

    def close(self) -> None:
        """Close what it holds open."""


class HeaderConverter(ABC):
    """Headers of one format."""

    definition: ClassVar[Definition] = Definition()

    def configure(self, settings: Mapping[str, Any]) -> None:
        """Take settings, without the prefix. Raises ConfigError."""

    @abstractmethod
    def from_connect(
        self, topic: str, header: str, schema: Schema | None, value: Any
    ) -> bytes | None:
        """Return the bytes of a header's value. Raises DataError."""

    @abstractmethod
    def to_connect(self, topic: str, header: str, data: bytes | None) -> SchemaAndValue:
        """Return what a header's bytes stand for. Raises DataError."""

    def close(self) -> None:
        """Close what it holds open."""


CONVERTER_TYPE: Final = Setting(
    "converter.type",
    ConfigType.STRING,
    importance=Importance.LOW,
    doc="Use of the converter: key, value or header.",
    validator=one_of("key", "value", "header"),
)


def parse(definition: Definition, settings: Mapping[str, Any], use: str) -> dict[str, Any]:
    """The values of a converter's settings; `use` is key, value or header. Raises ConfigError."""
    return definition.parse({**settings, CONVERTER_TYPE.name: use})


def flag(name: str, doc: str, *, default: bool = False, **rest: Any) -> Setting:
    """A setting that is true or false; `rest` are further parts of it."""
    return Setting(name, ConfigType.BOOLEAN, default, doc=doc, **rest)
