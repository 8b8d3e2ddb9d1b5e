"""What a transform and a predicate are. Each is made with `configure` in every process."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

from barnabas.connect.config.definition import Definition
from barnabas.connect.record import ConnectRecord


class Transform(ABC):
    """Changes records one by one. Must not change its argument: copy with dataclasses.replace."""

    definition: ClassVar[Definition] = Definition()

    def configure(self, settings: Mapping[str, Any]) -> None:
        """Take parsed settings, without the prefix. Raises ConfigError."""

    @abstractmethod
    def apply(self, record: ConnectRecord) -> ConnectRecord | None:
        """Return the record that goes on; None drops it. Raises ConnectError."""

    def close(self) -> None:
        """Close what it holds open."""


class Predicate(ABC):
    """Says which records a transform is for."""

    definition: ClassVar[Definition] = Definition()

    def configure(self, settings: Mapping[str, Any]) -> None:
        """Take parsed settings, without the prefix. Raises ConfigError."""

    @abstractmethod
    def test(self, record: ConnectRecord) -> bool:
        """Whether the record is meant. Raises ConnectError."""

    def close(self) -> None:
        """Close what it holds open."""
