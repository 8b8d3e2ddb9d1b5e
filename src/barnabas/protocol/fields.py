"""The functions that declare a field in the body of a message or struct.

They are typed as the value that the field will hold, so that type checkers see a class with
defaults; what they return is a `Field`, which the class decorators of `schema` take away.
"""

from collections.abc import Callable
from typing import TypeVar, cast, overload

from barnabas.base.disk import Buffer
from barnabas.base.ids import ZERO_UUID, Uuid
from barnabas.protocol.schema import EMPTY, Empty, Field, FieldType, Struct, parse_versions

T = TypeVar("T")
S = TypeVar("S", bound=Struct)


def boolean(
    versions: str,
    *,
    default: bool = False,
    tagged: str | None = None,
    tag: int = -1,
    ignorable: bool = False,
) -> bool:
    """One byte; anything but zero is true."""
    return cast("bool", _field("bool", versions, default, None, tagged, tag, ignorable))


def float64(versions: str, *, default: float = 0.0, ignorable: bool = False) -> float:
    """Eight bytes, IEEE 754."""
    return cast("float", _field("float64", versions, default, None, None, -1, ignorable))


def _integer(kind: str) -> Callable[..., int]:
    def declare(
        versions: str,
        *,
        default: int = 0,
        tagged: str | None = None,
        tag: int = -1,
        ignorable: bool = False,
        map_key: bool = False,
    ) -> int:
        return cast("int", _field(kind, versions, default, None, tagged, tag, ignorable, map_key))

    _ELEMENT_KINDS[declare] = kind
    return declare


_ELEMENT_KINDS: dict[object, str] = {}
"""The arguments of `array_of` for primitive elements: the functions that declare such fields."""

int8 = _integer("int8")
int16 = _integer("int16")
uint16 = _integer("uint16")
int32 = _integer("int32")
uint32 = _integer("uint32")
int64 = _integer("int64")


def uuid(
    versions: str,
    *,
    default: Uuid = ZERO_UUID,
    tagged: str | None = None,
    tag: int = -1,
    ignorable: bool = False,
    map_key: bool = False,
) -> Uuid:
    """Sixteen bytes."""
    return cast("Uuid", _field("uuid", versions, default, None, tagged, tag, ignorable, map_key))


@overload
def string(
    versions: str,
    *,
    default: str = ...,
    tagged: str | None = ...,
    tag: int = ...,
    ignorable: bool = ...,
    map_key: bool = ...,
) -> str: ...
@overload
def string(
    versions: str,
    *,
    nullable: str,
    default: str | None = ...,
    tagged: str | None = ...,
    tag: int = ...,
    ignorable: bool = ...,
    map_key: bool = ...,
    flexible: str | None = ...,
) -> str | None: ...
def string(
    versions: str,
    *,
    nullable: str | None = None,
    default: str | None = "",
    tagged: str | None = None,
    tag: int = -1,
    ignorable: bool = False,
    map_key: bool = False,
    flexible: str | None = None,
) -> str | None:
    """UTF-8, at most 32767 bytes. `flexible` overrides the message's (the request header does)."""
    field = _field("string", versions, default, nullable, tagged, tag, ignorable, map_key, flexible)
    return cast("str | None", field)


@overload
def binary(versions: str, *, default: bytes = ..., ignorable: bool = ...) -> bytes: ...
@overload
def binary(
    versions: str, *, nullable: str, default: bytes | None = ..., ignorable: bool = ...
) -> bytes | None: ...
def binary(
    versions: str,
    *,
    nullable: str | None = None,
    default: bytes | None = b"",
    ignorable: bool = False,
) -> bytes | None:
    """Kafka's `bytes`: copied out of the frame when decoded."""
    return cast("bytes | None", _field("bytes", versions, default, nullable, None, -1, ignorable))


@overload
def record_batches(versions: str, *, ignorable: bool = ...) -> Buffer: ...
@overload
def record_batches(versions: str, *, nullable: str, ignorable: bool = ...) -> Buffer | None: ...
def record_batches(
    versions: str,
    *,
    nullable: str | None = None,
    ignorable: bool = False,
) -> Buffer | None:
    """Kafka's `records`: a view into the frame when decoded; a separate part when encoded.

    The default is None where some version allows it, else no bytes.
    """
    default = b"" if nullable is None else None
    field = _field("records", versions, default, nullable, None, -1, ignorable)
    return cast("Buffer | None", field)


@overload
def array_of(
    element: Callable[..., T],
    versions: str,
    *,
    default: Empty = ...,
    tagged: str | None = ...,
    tag: int = ...,
    ignorable: bool = ...,
) -> list[T]: ...
@overload
def array_of(
    element: Callable[..., T],
    versions: str,
    *,
    nullable: str,
    default: Empty | None = ...,
    tagged: str | None = ...,
    tag: int = ...,
    ignorable: bool = ...,
) -> list[T] | None: ...
def array_of(
    element: Callable[..., T],
    versions: str,
    *,
    nullable: str | None = None,
    default: Empty | None = EMPTY,
    tagged: str | None = None,
    tag: int = -1,
    ignorable: bool = False,
) -> list[T] | None:
    """A list of `element`: a struct class, or the function that declares a primitive field."""
    kind = _ELEMENT_KINDS.get(element)
    if kind is None:
        of = FieldType("struct", struct=cast("type[Struct]", element))
    else:
        of = FieldType(kind)
    field = _field(FieldType("array", of), versions, default, nullable, tagged, tag, ignorable)
    return cast("list[T] | None", field)


@overload
def nested(
    cls: type[S],
    versions: str,
    *,
    default: Empty = ...,
    tagged: str | None = ...,
    tag: int = ...,
    ignorable: bool = ...,
) -> S: ...
@overload
def nested(
    cls: type[S],
    versions: str,
    *,
    nullable: str,
    default: Empty | None = ...,
    tagged: str | None = ...,
    tag: int = ...,
    ignorable: bool = ...,
) -> S | None: ...
def nested(
    cls: type[S],
    versions: str,
    *,
    nullable: str | None = None,
    default: Empty | None = EMPTY,
    tagged: str | None = None,
    tag: int = -1,
    ignorable: bool = False,
) -> S | None:
    """One struct."""
    of = FieldType("struct", struct=cls)
    return cast("S | None", _field(of, versions, default, nullable, tagged, tag, ignorable))


def _field(
    kind: str | FieldType,
    versions: str,
    default: object,
    nullable: str | None,
    tagged: str | None,
    tag: int,
    ignorable: bool,
    map_key: bool = False,
    flexible: str | None = None,
) -> Field:
    return Field(
        FieldType(kind) if isinstance(kind, str) else kind,
        parse_versions(versions),
        default,
        parse_versions(nullable),
        parse_versions(tagged),
        tag,
        ignorable,
        map_key,
        None if flexible is None else parse_versions(flexible),
    )


_ELEMENT_KINDS |= {boolean: "bool", float64: "float64", uuid: "uuid", string: "string"}
_ELEMENT_KINDS[binary] = "bytes"
