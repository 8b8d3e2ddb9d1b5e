"""Changes of databases as writes: `change.data.capture.handler`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from bson import json_util
from pymongo import DeleteOne, ReplaceOne, UpdateOne

from barnabas.connect.connectors.mongodb.settings import no_class, short
from barnabas.connect.connectors.mongodb.sink.models import MakeModel, Model
from barnabas.connect.connectors.mongodb.sink.parts import Document, SinkDocument
from barnabas.schemas.data.errors import DataError


def change_handler(values: Mapping[str, Any]) -> MakeModel | None:
    """Return what makes writes of changes; None where records are documents."""
    class_name = values["change.data.capture.handler"]
    match short(class_name):
        case "":
            return None
        case "ChangeStreamHandler":
            return _change_stream
        case "MongoDbHandler":
            return _debezium(_mongo_change)
        case "RdbmsHandler" | "PostgresHandler" | "MysqlHandler":
            return _debezium(_row_change)
    raise no_class("change.data.capture.handler", class_name)


# --- MongoDB's own change streams ------------------------------------------------------------


def _change_stream(one: SinkDocument) -> Model | None:
    change = one.value
    if change is None:
        return None
    operation = change.get("operationType")
    if operation in ("drop", "dropDatabase", "rename", "invalidate"):
        return None
    found_by = _document(change.get("documentKey"), "documentKey")
    match operation:
        case "insert" | "replace":
            document = _document(change.get("fullDocument"), "fullDocument")
            return ReplaceOne(found_by, document, upsert=True)
        case "delete":
            return DeleteOne(found_by)
        case "update":
            described = _document(change.get("updateDescription"), "updateDescription")
            update = _described_update(described)
            return UpdateOne(found_by, update) if update else None
    raise DataError(f"Unsupported operationType {operation}")


# --- Debezium's ------------------------------------------------------------------------------


def _debezium(make: Callable[[str, SinkDocument], Model | None]) -> MakeModel:
    def change(one: SinkDocument) -> Model | None:
        if one.value is None:  # the tombstone behind a delete
            return None
        operation = one.value.get("op")
        if not isinstance(operation, str):
            raise DataError("Value document is missing CDC operation field `op`")
        return make(operation, one)

    return change


def _row_change(operation: str, one: SinkDocument) -> Model | None:
    assert one.value is not None
    match operation:
        case "c" | "r" | "u":
            after = _document(one.value.get("after"), "after")
            found_by = _row_id(one, after)
            if "_id" in found_by:
                after = {"_id": found_by["_id"], **after}
            return ReplaceOne(found_by, after, upsert=True)
        case "d":
            return DeleteOne(_row_id(one, _document(one.value.get("before") or {}, "before")))
    return None  # truncations and messages


def _row_id(one: SinkDocument, row: Document) -> Document:
    """Rows without a key are found by all of their columns."""
    return {"_id": one.key} if one.key else dict(row)


def _mongo_change(operation: str, one: SinkDocument) -> Model | None:
    assert one.value is not None
    key = one.key or {}
    if "id" in key and "_id" not in key:
        found_by: Document = {"_id": _read(key["id"])}
    elif "_id" in key:
        found_by = {"_id": key["_id"]}
    else:
        raise DataError("the key has no id")
    match operation:
        case "c" | "r":
            return ReplaceOne(found_by, _document(one.value.get("after"), "after"), upsert=True)
        case "d":
            return DeleteOne(found_by)
        case "u":
            return _mongo_update(found_by, one.value)
    return None


def _mongo_update(found_by: Document, value: Document) -> Model | None:
    if value.get("after"):
        return ReplaceOne(found_by, _document(value["after"], "after"), upsert=True)
    update = _described_update(value.get("updateDescription") or {})
    if not update and value.get("patch"):
        update = _document(value["patch"], "patch")
        update.pop("$v", None)
        if not any(name.startswith("$") for name in update):
            return ReplaceOne(found_by, update, upsert=True)
    return UpdateOne(found_by, update) if update else None


def _described_update(described: Document) -> Document:
    """Return the operators of an update; none if no field was updated or removed."""
    # Arrays that were cut at their ends are named apart: without that the copy would differ.
    if described.get("truncatedArrays"):
        raise DataError("truncatedArrays of an update are not supported")
    update: Document = {}
    if described.get("updatedFields"):
        update["$set"] = _document(described["updatedFields"], "updatedFields")
    if described.get("removedFields"):
        update["$unset"] = dict.fromkeys(described["removedFields"], "")
    return update


def _document(value: Any, name: str) -> Document:
    document = _read(value)
    if not isinstance(document, dict):
        raise DataError(f"the change has no {name}")
    return document


def _read(value: Any) -> Any:
    """Parse a value that Debezium writes as JSON text."""
    if not isinstance(value, str):
        return value
    try:
        return json_util.loads(value, json_options=json_util.JSONOptions(tz_aware=True))
    except (ValueError, TypeError) as error:
        raise DataError("a change's text is not JSON") from error
