"""Settings and checks that several transforms have."""

from __future__ import annotations

import re
from typing import Any, Final

from barnabas.pipeline.connect.config.definition import ConfigType, Importance, Setting
from barnabas.pipeline.connect.config.validators import one_of_any_case
from barnabas.pipeline.connect.config.values import invalid
from barnabas.pipeline.sql.functions.java_regex import compile_java
from barnabas.pipeline.sql.functions.regex_characters import PatternError

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


def java_regex(name: str, value: Any) -> None:
    """A regular expression that Java takes. Raises ConfigError."""
    try:
        compile_java(value)
    except (PatternError, TypeError) as error:
        raise invalid(name, value, f"Invalid regex: {_as_java(str(error), value)}") from None


def _as_java(text: str, pattern: str) -> str:
    """PatternSyntaxException shows the pattern below its text, with a mark where it went wrong."""
    lines = [text.removesuffix(f": {pattern}"), pattern]
    found = re.search(r"near index (\d+)$", lines[0])
    if found and int(found[1]) < len(pattern):
        lines.append(" " * int(found[1]) + "^")
    return "\n".join(lines)
