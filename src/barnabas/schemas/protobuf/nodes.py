"""A .proto file as a tree, in the order in which its canonical text has it.

Nodes are never changed once they are built; they are not frozen because that costs four times as
much. Two trees are equal if their canonical texts are: positions do not count, and of the order in
the text only that is kept which the canonical text has.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

FIELD_NUMBER_MAX = (1 << 29) - 1
ENUM_NUMBER_MAX = (1 << 31) - 1
ENUM_NUMBER_MIN = -(1 << 31)

SCALARS = frozenset(
    [
        "double",
        "float",
        "int32",
        "int64",
        "uint32",
        "uint64",
        "sint32",
        "sint64",
        "fixed32",
        "fixed64",
        "sfixed32",
        "sfixed64",
        "bool",
        "string",
        "bytes",
    ]
)


@dataclass(slots=True, unsafe_hash=True)
class Word:
    """A value of an option that stands without quotes: a number, `true`, `-inf`, an enum value."""

    text: str


@dataclass(slots=True, unsafe_hash=True)
class Aggregate:
    """A value of an option in braces. A key that came several times has the list of its values."""

    entries: tuple[tuple[str, Value], ...]


# A str is a quoted string. Bytes of it that are not UTF-8 are surrogates (PEP 383).
Value = str | Word | Aggregate | tuple["Value", ...]


@dataclass(slots=True)
class Option:
    """`parts` is the name: `("(a.b)", "c")` for `(a.b).c`, where parentheses name an extension."""

    parts: tuple[str, ...]
    value: Value
    position: int = field(default=-1, compare=False)

    @property
    def is_custom(self) -> bool:
        return self.parts[0][0] == "("

    @property
    def name(self) -> str:
        """The first part without its parentheses."""
        return self.parts[0].strip("()")


@dataclass(slots=True)
class Span:
    """Numbers from `first` to `last`, both included. `last` is None for a number on its own."""

    first: int
    last: int | None = None
    position: int = field(default=-1, compare=False)

    @property
    def end(self) -> int:
        return self.first if self.last is None else self.last


@dataclass(slots=True)
class Reserved:
    """One `reserved` statement: numbers or names."""

    items: tuple[Span | str, ...]
    position: int = field(default=-1, compare=False)


@dataclass(slots=True)
class Extensions:
    """One `extensions` statement: numbers that other files may use for fields."""

    spans: tuple[Span, ...]
    options: tuple[Option, ...] = ()
    position: int = field(default=-1, compare=False)


@dataclass(slots=True)
class Field:
    """`type` is the name as written; of a map it is that of the values, and `key_type` is set."""

    label: str | None
    type: str
    name: str
    number: int
    options: tuple[Option, ...] = ()
    key_type: str | None = None
    position: int = field(default=-1, compare=False)

    @property
    def is_map(self) -> bool:
        return self.key_type is not None


@dataclass(slots=True)
class Group:
    """A field whose message type is written in its place: `body` has the name of the group."""

    label: str | None
    number: int
    body: Message
    options: tuple[Option, ...] = ()
    position: int = field(default=-1, compare=False)

    @property
    def name(self) -> str:
        return self.body.name


@dataclass(slots=True)
class OneOf:
    """Fields of which at most one is set."""

    name: str
    fields: tuple[Field, ...] = ()
    groups: tuple[Group, ...] = ()
    options: tuple[Option, ...] = ()
    position: int = field(default=-1, compare=False)

    def members(self) -> Iterator[Field | Group]:
        yield from self.fields
        yield from self.groups


@dataclass(slots=True)
class Extend:
    """An `extend` block: fields for a message that is defined elsewhere."""

    name: str
    fields: tuple[Field, ...] = ()
    groups: tuple[Group, ...] = ()
    position: int = field(default=-1, compare=False)

    def members(self) -> Iterator[Field | Group]:
        yield from self.fields
        yield from self.groups


@dataclass(slots=True)
class EnumValue:
    """A name and a number of an enum."""

    name: str
    number: int
    options: tuple[Option, ...] = ()
    position: int = field(default=-1, compare=False)


@dataclass(slots=True)
class Enum:
    """An enum, with its values in the order of the text."""

    name: str
    values: tuple[EnumValue, ...] = ()
    reserved: tuple[Reserved, ...] = ()
    options: tuple[Option, ...] = ()
    position: int = field(default=-1, compare=False)


@dataclass(slots=True)
class Message:
    """A message, with what is defined in it."""

    name: str
    fields: tuple[Field, ...] = ()
    oneofs: tuple[OneOf, ...] = ()
    groups: tuple[Group, ...] = ()
    extensions: tuple[Extensions, ...] = ()
    extends: tuple[Extend, ...] = ()
    messages: tuple[Message, ...] = ()
    enums: tuple[Enum, ...] = ()
    reserved: tuple[Reserved, ...] = ()
    options: tuple[Option, ...] = ()
    position: int = field(default=-1, compare=False)

    @property
    def is_map_entry(self) -> bool:
        """True if a descriptor's entry of a map is a separate message here."""
        return any(o.parts == ("map_entry",) and o.value == Word("true") for o in self.options)

    def all_fields(self) -> Iterator[Field]:
        """Fields, and those of oneofs. Not groups."""
        yield from self.fields
        for oneof in self.oneofs:
            yield from oneof.fields

    def all_groups(self) -> Iterator[Group]:
        """Groups, and those of oneofs."""
        yield from self.groups
        for oneof in self.oneofs:
            yield from oneof.groups

    def members(self) -> Iterator[Field | Group]:
        """All that has a number."""
        yield from self.all_fields()
        yield from self.all_groups()


@dataclass(slots=True)
class Method:
    """An `rpc` of a service: names of messages as written."""

    name: str
    input: str
    output: str
    client_streaming: bool = False
    server_streaming: bool = False
    options: tuple[Option, ...] = ()
    position: int = field(default=-1, compare=False)


@dataclass(slots=True)
class Service:
    """A service, with its methods in the order of the text."""

    name: str
    methods: tuple[Method, ...] = ()
    options: tuple[Option, ...] = ()
    position: int = field(default=-1, compare=False)


@dataclass(slots=True)
class Import:
    """`kind` is empty, `public` or `weak`."""

    path: str
    kind: str = ""
    position: int = field(default=-1, compare=False)


@dataclass(slots=True)
class File:
    """`syntax` is `proto2`, `proto3`, a year (an edition) or None, which means proto2."""

    syntax: str | None = None
    package: str = ""
    imports: tuple[Import, ...] = ()
    options: tuple[Option, ...] = ()
    messages: tuple[Message, ...] = ()
    enums: tuple[Enum, ...] = ()
    extends: tuple[Extend, ...] = ()
    services: tuple[Service, ...] = ()
    # The file's declarations, by the path that it is known by: `scope.py` finds it once.
    names: dict[str, object] = field(default_factory=dict, compare=False, repr=False)

    @property
    def is_proto3(self) -> bool:
        return self.syntax == "proto3"

    @property
    def edition(self) -> str | None:
        return self.syntax if self.syntax is not None and self.syntax.isdigit() else None
