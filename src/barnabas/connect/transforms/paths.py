"""Where a field is: at the top, or by a path through structs and maps (KIP-821).

Source: org.apache.kafka.connect.transforms.field.SingleFieldPath (Kafka 4.3).
"""

from __future__ import annotations

from typing import Any

from barnabas.connect.transforms.sides import require_map, require_struct
from barnabas.schemas.data.errors import ConfigError, DataError
from barnabas.schemas.data.schema import Field, Schema, Struct, Type

_PURPOSE = "nested field access"


class FieldPath:
    """A path; `version` is V1 or V2. Raises ConfigError for one that cannot be read."""

    def __init__(self, path: str, version: str) -> None:
        self.steps = [path] if version.upper() == "V1" else _steps(path)

    def field(self, schema: Schema) -> Field | None:
        """The field of a schema that the path leads to. Raises DataError."""
        field: Field | None = None
        current = schema
        for step in self.steps:
            if current.type is not Type.STRUCT:
                raise DataError("Cannot look up fields on non-struct type")
            field = current.field(step)
            if field is None:
                return None
            current = field.schema
        return field

    def of_struct(self, struct: Struct, *, with_default: bool) -> Any:
        """The value that the path leads to; null where it leads nowhere. Raises DataError."""
        current = struct
        for step in self.steps[:-1]:
            if current.schema.field(step) is None:
                return None
            inner = current.get(step)
            if inner is None:
                return None
            current = require_struct(inner, _PURPOSE)
        last = self.steps[-1]
        if current.schema.field(last) is None:
            return None
        return current.get(last) if with_default else current.get_without_default(last)

    def of_map(self, entries: Any) -> Any:
        """The value that the path leads to; null where it leads nowhere. Raises DataError."""
        current = entries
        for step in self.steps[:-1]:
            inner = current.get(step)
            if inner is None:
                return None
            current = require_map(inner, _PURPOSE)
        return current.get(self.steps[-1])


def _steps(path: str) -> list[str]:
    steps = []
    at = 0
    while at < len(path):
        if path[at] == "`":
            step, at = _quoted_step(path, at)
        else:
            dot = path.find(".", at)
            end = len(path) if dot < 0 else dot
            step, at = path[at:end], end + 1
        steps.append(step)
    if path.endswith("."):
        steps.append("")
    return steps


def _quoted_step(path: str, first: int) -> tuple[str, int]:
    """A name in backticks, and where the next begins.

    A backtick ends the name only before a dot or at the end of the path; `\\`` before a dot is a
    backtick of the name.
    """
    parts: list[str] = []
    start = at = first + 1
    while True:
        at = path.find("`", at)
        if at < 0:
            raise _incomplete(path, first)
        is_escaped = path[at - 1] == "\\"
        if at >= len(path) - 1:
            if is_escaped:
                raise _incomplete(path, first)
            return "".join([*parts, path[start:at]]), at + 1
        if path[at + 1] == "." and not is_escaped:
            return "".join([*parts, path[start:at]]), at + 2
        if path[at + 1] == ".":
            parts.append(path[start : at - 1] + "`")
            start = at + 1
        at += 1


def _incomplete(path: str, first: int) -> ConfigError:
    return ConfigError(
        f"Incomplete backtick pair in path: [{path}], consider adding a backslash before backtick "
        f"at position {first} to escape it"
    )
