"""Names of types, fields and symbols: how they are split, and which ones are allowed.

A schema to be registered has ASCII names, namespaces included (Avro's strict rule). One that is
in the topic already has letters of any alphabet, and its namespaces and aliases are not judged.
"""

import re

from barnabas.schemas.avro.json_text import FaultAtPlace
from barnabas.schemas.avro.model import PRIMITIVES, Name

_STRICT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*").fullmatch


def split_name(text: str, space: str | None) -> Name:
    """Qualify a name: by its own dots, else by the namespace given."""
    before, dot, simple = text.rpartition(".")
    if dot:
        space = before
    if not space:
        return Name(simple, None, simple)
    return Name(simple, space, f"{space}.{simple}")


def check_type_name(name: Name, *, strict: bool) -> None:
    """Refuse a name that no type may have."""
    check_name(name.simple, "name", strict=strict)
    if strict and name.space is not None:
        for part in name.space.split("."):
            if not _STRICT(part):
                raise FaultAtPlace(f"namespace {name.space!r} is invalid: {_why(part)}")
    if name.full in PRIMITIVES:
        raise FaultAtPlace(f"a type cannot have the name of the primitive type {name.full!r}")


def check_name(text: str, what: str, *, strict: bool) -> None:
    """Refuse a text that is not a simple name."""
    if _STRICT(text):
        return
    if strict or not _is_name_of_any_alphabet(text):
        raise FaultAtPlace(f"{what} {text!r} is invalid: {_why(text)}")


def _is_name_of_any_alphabet(text: str) -> bool:
    # Java looks at UTF-16 units: no letter outside the basic plane is a letter to it.
    if not text or not (text[0].isalpha() or text[0] == "_"):
        return False
    return max(text) <= "\uffff" and all(
        char.isalpha() or char.isdecimal() or char == "_" for char in text
    )


def _why(text: str) -> str:
    if not text:
        return "it is empty"
    if not (text[0].isalpha() or text[0] == "_"):
        return f"it starts with {text[0]!r}"
    odd = next((c for c in text if not (c.isascii() and (c.isalnum() or c == "_"))), text[0])
    return f"it has the character {odd!r}"
