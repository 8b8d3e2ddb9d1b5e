"""The interfaces of transforms and predicates. Each is made with `configure` in every process."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Final

from barnabas.connect.config.definition import ConfigType, Definition, Importance, Setting
from barnabas.connect.config.validators import one_of_any_case
from barnabas.connect.config.values import invalid
from barnabas.connect.record import ConnectRecord


class Transform(ABC):
    """Changes records one by one. Must not change its argument: copy with dataclasses.replace."""

    definition: ClassVar[Definition] = Definition()
    masks: ClassVar[bool] = False
    """True if it masks fields: status and log then do not quote records as they are before."""

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
        """Return whether the record is meant. Raises ConnectError."""

    def close(self) -> None:
        """Close what it holds open."""


# Settings and checks that several transforms have.

REPLACE_NULL: Final = Setting(
    "replace.null.with.default",
    ConfigType.BOOLEAN,
    default=True,
    importance=Importance.MEDIUM,
    doc="Replace null with the field's default, if it has one.",
)
FIELD_SYNTAX: Final = Setting(
    "field.syntax.version",
    ConfigType.STRING,
    default="V1",
    importance=Importance.HIGH,
    doc="Syntax of field names: V1 is the name of a top-level field, V2 a path with dots between "
    "names, where names that contain dots are quoted with backticks.",
    validator=one_of_any_case("V1", "V2"),
)


def non_empty_list(name: str, value: Any) -> None:
    """A list with something in it. Raises ConfigError."""
    if not value:
        raise invalid(name, value, "Empty list")
