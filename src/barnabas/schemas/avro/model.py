"""An Avro schema as objects: built by the parser, read by all other modules.

Objects are built by the parser alone and are immutable from then on. A named type is one object
wherever it is used, so a schema is a graph, and a recursive one has cycles: code that walks it
keeps its own stack and remembers where it has been.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from barnabas.schemas.avro.json_text import equal

# Properties that the specification has no meaning for, in the order of the text.
Props = dict[str, Any]

PRIMITIVES = frozenset(("null", "boolean", "int", "long", "float", "double", "bytes", "string"))
TYPE_WORDS = PRIMITIVES | {"record", "enum", "array", "map", "union", "fixed"}


class _Missing:
    """The default value of a field that has none; null is a value."""

    def __repr__(self) -> str:
        return "MISSING"


MISSING = _Missing()


@dataclass(slots=True, frozen=True)
class Name:
    """The name of a record, enum or fixed. `space` is None outside of any namespace."""

    simple: str
    space: str | None
    full: str

    def seen_from(self, space: str | None) -> str:
        """The name as a text in a namespace says it: in full where a short one is not enough."""
        if self.space is not None and self.space == space and self.simple not in TYPE_WORDS:
            return self.simple
        return self.full

    def alias_of(self, owner: "Name") -> str:
        """The name as an alias, in full: with a dot before it if it has to leave a namespace."""
        return f".{self.simple}" if self.space is None and owner.space is not None else self.full


@dataclass(slots=True, eq=False)
class Primitive:
    """One of the eight primitive types."""

    kind: str
    props: Props


@dataclass(slots=True, eq=False)
class Array:
    """A list of values of one schema."""

    items: "Schema"
    props: Props
    kind: str = "array"


@dataclass(slots=True, eq=False)
class Map:
    """Strings to values of one schema."""

    values: "Schema"
    props: Props
    kind: str = "map"


@dataclass(slots=True, eq=False)
class Union:
    """A value of one of the branches. No branch is a union.

    `index` is made when a reader first asks which branches may read something.
    """

    branches: list["Schema"]
    kind: str = "union"
    # All branches are primitives: most unions, and no recursion is needed.
    is_plain: bool = False
    index: dict[str, list["Schema"]] = field(default_factory=dict)


@dataclass(slots=True, eq=False)
class Field:
    """A field of a record."""

    name: str
    type: "Schema"
    doc: str | None
    default: Any
    order: str
    aliases: tuple[str, ...]
    props: Props

    @property
    def has_default(self) -> bool:
        return self.default is not MISSING


@dataclass(slots=True, eq=False)
class Record:
    """A record, or an error of a protocol. `linked` is set when all names in it are found."""

    name: Name
    doc: str | None
    aliases: tuple[Name, ...]
    props: Props
    fields: list[Field]
    is_error: bool = False
    linked: bool = False
    kind: str = "record"
    field_by_name: dict[str, Field] = field(default_factory=dict)


class Unresolved(Record):
    """A name that no schema has yet: it may be defined further down."""

    __slots__ = ()


@dataclass(slots=True, eq=False)
class Enum:
    """One of a set of symbols."""

    name: Name
    doc: str | None
    aliases: tuple[Name, ...]
    props: Props
    symbols: tuple[str, ...]
    default: str | None
    kind: str = "enum"


@dataclass(slots=True, eq=False)
class Fixed:
    """A fixed number of bytes."""

    name: Name
    doc: str | None
    aliases: tuple[Name, ...]
    props: Props
    size: int
    kind: str = "fixed"


Named = Record | Enum | Fixed
Schema = Primitive | Array | Map | Union | Record | Enum | Fixed


def is_same(one: Schema, other: Schema) -> bool:
    """Compare two definitions of one name as Java does; cycles end where a pair is met again.

    Docs and aliases do not count, properties do. A name that is not found yet equals nothing.
    """
    seen: set[tuple[int, int]] = set()
    pairs = [(one, other)]
    while pairs:
        left, right = pairs.pop()
        key = (id(left), id(right))
        if left is right or key in seen:
            continue
        seen.add(key)
        if left.kind != right.kind or not _is_same_outside(left, right):
            return False
        pairs.extend(zip(_inside(left), _inside(right), strict=True))
    return True


def _is_same_outside(left: Schema, right: Schema) -> bool:
    if isinstance(left, Union) and isinstance(right, Union):
        return len(left.branches) == len(right.branches)
    if isinstance(left, Union) or isinstance(right, Union) or not equal(left.props, right.props):
        return False
    if isinstance(left, Primitive | Array | Map) or isinstance(right, Primitive | Array | Map):
        return True
    if left.name != right.name:
        return False
    if isinstance(left, Record) and isinstance(right, Record):
        if isinstance(left, Unresolved) or isinstance(right, Unresolved):
            return False
        return _fields_are_same(left, right)
    if isinstance(left, Enum) and isinstance(right, Enum):
        return left.symbols == right.symbols
    return isinstance(left, Fixed) and isinstance(right, Fixed) and left.size == right.size


def _fields_are_same(left: Record, right: Record) -> bool:
    return len(left.fields) == len(right.fields) and all(
        mine.name == its.name
        and mine.order == its.order
        and (mine.default is MISSING) == (its.default is MISSING)
        and (mine.default is MISSING or equal(mine.default, its.default))
        and equal(mine.props, its.props)
        for mine, its in zip(left.fields, right.fields, strict=True)
    )


def _inside(schema: Schema) -> Iterator[Schema]:
    if isinstance(schema, Record):
        return (field.type for field in schema.fields)
    if isinstance(schema, Union):
        return iter(schema.branches)
    if isinstance(schema, Array):
        return iter((schema.items,))
    return iter((schema.values,) if isinstance(schema, Map) else ())
