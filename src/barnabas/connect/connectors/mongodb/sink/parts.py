"""A record on its way to a document: its fields by their paths, and its `_id`, which
`document.id.strategy` makes.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from bson import ObjectId

from barnabas.connect.config.values import invalid, names
from barnabas.connect.connectors.mongodb.documents import binary_uuid
from barnabas.connect.connectors.mongodb.settings import no_class, short
from barnabas.connect.record import SinkRecord
from barnabas.schemas.data.errors import DataError

Document = dict[str, Any]
MakeId = Callable[["SinkDocument"], Any]


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


def id_strategy(values: Mapping[str, Any]) -> MakeId:
    """Return what makes the id. Raises ConfigError."""
    name = short(values["document.id.strategy"])
    is_text = str(values["document.id.strategy.uuid.format"]).lower() == "string"
    match name:
        case "BsonOidStrategy":
            return lambda one: ObjectId()
        case "UuidStrategy":
            return lambda one: _uuid(uuid.uuid4(), is_text=is_text)
        case "FullKeyStrategy":
            return lambda one: {} if one.key is None else one.key
        case "ProvidedInKeyStrategy":
            return lambda one: _provided(one.key, "key")
        case "ProvidedInValueStrategy":
            return lambda one: _provided(one.value, "value")
        case "UuidProvidedInKeyStrategy":
            return lambda one: _given_uuid(_provided(one.key, "key"), is_text=is_text)
        case "UuidProvidedInValueStrategy":
            return lambda one: _given_uuid(_provided(one.value, "value"), is_text=is_text)
        case "PartialKeyStrategy":
            project = _projection(values, "key")
            return lambda one: project(one.key or {})
        case "PartialValueStrategy":
            project = _projection(values, "value")
            return lambda one: project(one.value or {})
        case "KafkaMetaDataStrategy":
            return lambda one: "#".join(
                (one.record.topic, str(one.record.partition), str(one.record.offset))
            )
    raise no_class("document.id.strategy", values["document.id.strategy"])


def _projection(values: Mapping[str, Any], part: str) -> Callable[[Document], Document]:
    prefix = f"document.id.strategy.partial.{part}.projection."
    kind = str(values[prefix + "type"]).lower()
    fields = names(str(values[prefix + "list"]))
    if kind in ("allowlist", "whitelist"):
        return lambda document: {
            name: value
            for name, value in only(document, fields).items()
            if name != "_id" or name in fields
        }
    if kind in ("blocklist", "blacklist"):
        return lambda document: without(document, fields)
    raise invalid(f"{prefix}type", kind, "it must be allowlist or blocklist")


def _provided(document: Document | None, part: str) -> Any:
    if document is None or document.get("_id") is None:
        raise DataError(f"Provided id strategy is used but the {part} has no _id")
    return document["_id"]


def _given_uuid(given: Any, *, is_text: bool) -> Any:
    try:
        made = uuid.UUID(bytes=bytes(given)) if isinstance(given, bytes) else uuid.UUID(str(given))
    except ValueError as error:
        raise DataError("the _id is not a UUID") from error
    return _uuid(made, is_text=is_text)


def _uuid(value: uuid.UUID, *, is_text: bool) -> Any:
    return str(value) if is_text else binary_uuid(value.bytes)
