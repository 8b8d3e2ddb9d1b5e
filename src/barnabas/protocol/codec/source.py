"""Writing Python source and making a function of it."""

from collections.abc import Callable
from typing import Any

from barnabas.protocol.schema import EMPTY, Field, FieldType

INDENT = "    "

FIXED_FORMATS = {
    "bool": "?",
    "int8": "b",
    "int16": "h",
    "uint16": "H",
    "int32": "i",
    "uint32": "I",
    "int64": "q",
    "float64": "d",
    "uuid": "16s",
}
"""Kafka's fixed-width types as `struct` formats."""

FIXED_SIZES = {
    "bool": 1,
    "int8": 1,
    "int16": 2,
    "uint16": 2,
    "int32": 4,
    "uint32": 4,
    "int64": 8,
    "float64": 8,
    "uuid": 16,
}


class Source:
    """Lines of one function, the names it uses, and the objects those names stand for."""

    def __init__(self, version: int, is_flexible: bool) -> None:
        self.version = version
        self.is_flexible = is_flexible
        self.lines: list[str] = []
        self.depth = 1
        self.scope: dict[str, Any] = {}
        self._names: dict[int, str] = {}
        self._count = 0

    def line(self, text: str) -> None:
        """Add a line at the present depth."""
        self.lines.append(INDENT * self.depth + text)

    def name(self, hint: str) -> str:
        """A local variable that nothing else uses."""
        self._count += 1
        return f"{hint}{self._count}"

    def constant(self, hint: str, value: object) -> str:
        """A global of the function that stands for `value`."""
        name = self._names.get(id(value))
        if name is None:
            name = self._names[id(value)] = f"{hint}_{len(self._names)}"
            self.scope[name] = value
        return name

    def build(self, head: str) -> Callable[..., Any]:
        """Compile the lines under `def run(...)`."""
        exec("\n".join([head, *self.lines]), self.scope)  # the text holds declared names only
        built: Callable[..., Any] = self.scope["run"]
        return built

    def is_compact(self, field: Field) -> bool:
        """Return whether the field's length is an unsigned varint of length + 1."""
        if field.flexible is not None:
            return field.flexible.covers(self.version)
        return self.is_flexible

    def is_tagged(self, field: Field) -> bool:
        """Return whether the field travels among the tagged fields in this version."""
        return self.is_flexible and field.tagged.covers(self.version)

    def is_nullable(self, field: Field) -> bool:
        """Return whether the field may be None in this version."""
        return field.nullable.covers(self.version)

    def size_min(self, field_type: FieldType) -> int:
        """The fewest bytes that a value, not null, of this type takes as an array's element."""
        fixed = FIXED_SIZES.get(field_type.kind)
        if fixed is not None:
            return fixed
        if field_type.struct is None:
            return 1 if self.is_flexible else (2 if field_type.kind == "string" else 4)
        total = 1 if self.is_flexible else 0
        for field in field_type.struct.SCHEMA.fields:
            if not field.versions.covers(self.version) or self.is_tagged(field):
                continue
            if field.type.struct is not None and self.is_nullable(field):
                total += 1
            else:
                total += self.size_min(field.type)
        return total


def default_text(field: Field) -> str:
    """The default as an expression, for all but structs."""
    return "[]" if field.default is EMPTY else repr(field.default)
