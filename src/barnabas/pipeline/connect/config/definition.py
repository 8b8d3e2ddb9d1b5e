"""What a setting of a connector, transform or converter is, and how its text is checked.

Names, texts of errors and the JSON of `PUT /connector-plugins/{plugin}/config/validate` are those
of Kafka's ConfigDef (Kafka 4.3).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final


class ConfigType(StrEnum):
    """The types of settings; PASSWORD's values are never shown."""

    BOOLEAN = "BOOLEAN"
    STRING = "STRING"
    INT = "INT"
    SHORT = "SHORT"
    LONG = "LONG"
    DOUBLE = "DOUBLE"
    LIST = "LIST"
    CLASS = "CLASS"
    PASSWORD = "PASSWORD"


class Importance(StrEnum):
    """How much a setting matters."""

    HIGH = "HIGH"
    MEDIUM = "MEDIUM"
    LOW = "LOW"


class Width(StrEnum):
    """How wide a field for the value is."""

    NONE = "NONE"
    SHORT = "SHORT"
    MEDIUM = "MEDIUM"
    LONG = "LONG"


class NoDefault:
    """The default of a setting that must be given."""


NO_DEFAULT: Final = NoDefault()
Validator = Callable[[str, Any], None]
"""Takes name and parsed value; raises ConfigError."""
Recommender = Callable[[str, Mapping[str, Any]], list[Any]]


@dataclass(slots=True, frozen=True)
class Setting:
    """One setting."""

    name: str
    type: ConfigType
    default: Any = NO_DEFAULT
    importance: Importance = Importance.MEDIUM
    doc: str = ""
    group: str | None = None
    order: int = -1
    width: Width = Width.NONE
    display_name: str | None = None
    dependents: tuple[str, ...] = ()
    validator: Validator | None = field(default=None, compare=False)
    recommender: Recommender | None = field(default=None, compare=False)


class Definition:
    """The settings of one connector, transform or converter."""

    def __init__(self, settings: Iterable[Setting] = ()) -> None:
        self.settings: dict[str, Setting] = {setting.name: setting for setting in settings}
