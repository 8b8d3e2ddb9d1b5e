"""What a converter is. Each is made with `configure` in every process that uses it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from barnabas.connect.config.definition import Definition
from barnabas.schemas.data.schema import Schema

SchemaAndValue = tuple[Schema | None, Any]
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
