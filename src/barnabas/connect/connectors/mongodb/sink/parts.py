"""A record on its way to a document, and fields of documents by their paths."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from barnabas.connect.record import SinkRecord

Document = dict[str, Any]


@dataclass(slots=True)
class SinkDocument:
    """A record's key and value as documents."""

    record: SinkRecord
    key: Document | None
    value: Document | None


def at_path(document: Mapping[str, Any] | None, path: str) -> Any:
    """Return the value at a path such as `a.b`; None if absent."""
    part: Any = document
    for name in path.split("."):
        if not isinstance(part, Mapping):
            return None
        part = part.get(name)
    return part


def without(document: Document, fields: Iterable[str]) -> Document:
    """The document without fields; `a.*` means all fields of `a`, `a.**` also below."""
    made = dict(document)
    for path in fields:
        _remove(made, path.split("."))
    return made


def _remove(document: Document, names: list[str]) -> None:
    name, rest = names[0], names[1:]
    if name == "**":
        document.clear()
        return
    for one in list(document) if name == "*" else [name]:
        inner = document.get(one)
        if not rest:
            document.pop(one, None)
        elif isinstance(inner, dict):
            document[one] = dict(inner)
            _remove(document[one], rest)
        elif isinstance(inner, list):
            document[one] = [dict(item) if isinstance(item, dict) else item for item in inner]
            for item in document[one]:
                if isinstance(item, dict):
                    _remove(item, rest)


def only(document: Document, fields: Iterable[str]) -> Document:
    """The document with these fields alone, and `_id`."""
    paths = [path.split(".") for path in fields]
    return _only(document, paths, is_top=True)


def _only(document: Document, paths: list[list[str]], *, is_top: bool = False) -> Document:
    made: Document = {}
    for name, value in document.items():
        if is_top and name == "_id":
            made[name] = value
            continue
        fitting = [path for path in paths if path[0] in (name, "*", "**")]
        if not fitting:
            continue
        if any(len(path) == 1 and path[0] != "*" for path in fitting):
            made[name] = value
            continue
        rest = [path[1:] for path in fitting if len(path) > 1]
        if isinstance(value, dict):
            made[name] = _only(value, rest) if rest else {}
        elif isinstance(value, list) and rest:
            made[name] = [_only(one, rest) if isinstance(one, dict) else one for one in value]
        elif not rest:
            made[name] = value
    return made
