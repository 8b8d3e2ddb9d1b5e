"""Checks of settings' values, beyond their types. Each raises ConfigError with Kafka's text.

A validator also sees None, where a value could not be read: Kafka's then complain a second time,
and so do these. Source: org.apache.kafka.common.config.ConfigDef (Kafka 4.3).
"""

from __future__ import annotations

import re
import unicodedata
from typing import Any

from barnabas.connect.config.definition import Validator
from barnabas.connect.config.values import invalid
from barnabas.java.hash import hash_set_order
from barnabas.java.regex import compile_java
from barnabas.java.regex_characters import PatternError
from barnabas.schemas.data.errors import ConfigError
from barnabas.schemas.data.text import java_text


def between(low: float | None, high: float | None = None) -> Validator:
    """A number that is neither below nor above (Range)."""

    def check(name: str, value: Any) -> None:
        if value is None:
            raise invalid(name, None, "Value must be non-null")
        if low is not None and value < low:
            raise invalid(name, value, f"Value must be at least {low}")
        if high is not None and value > high:
            raise invalid(name, value, f"Value must be no more than {high}")

    return check


def at_least(low: float) -> Validator:
    """A number that is not below (Range.atLeast)."""
    return between(low)


def one_of(*allowed: str) -> Validator:
    """One of some texts (ValidString)."""

    def check(name: str, value: Any) -> None:
        if value not in allowed:
            raise invalid(
                name, value, f"String must be one of: {', '.join(map(java_text, allowed))}"
            )

    return check


def one_of_any_case(*allowed: str) -> Validator:
    """One of some texts, in capitals or not (CaseInsensitiveValidString)."""
    upper = hash_set_order(text.upper() for text in allowed)

    def check(name: str, value: Any) -> None:
        if value is None or value.upper() not in upper:
            text = f"String must be one of (case insensitive): {', '.join(upper)}"
            raise invalid(name, value, text)

    return check


def list_of(*allowed: str, is_empty_allowed: bool = True) -> Validator:
    """A list without duplicates; with arguments, of these texts only (ValidList)."""
    inner = one_of(*allowed)

    def check(name: str, value: Any) -> None:
        if value is None:
            raise ConfigError(f"Configuration '{name}' values must not be null.")
        if not value and not is_empty_allowed:
            what = f"[{', '.join(allowed)}]" if allowed else "any non-empty value"
            raise ConfigError(
                f"Configuration '{name}' must not be empty. Valid values include: {what}"
            )
        if len(set(value)) != len(value):
            raise ConfigError(f"Configuration '{name}' values must not be duplicated.")
        for item in value:
            if item == "":
                raise ConfigError(f"Configuration '{name}' values must not be empty.")
            if allowed:
                inner(name, item)

    return check


def non_null(name: str, value: Any) -> None:
    """A value (NonNullValidator)."""
    if value is None:
        raise invalid(name, None, "entry must be non null")


def non_empty(name: str, value: Any) -> None:
    """A text with something in it, or none at all (NonEmptyString)."""
    if value == "":
        raise invalid(name, value, "String must be non-empty")


def non_empty_without_control_characters(name: str, value: Any) -> None:
    """As `non_empty`, and nothing of ISO's control characters in it."""
    if value is None:
        return
    if value == "":
        raise invalid(name, value, "String may not be empty")
    controls = [str(ord(char)) for char in value if unicodedata.category(char) == "Cc"]
    if controls:
        text = "String may not contain control sequences but had the following ASCII chars: "
        raise invalid(name, value, text + ", ".join(controls))


def all_of(*validators: Validator) -> Validator:
    """Return a validator that requires all of these (CompositeValidator)."""

    def check(name: str, value: Any) -> None:
        for validator in validators:
            validator(name, value)

    return check


def optional(validator: Validator) -> Validator:
    """A valid value, or none."""

    def check(name: str, value: Any) -> None:
        if value is not None:
            validator(name, value)

    return check


def regex(name: str, value: Any) -> None:
    """A regular expression that Java takes. Raises ConfigError."""
    try:
        compile_java(value)
    except (PatternError, TypeError) as error:
        raise invalid(name, value, f"Invalid regex: {_as_java(str(error), value)}") from None


def _as_java(text: str, pattern: str) -> str:
    """PatternSyntaxException shows the pattern below its text, with a mark where it went wrong."""
    lines = [text.removesuffix(f": {pattern}"), pattern]
    place = re.search(r"near index (\d+)$", lines[0])
    if place and int(place[1]) < len(pattern):
        lines.append(" " * int(place[1]) + "^")
    return "\n".join(lines)
