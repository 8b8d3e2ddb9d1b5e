"""Arrays of keys in Java's serialization, in which Debezium stores a snapshot's position.

It reads numbers, texts, booleans and UUIDs, and writes integers, booleans, UUIDs and texts.

Source: "Java Object Serialization Specification", chapter 6 (protocol).
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from decimal import Context, Decimal
from typing import Any, Final
from uuid import UUID

Key = tuple["str | None", ...]
"""Values of a key's columns as texts. Booleans are t and f."""

_MAGIC: Final = bytes.fromhex("aced0005")
_NULL, _REFERENCE, _CLASS, _OBJECT, _STRING, _ARRAY = 0x70, 0x71, 0x72, 0x73, 0x74, 0x75
_BLOCK, _END, _LONG_BLOCK, _LONG_STRING = 0x77, 0x78, 0x7A, 0x7C
_HAS_ANNOTATION: Final = 0x01
_IS_EXTERNAL: Final = 0x04
_FIRST_HANDLE: Final = 0x7E0000
_WIDE: Final = Context(prec=20_000)
_FORMATS: Final = dict(zip("BCDFIJSZ", ("b", "H", "d", "f", "i", "q", "h", "?"), strict=True))


class UnknownKeyError(Exception):
    """The key has a value of another class, or is not Java's."""


def key_of(text: str) -> tuple[Key, tuple[str, ...]] | None:
    """Read a key in hexadecimal, and its values' Java classes; None where it is null.

    Raises UnknownKeyError.
    """
    try:
        value = _ObjectReader(bytes.fromhex(text)).whole()
        if value is None:
            return None
        if not isinstance(value, list):
            raise UnknownKeyError("it is not an array")
        return tuple(map(_text, value)), tuple(map(_class_name, value))
    except (ValueError, IndexError, KeyError, TypeError, AttributeError, struct.error) as error:
        raise UnknownKeyError(f"it cannot be read: {error}") from error


class _Object:
    """An object: the name of its class, and the fields of all its classes."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.fields: dict[str, Any] = {}


class _Class:
    """The description of a class."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.flags = 0
        self.fields: list[tuple[str, str]] = []
        self.above: _Class | None = None


class _ObjectReader:
    """Reads a stream of objects."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0
        self._handles: list[Any] = []

    def whole(self) -> Any:
        if self._bytes(4) != _MAGIC:
            raise UnknownKeyError("it is not a serialized object")
        return self._content()

    def _bytes(self, size: int) -> bytes:
        taken = self._data[self._at : self._at + size]
        if len(taken) != size:
            raise UnknownKeyError("it is cut")
        self._at += size
        return taken

    def _number(self, form: str) -> Any:
        return struct.unpack(f">{form}", self._bytes(struct.calcsize(f">{form}")))[0]

    def _utf(self) -> str:
        return _decoded(self._bytes(self._number("H")))

    def _content(self) -> Any:
        tag = self._number("B")
        if tag == _NULL:
            return None
        if tag == _REFERENCE:
            return self._handles[self._number("i") - _FIRST_HANDLE]
        if tag in (_STRING, _LONG_STRING):
            size = self._number("H" if tag == _STRING else "q")
            self._handles.append(_decoded(self._bytes(size)))
            return self._handles[-1]
        if tag == _ARRAY:
            return self._array()
        if tag == _OBJECT:
            return self._object()
        if tag == _CLASS:
            return self._class()
        raise UnknownKeyError(f"it has an unknown part {tag:#x}")

    def _array(self) -> list[Any]:
        described = self._content()
        items: list[Any] = []
        self._handles.append(items)
        items += [self._value(described.name[1]) for _ in range(self._number("i"))]
        return items

    def _value(self, code: str) -> Any:
        return self._content() if code in "L[" else self._number(_FORMATS[code])

    def _class(self) -> _Class:
        described = _Class(self._utf())
        self._bytes(8)  # its version
        self._handles.append(described)
        described.flags = self._number("B")
        for _ in range(self._number("H")):
            code = chr(self._number("B"))
            described.fields.append((code, self._utf()))
            if code in "L[":
                self._content()  # the class of the field
        self._annotation()
        described.above = self._content()
        return described

    def _object(self) -> _Object:
        described: _Class | None = self._content()
        assert described is not None
        made = _Object(described.name)
        self._handles.append(made)
        classes = []
        while described is not None:
            classes.append(described)
            described = described.above
        for one in reversed(classes):
            if one.flags & _IS_EXTERNAL:
                raise UnknownKeyError(f"it has a {one.name}")
            for code, name in one.fields:
                made.fields[name] = self._value(code)
            if one.flags & _HAS_ANNOTATION:
                self._annotation()
        return made

    def _annotation(self) -> None:
        while (tag := self._data[self._at]) != _END:
            if tag in (_BLOCK, _LONG_BLOCK):
                self._at += 1
                self._bytes(self._number("B" if tag == _BLOCK else "i"))
            else:
                self._content()
        self._at += 1


def _decoded(data: bytes) -> str:
    """Java writes a character beyond the first 65,536 as two."""
    pairs = data.decode("utf-8", "surrogatepass")
    return pairs.encode("utf-16", "surrogatepass").decode("utf-16")


def _encoded(text: str) -> bytes:
    units = text.encode("utf-16-be")
    pairs = "".join(chr(unit) for (unit,) in struct.iter_unpack(">H", units))
    return pairs.encode("utf-8", "surrogatepass")


def _text(item: Any) -> str | None:
    """Its value in a `Key`."""
    if item is None or isinstance(item, str):
        return item
    if isinstance(item, _Object):
        fields = item.fields
        match item.name:
            case "java.lang.Boolean":
                return "t" if fields["value"] else "f"
            case "java.util.UUID":
                high, low = fields["mostSigBits"], fields["leastSigBits"]
                return str(UUID(int=(high % 2**64) << 64 | low % 2**64))
            case "java.math.BigDecimal":
                number = fields["intVal"].fields
                magnitude = bytes(byte % 256 for byte in number["magnitude"])
                unscaled = number["signum"] * int.from_bytes(magnitude)
                return f"{Decimal(unscaled).scaleb(-fields['scale'], _WIDE):f}"
            case "java.lang.Integer" | "java.lang.Long" | "java.lang.Short" | "java.lang.Byte":
                return str(fields["value"])
        raise UnknownKeyError(f"it has a {item.name}")
    raise UnknownKeyError("it has an array")


def _class_name(item: Any) -> str:
    return item.name if isinstance(item, _Object) and item.name in _WRITTEN else TEXT


TEXT: Final = "java.lang.String"
INTEGER: Final = "java.lang.Integer"
LONG: Final = "java.lang.Long"
BOOLEAN: Final = "java.lang.Boolean"
UUID_CLASS: Final = "java.util.UUID"
_WRITTEN: Final = frozenset((INTEGER, LONG, BOOLEAN, UUID_CLASS))
_NUMBER: Final = ("java.lang.Number", "86ac951d0b94e08b", (), None)
_INTEGER: Final = ("java.lang.Integer", "12e2a0a4f7818738", ("I value",), _NUMBER)
_LONG: Final = ("java.lang.Long", "3b8be490cc8f23df", ("J value",), _NUMBER)
_BOOLEAN: Final = ("java.lang.Boolean", "cd207280d59cfaee", ("Z value",), None)
_UUID: Final = ("java.util.UUID", "bc9903f7986d852f", ("J leastSigBits", "J mostSigBits"), None)
_OBJECTS: Final = ("[Ljava.lang.Object;", "90ce589f1073296c", (), None)


def written(key: Key | None, classes: Sequence[str] = ()) -> str:
    """Return a key in hexadecimal; `classes` are its values' in Java."""
    writer = _ObjectWriter()
    if key is None:
        writer.data.append(_NULL)
    else:
        writer.array(key, classes)
    return writer.data.hex()


class _ObjectWriter:
    """Writes an array of values."""

    def __init__(self) -> None:
        self.data = bytearray(_MAGIC)
        self._handles: dict[Any, int] = {}
        self._count = 0

    def array(self, key: Key, classes: Sequence[str]) -> None:
        self.data.append(_ARRAY)
        self._class(_OBJECTS)
        self._count += 1
        self.data += struct.pack(">i", len(key))
        for place, value in enumerate(key):
            self._item(value, classes[place] if place < len(classes) else TEXT)

    def _item(self, value: str | None, kind: str) -> None:
        if value is None:
            self.data.append(_NULL)
        elif kind == INTEGER:
            self._object(_INTEGER, ">i", int(value))
        elif kind == LONG:
            self._object(_LONG, ">q", int(value))
        elif kind == BOOLEAN:
            self._object(_BOOLEAN, ">?", value == "t")
        elif kind == UUID_CLASS:
            number = UUID(value).int
            self._object(_UUID, ">QQ", number % 2**64, number >> 64)
        elif not self._is_known(value):
            text = _encoded(value)
            if len(text) < 2**16:
                self.data += struct.pack(">BH", _STRING, len(text))
            else:
                self.data += struct.pack(">Bq", _LONG_STRING, len(text))
            self.data += text

    def _object(self, described: Any, form: str, *values: Any) -> None:
        self.data.append(_OBJECT)
        self._class(described)
        self._count += 1
        self.data += struct.pack(form, *values)

    def _class(self, described: Any) -> None:
        if described is None:
            self.data.append(_NULL)
        elif not self._is_known(described):
            name, version, fields, above = described
            self.data += struct.pack(">BH", _CLASS, len(name)) + name.encode()
            self.data += bytes.fromhex(version) + struct.pack(">BH", 2, len(fields))
            for field in fields:
                code, _, name = field.partition(" ")
                self.data += code.encode() + struct.pack(">H", len(name)) + name.encode()
            self.data.append(_END)
            self._class(above)

    def _is_known(self, one: Any) -> bool:
        """Refer to what was written before; else note that it will be."""
        if one in self._handles:
            self.data += struct.pack(">Bi", _REFERENCE, _FIRST_HANDLE + self._handles[one])
            return True
        self._handles[one] = self._count
        self._count += 1
        return False
