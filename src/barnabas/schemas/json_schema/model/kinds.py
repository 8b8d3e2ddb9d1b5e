"""The kinds of constraints that the compatibility rules know."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from barnabas.schemas.json_schema.references import Place

Number = Any  # int | Decimal, as decoded
Criterion = Literal["allOf", "anyOf", "oneOf"]


@dataclass(slots=True, eq=False)
class Schema:
    """A schema of any kind. `source` is the object (or boolean) in the document that it is of."""

    source: Any = None
    is_part: bool = False
    """One of several that a single object of the document is made of."""

    @property
    def has_default(self) -> bool:
        """True if the object gives a value to use in its absence."""
        return isinstance(self.source, dict) and "default" in self.source

    @property
    def is_connect_bytes(self) -> bool:
        """True if Kafka Connect wrote it for bytes; it has written two types for decimals."""
        return isinstance(self.source, dict) and self.source.get("connect.type") == "bytes"


@dataclass(slots=True, eq=False)
class EmptySchema(Schema):
    """Allows all."""


@dataclass(slots=True, eq=False)
class TrueSchema(EmptySchema):
    """Allows all, by a boolean."""


@dataclass(slots=True, eq=False)
class FalseSchema(Schema):
    """Allows nothing."""


@dataclass(slots=True, eq=False)
class ReferenceSchema(Schema):
    """A `$ref`. Its target is read when it is first used."""

    text: str = ""
    place: Place | None = None
    follow: "Callable[[ReferenceSchema], Schema] | None" = None
    """Finds the schema at the end of the references."""

    def target(self) -> Schema:
        """The schema at the end of the references; itself if they lead nowhere."""
        return self if self.follow is None else self.follow(self)


@dataclass(slots=True, eq=False)
class ConstSchema(Schema):
    """One value."""

    value: Any = None


@dataclass(slots=True, eq=False)
class EnumSchema(Schema):
    """Some values, as their keys."""

    values: frozenset[Any] = frozenset()


@dataclass(slots=True, eq=False)
class CombinedSchema(Schema):
    """allOf, anyOf, oneOf, several types, or keywords of several kinds."""

    criterion: Criterion = "allOf"
    parts: list[Schema] = field(default_factory=list)
    is_generated: bool = False


@dataclass(slots=True, eq=False)
class NotSchema(Schema):
    """A schema of what is not allowed."""

    inner: Schema = field(default_factory=EmptySchema)


@dataclass(slots=True, eq=False)
class ConditionalSchema(Schema):
    """if, then, else."""

    branches: dict[str, Schema] = field(default_factory=dict)


@dataclass(slots=True, eq=False)
class NullSchema(Schema):
    """null."""


@dataclass(slots=True, eq=False)
class BooleanSchema(Schema):
    """true and false."""


@dataclass(slots=True, eq=False)
class StringSchema(Schema):
    """Strings."""

    min_length: Number | None = None
    max_length: Number | None = None
    pattern: str | None = None


@dataclass(slots=True, eq=False)
class NumberSchema(Schema):
    """Numbers, or only integers."""

    is_integer: bool = False
    minimum: Number | None = None
    maximum: Number | None = None
    exclusive_minimum: Number | None = None
    exclusive_maximum: Number | None = None
    multiple_of: Number | None = None


@dataclass(slots=True, eq=False)
class ArraySchema(Schema):
    """Arrays. `each` is for all items; `first` for those in front, `rest` for those behind them."""

    min_items: Number | None = None
    max_items: Number | None = None
    unique_items: bool = False
    each: Schema | None = None
    first: list[Schema] = field(default_factory=list)
    allows_rest: bool = True
    rest: Schema | None = None
    unevaluated: Schema | None = None
    min_contains: Number | None = None
    max_contains: Number | None = None


@dataclass(slots=True, eq=False)
class ObjectSchema(Schema):
    """Objects. `rest` is for properties that no name and no pattern says anything about."""

    properties: dict[str, Schema] = field(default_factory=dict)
    patterns: dict[str, Schema] = field(default_factory=dict)
    allows_rest: bool = True
    rest: Schema | None = None
    unevaluated: Schema | None = None
    required: set[str] = field(default_factory=set)
    min_properties: Number | None = None
    max_properties: Number | None = None
    needed_names: dict[str, set[str]] = field(default_factory=dict)
    needed_schemas: dict[str, Schema] = field(default_factory=dict)
