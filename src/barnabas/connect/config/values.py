"""The types of settings, how their text is read, and how their values are shown again.

Source: org.apache.kafka.common.config.ConfigDef.parseType and convertToString (Kafka 4.3).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final, TypeVar

from barnabas.base.config.definitions import HIDDEN
from barnabas.connect import plugins
from barnabas.connect.allowed_plugins import NotAllowedError
from barnabas.java.numbers import JAVA_SPACE, parse_double, parse_whole
from barnabas.schemas.data.errors import ConfigError
from barnabas.schemas.data.text import java_text

Text = TypeVar("Text", str, "str | None")


class ConfigType(StrEnum):
    """The types of settings; PASSWORD's values are never shown.

    Their values in Python: bool, str, int, float, list of str, Password, and of CLASS the class's
    full name as a string: `plugins.load` returns the class.
    """

    BOOLEAN = "BOOLEAN"
    STRING = "STRING"
    INT = "INT"
    SHORT = "SHORT"
    LONG = "LONG"
    DOUBLE = "DOUBLE"
    LIST = "LIST"
    CLASS = "CLASS"
    PASSWORD = "PASSWORD"


_COMMA: Final = re.compile(r"\s*,\s*")
_BITS: Final = {ConfigType.SHORT: 16, ConfigType.INT: 32, ConfigType.LONG: 64}
_NAMES: Final = {
    ConfigType.SHORT: "16-bit integer (short)",
    ConfigType.INT: "32-bit integer",
    ConfigType.LONG: "64-bit integer (long)",
}


class Password:
    """A secret: `value` has it, all else hides it."""

    __slots__ = ("value",)

    def __init__(self, value: str) -> None:
        self.value = value

    def __repr__(self) -> str:
        return HIDDEN

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Password) and other.value == self.value

    def __hash__(self) -> int:
        return hash(self.value)


def invalid(name: str, value: Any, text: str) -> ConfigError:
    """Return the error for a setting's value, in ConfigException's words."""
    return ConfigError(f"Invalid value {java_text(value)} for configuration {name}: {text}")


def missing(name: str) -> ConfigError:
    """Return the error for a setting that must be given and is not."""
    return ConfigError(f'Missing required configuration "{name}" which has no default value.')


def parse_value(name: str, value: Any, type_: ConfigType) -> Any:
    """Return what a text stands for; a value that has the type already is returned as it is.

    Raises ConfigError.
    """
    if value is None:
        return None
    if not isinstance(value, str):
        return _keep(name, value, type_)
    trimmed = value.strip(JAVA_SPACE)
    try:
        return _read(name, value, trimmed, type_)
    except ValueError:
        raise invalid(name, value, f"Not a number of type {type_}") from None


def _read(name: str, value: str, trimmed: str, type_: ConfigType) -> Any:
    if type_ is ConfigType.STRING:
        return trimmed
    if type_ is ConfigType.BOOLEAN:
        if trimmed.lower() not in ("true", "false"):
            raise invalid(name, value, "Expected value to be either true or false")
        return trimmed.lower() == "true"
    if type_ is ConfigType.PASSWORD:
        return Password(trimmed)
    if type_ is ConfigType.LIST:
        return _COMMA.split(trimmed) if trimmed else []
    if type_ is ConfigType.DOUBLE:
        return parse_double(trimmed)
    if type_ is ConfigType.CLASS:
        try:
            return plugins.full_name(trimmed)
        except NotAllowedError as error:
            raise invalid(name, value, str(error)) from None
        except ConfigError:
            raise invalid(name, value, plugins.absence(value)) from None
    half = 1 << (_BITS[type_] - 1)
    return parse_whole(trimmed, -half, half - 1)


def _keep(name: str, value: Any, type_: ConfigType) -> Any:
    """Values that Python code gives; the texts speak of Java's classes as Kafka's do."""
    is_whole = isinstance(value, int) and not isinstance(value, bool)
    if type_ is ConfigType.BOOLEAN:
        if isinstance(value, bool):
            return value
        raise invalid(name, value, "Expected value to be either true or false")
    if type_ in _BITS:
        if is_whole:
            return value
        kind = f"Expected value to be a {_NAMES[type_]}, but it was a {type(value).__name__}"
        raise invalid(name, value, kind)
    if type_ is ConfigType.DOUBLE and (is_whole or isinstance(value, float)):
        return float(value)
    if type_ is ConfigType.LIST:
        if isinstance(value, list | tuple):
            return list(value)
        raise invalid(name, value, "Expected a comma separated list.")
    if type_ is ConfigType.PASSWORD and isinstance(value, Password):
        return value
    if type_ is ConfigType.CLASS:
        raise invalid(name, value, "Expected a Class instance or class name.")
    what = "double" if type_ is ConfigType.DOUBLE else "string"
    raise invalid(
        name, value, f"Expected value to be a {what}, but it was a {type(value).__name__}"
    )


def with_prefix(settings: Mapping[str, Text], prefix: str) -> dict[str, Text]:
    """Return the settings under a prefix, without it."""
    return {
        name.removeprefix(prefix): value
        for name, value in settings.items()
        if name.startswith(prefix) and name != prefix
    }


def names(text: str) -> list[str]:
    """Return the parts of a list."""
    return [part.strip() for part in text.split(",") if part.strip()]


def number_of(
    settings: Mapping[str, str],
    name: str,
    default: int,
    least: int | None = None,
    type_: ConfigType = ConfigType.INT,
) -> int:
    """Return a whole number of settings, `default` if they lack it. Raises ConfigError."""
    number: int = parse_value(name, settings.get(name, default), type_)
    if least is not None and number < least:
        raise invalid(name, number, f"Value must be at least {least}")
    return number


def truth_of(settings: Mapping[str, str], name: str, *, default: bool = False) -> bool:
    """Return a truth value of settings, `default` if they lack it. Raises ConfigError."""
    value: bool = parse_value(name, settings.get(name, default), ConfigType.BOOLEAN)
    return value


def show_value(value: Any) -> str | None:
    """Return a parsed value as text, a secret hidden; None stays None."""
    if value is None:
        return None
    if isinstance(value, list | tuple):
        return ",".join(map(java_text, value))
    return java_text(value)
