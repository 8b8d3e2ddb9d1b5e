"""Message schemas: each message is declared once, for all its versions, as a typed class.

    @message(versions="4-18", flexible="12+", api_key=1, listeners=("broker", "controller"))
    class FetchRequest(Message):
        max_wait_ms: int = int32("0+")
        topics: list[FetchTopic] = array_of(FetchTopic, "0+")

Each field names the versions that carry it. `nullable` names those in which it may be None,
`tagged` those in which it travels among the tagged fields at the end of its struct (KIP-482).
A field that a version lacks takes its default when decoded, and must hold its default when
encoded unless it is `ignorable`. Structs are declared above what uses them.

The decorators take the declared `Field`s out of the class body, and leave a slotted class whose
constructor takes keywords only. Neither constructors nor codecs exist before their first use; a
node that starts pays for none of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeVar, cast, dataclass_transform

if TYPE_CHECKING:
    from collections.abc import Callable

S = TypeVar("S", bound="Struct")

VERSION_MAX = 32767


class Versions(NamedTuple):
    """An inclusive range of versions; `first > last` is the empty one."""

    first: int
    last: int

    def covers(self, version: int) -> bool:
        """Return whether `version` lies in the range."""
        return self.first <= version <= self.last

    @property
    def is_empty(self) -> bool:
        """True if no version lies in the range."""
        return self.first > self.last


NO_VERSIONS = Versions(0, -1)


@cache
def parse_versions(text: str | None) -> Versions:
    """Read `3`, `2-5`, `4+` or `none`. None is the empty range. Raises ValueError otherwise."""
    if text is None or text == "none":
        return NO_VERSIONS
    if text.endswith("+"):
        return Versions(int(text[:-1]), VERSION_MAX)
    first, _, last = text.partition("-")
    return Versions(int(first), int(last or first))


class FieldType(NamedTuple):
    """`kind` is Kafka's name of a primitive, or `array` (of `element`) or `struct`."""

    kind: str
    element: FieldType | None = None
    struct: type[Struct] | None = None


@dataclass(slots=True)
class Field:
    """One declared field. `default` is a value; for a list or a struct it is None or EMPTY."""

    type: FieldType
    versions: Versions
    default: Any
    nullable: Versions
    tagged: Versions
    tag: int
    ignorable: bool
    map_key: bool
    flexible: Versions | None
    name: str = ""


class Empty:
    """The default of a field whose value is mutable: a new list, or a struct of defaults."""

    def __repr__(self) -> str:
        return "EMPTY"


EMPTY = Empty()


SECRETS = frozenset({"auth_bytes", "hmac", "salt", "salted_password", "server_key", "stored_key"})
"""Fields that are not shown, since what is shown gets into logs."""


@dataclass(slots=True)
class Schema:
    """The result of the decorators: the fields, and for a message its versions and its place."""

    fields: tuple[Field, ...]
    versions: Versions = NO_VERSIONS
    flexible: Versions = NO_VERSIONS
    api_key: int | None = None
    listeners: tuple[str, ...] = ()
    latest_version_unstable: bool = False


class Struct:
    """A group of fields. `unknown_tags` keeps (tag, bytes) pairs that no field claims."""

    __slots__ = ("unknown_tags",)

    SCHEMA: ClassVar[Schema] = Schema(())
    unknown_tags: list[tuple[int, bytes]] | None

    def __init__(self, **values: Any) -> None:
        """Replace this constructor by the compiled one of the class, then run that."""
        cls = type(self)
        init = _compile_init(cls)
        type.__setattr__(cls, "__init__", init)
        init(self, **values)

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return self.unknown_tags == other.unknown_tags and all(
            getattr(self, field.name) == getattr(other, field.name) for field in self.SCHEMA.fields
        )

    __hash__ = None  # type: ignore[assignment]  # mutable, as a dataclass with eq would be

    def __repr__(self) -> str:
        names = [field.name for field in self.SCHEMA.fields]
        shown = [
            f"{name}={'[hidden]' if name in SECRETS else repr(getattr(self, name))}"
            for name in names
        ]
        if self.unknown_tags:
            shown.append(f"unknown_tags={self.unknown_tags!r}")
        return f"{type(self).__name__}({', '.join(shown)})"


class Message(Struct):
    """A struct that stands alone: it has versions, and `codec` turns it into bytes."""

    __slots__ = ()


@dataclass_transform(kw_only_default=True)
def struct(cls: type[S]) -> type[S]:
    """Class decorator of a struct that messages contain."""
    return _slotted(cls, Schema(_take_fields(cls)))


@dataclass_transform(kw_only_default=True)
def message(
    *,
    versions: str,
    flexible: str = "none",
    api_key: int | None = None,
    listeners: tuple[str, ...] = (),
    latest_version_unstable: bool = False,
) -> Callable[[type[S]], type[S]]:
    """Class decorator of a message.

    `flexible` names the versions with compact lengths and tagged fields. `api_key` is the API's
    number, or the type of a metadata or coordinator record.
    """

    def declare(cls: type[S]) -> type[S]:
        schema = Schema(
            _take_fields(cls),
            parse_versions(versions),
            parse_versions(flexible),
            api_key,
            listeners,
            latest_version_unstable,
        )
        return _slotted(cls, schema)

    return declare


def _take_fields(cls: type[Struct]) -> tuple[Field, ...]:
    """The fields in the order of the class body, each told its name."""
    fields = []
    for name, value in vars(cls).items():
        if isinstance(value, Field):
            value.name = name
            fields.append(value)
    return tuple(fields)


def _slotted(cls: type[S], schema: Schema) -> type[S]:
    """The same class with slots in place of class attributes."""
    body = {
        name: value
        for name, value in vars(cls).items()
        if name not in ("__dict__", "__weakref__") and not isinstance(value, Field)
    }
    body["__slots__"] = tuple(field.name for field in schema.fields)
    body["__qualname__"] = cls.__qualname__
    body["SCHEMA"] = schema
    return cast("type[S]", type(cls.__name__, cls.__bases__, body))


def _compile_init(cls: type[Struct]) -> Callable[..., None]:
    """A constructor that takes every field as a keyword and stores it."""
    parameters, stores = [], ["self.unknown_tags = None"]
    scope: dict[str, Any] = {"EMPTY": EMPTY}
    for field in cls.SCHEMA.fields:
        name, value = field.name, field.name
        if field.default is EMPTY:
            fresh = "[]"
            if field.type.struct is not None:
                scope[f"new_{name}"] = field.type.struct
                fresh = f"new_{name}()"
            parameters.append(f"{name}=EMPTY")
            value = f"{fresh} if {name} is EMPTY else {name}"
        else:
            parameters.append(f"{name}={field.default!r}")
        stores.append(f"self.{name} = {value}")
    head = f"def __init__(self, {'*, ' if parameters else ''}{', '.join(parameters)}):"
    exec("\n    ".join([head, *stores]), scope)  # the text holds declared names only
    return cast("Callable[..., None]", scope["__init__"])
