"""Settings and checks that several transforms have."""

from __future__ import annotations

from typing import Any, Final

from barnabas.connect.config.definition import ConfigType, Importance, Setting
from barnabas.connect.config.validators import one_of_any_case
from barnabas.connect.config.validators import regex as java_regex
from barnabas.connect.config.values import invalid

__all__ = ["FIELD_SYNTAX", "REPLACE_NULL", "java_regex", "non_empty_list"]
REPLACE_NULL: Final = Setting(
    "replace.null.with.default",
    ConfigType.BOOLEAN,
    default=True,
    importance=Importance.MEDIUM,
    doc="Whether a field that is null and has a default gets the default.",
)
FIELD_SYNTAX: Final = Setting(
    "field.syntax.version",
    ConfigType.STRING,
    default="V1",
    importance=Importance.HIGH,
    doc="How fields are named: V1 is the name of one at the top, V2 a path with dots between "
    "names, where a name with dots of its own stands in backticks.",
    validator=one_of_any_case("V1", "V2"),
)


def non_empty_list(name: str, value: Any) -> None:
    """A list with something in it. Raises ConfigError."""
    if not value:
        raise invalid(name, value, "Empty list")
