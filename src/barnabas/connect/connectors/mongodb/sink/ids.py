"""Where a document's `_id` comes from: `document.id.strategy`."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from typing import Any

from bson import ObjectId

from barnabas.connect.connectors.mongodb.documents import binary_uuid
from barnabas.connect.connectors.mongodb.settings import short
from barnabas.connect.connectors.mongodb.sink.parts import (
    Document,
    SinkDocument,
    only,
    without,
)
from barnabas.schemas.data.errors import ConfigError, DataError

MakeId = Callable[[SinkDocument], Any]


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
    raise ConfigError(
        f"Invalid value {values['document.id.strategy']} for configuration document.id.strategy: "
        "there is no such class"
    )


def _projection(values: Mapping[str, Any], part: str) -> Callable[[Document], Document]:
    prefix = f"document.id.strategy.partial.{part}.projection."
    kind = str(values[prefix + "type"]).lower()
    fields = [one.strip() for one in str(values[prefix + "list"]).split(",") if one.strip()]
    if kind in ("allowlist", "whitelist"):
        names = set(fields)
        return lambda document: {
            name: value
            for name, value in only(document, fields).items()
            if name != "_id" or name in names
        }
    if kind in ("blocklist", "blacklist"):
        return lambda document: without(document, fields)
    raise ConfigError(
        f"Invalid value {kind} for configuration {prefix}type: it must be allowlist or blocklist"
    )


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
