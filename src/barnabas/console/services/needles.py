"""Texts that the bytes of a record must have for a filter to be true of it: needles.

A search looks for them before it decodes: most records have none, and finding that out costs a
hundredth of reading JSON. `finder` never says no of data in which a decoded text could stand:

- texts of JSON stand in its bytes as they are, unless a backslash escapes characters;
- so do those of Avro, if its schema has no type that people see otherwise than it is written;
- numbers, `true`, `null` and hexadecimal digits have letters, too, but needles have others;
- where an object as a whole is searched, it is as JSON: needles have none of its signs, nor do
  they begin as the rest of an escape may.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from barnabas.schemas.wire_format import GUID_MAGIC, PREFIX_BYTES

_SIGNS: Final = frozenset('"\\,:[]{}')
_LETTERS: Final = frozenset("".join(("abcdef", "true", "false", "null", "NaN", "Infinity")))
"""Those of digits and words that stand for no text."""
_ESCAPES: Final = frozenset("nrtfbu0123456789abcdef")
"""What may follow the backslash of an escape, up to its end."""
_PLAIN_TYPES: Final = ("null", "boolean", "int", "long", "float", "double", "string")
_NAMED: Final = ("record", "error")


@dataclass(frozen=True, slots=True)
class Needle:
    """A text in a `root` of a record: `key`, `value` or `headers`."""

    root: str
    text: bytes


Needles = frozenset[Needle]
"""Of these a record must have one at least."""


def needle_of(root: str, text: Any, *, is_whole: bool = False) -> Needles | None:
    """The needle for a text; None if the bytes need not have it.

    `is_whole`: the text is compared with a whole text, else it may stand within an object.
    """
    if not isinstance(text, str) or not text or set(text) <= _LETTERS | set(" 0123456789+-."):
        return None
    if any(one in '"\\' or not one.isprintable() for one in text):
        return None
    if not is_whole and (text[0] in _ESCAPES or not _SIGNS.isdisjoint(text)):
        return None
    try:
        return frozenset({Needle(root, text.encode())})
    except UnicodeEncodeError:
        return None


def either(found: Iterable[Needles | None]) -> Needles | None:
    """The needles of something that is true if one of its parts is."""
    needles: Needles = frozenset()
    for one in found:
        if one is None:
            return None
        needles |= one
    return needles or None


def both(found: Iterable[Needles | None]) -> Needles | None:
    """The needles of something that is true if all of its parts are: of the rarest part."""
    return min((one for one in found if one is not None), key=len, default=None)


def finder(
    texts: Sequence[bytes], names: Callable[[bytes], tuple[bytes, ...] | None]
) -> Callable[[bytes | None], bool]:
    """What says whether one of the texts may stand in a key or value.

    `names` gives, of data with a schema, the names of fields, which people see beside the texts
    in the bytes; None if its texts need not stand in the bytes.
    """
    named: dict[bytes, bool] = {}
    """By the prefix of data: whether a name of its schema has a text."""

    def may_have(data: bytes | None) -> bool:
        if not data:
            return False
        for text in texts:
            if text in data:
                return True
        if data[0] > GUID_MAGIC:  # it names no schema
            return b"\\" in data
        prefix = data[:PREFIX_BYTES]
        found = named.get(prefix)
        if found is None:
            known = names(data)
            if known is None:
                return True
            found = named[prefix] = any(text in name for name in known for text in texts)
        return found

    return may_have


def names_of(schema: Any) -> tuple[bytes, ...] | None:
    """The names of fields of an Avro schema (parsed JSON); None if it has other types than plain.

    Plain types are those of which people see what is written: no enums, bytes or logical types.
    """
    names: set[bytes] = set()
    return tuple(sorted(names)) if _is_plain(schema, names, set()) else None


def _is_plain(schema: Any, names: set[bytes], known: set[str]) -> bool:
    if isinstance(schema, list):
        return all(_is_plain(one, names, known) for one in schema)
    if isinstance(schema, str):
        return schema in _PLAIN_TYPES or schema in known
    if not isinstance(schema, Mapping) or "logicalType" in schema:
        return False
    kind = schema.get("type")
    if kind in ("array", "map"):
        return _is_plain(schema.get("items" if kind == "array" else "values"), names, known)
    if kind not in _NAMED:
        return isinstance(kind, str | list | Mapping) and _is_plain(kind, names, known)
    name = str(schema.get("name"))
    known.add(name)
    known.add(f"{schema['namespace']}.{name}" if schema.get("namespace") else name)
    for one in schema.get("fields", ()):
        names.add(str(one.get("name")).encode())
        if not _is_plain(one.get("type"), names, known):
            return False
    return True
