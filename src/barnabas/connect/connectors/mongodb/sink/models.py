"""Writes of documents: `writemodel.strategy`, and deletes by tombstones."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from pymongo import DeleteOne, InsertOne, ReplaceOne, UpdateOne

from barnabas.connect.connectors.mongodb.settings import short
from barnabas.connect.connectors.mongodb.sink.parts import Document, SinkDocument, id_strategy
from barnabas.schemas.data.errors import ConfigError, DataError

Model = InsertOne[Any] | ReplaceOne[Any] | UpdateOne | DeleteOne
MakeModel = Callable[[SinkDocument], Model | None]


def write_strategy(values: Mapping[str, Any]) -> MakeModel:
    """Return what makes a write of a document. Raises ConfigError."""
    class_name = values["writemodel.strategy"]
    match short(class_name):
        case "DefaultWriteModelStrategy" | "ReplaceOneDefaultStrategy":
            return lambda one: ReplaceOne({"_id": _id(one)}, _value(one), upsert=True)
        case "ReplaceOneBusinessKeyStrategy":
            return _replace_by_business_key
        case "InsertOneDefaultStrategy":
            return lambda one: InsertOne(_value(one))
        case "UpdateOneDefaultStrategy":
            return lambda one: UpdateOne(
                {"_id": _id(one)}, {"$set": _without_id(_value(one))}, upsert=True
            )
        case "UpdateOneTimestampsStrategy":
            return lambda one: _with_timestamps({"_id": _id(one)}, _without_id(_value(one)))
        case "UpdateOneBusinessKeyTimestampStrategy":
            return _update_by_business_key
        case "DeleteOneDefaultStrategy":
            return lambda one: DeleteOne({"_id": _id(one)})
        case "DeleteOneBusinessKeyStrategy":
            return lambda one: DeleteOne(_business_key(one))
    raise ConfigError(
        f"Invalid value {class_name} for configuration writemodel.strategy: there is no such class"
    )


def delete_strategy(values: Mapping[str, Any]) -> MakeModel | None:
    """Return what makes a delete of a tombstone; None where tombstones do nothing."""
    if not values["delete.on.null.values"]:
        return None
    name = short(values["delete.writemodel.strategy"]) or "DeleteOneDefaultStrategy"
    if name == "DeleteOneBusinessKeyStrategy":
        return lambda one: DeleteOne(dict(one.key or {}))
    if name != "DeleteOneDefaultStrategy":
        raise ConfigError(
            f"Invalid value {name} for configuration delete.writemodel.strategy: "
            "there is no such class"
        )
    kind = short(values["document.id.strategy"])
    if kind not in ("FullKeyStrategy", "PartialKeyStrategy", "ProvidedInKeyStrategy"):
        raise ConfigError(
            f"Invalid value {kind} for configuration document.id.strategy: "
            "delete.on.null.values needs one that takes the id from the key"
        )
    make_id = id_strategy(values)
    return lambda one: DeleteOne({"_id": make_id(one)})


def _value(one: SinkDocument) -> Document:
    if one.value is None:
        raise DataError("Could not build the WriteModel,the value document was missing")
    return one.value


def _id(one: SinkDocument) -> Any:
    value = _value(one)
    if value.get("_id") is None:
        raise DataError("Could not build the WriteModel,the `_id` field was missing unexpectedly")
    return value["_id"]


def _without_id(document: Document) -> Document:
    return {name: value for name, value in document.items() if name != "_id"}


def _business_key(one: SinkDocument) -> Document:
    document_id = _id(one)
    if not isinstance(document_id, dict):
        raise DataError("the `_id` of a business key must be a document")
    return document_id


def _replace_by_business_key(one: SinkDocument) -> Model:
    return ReplaceOne(_business_key(one), _without_id(_value(one)), upsert=True)


def _update_by_business_key(one: SinkDocument) -> Model:
    return _with_timestamps(_business_key(one), _without_id(_value(one)))


def _with_timestamps(found_by: Document, document: Document) -> Model:
    now = datetime.now(UTC)
    return UpdateOne(
        found_by,
        {"$set": {**document, "_modifiedTS": now}, "$setOnInsert": {"_insertedTS": now}},
        upsert=True,
    )
