"""Documents on their way to a collection: processors, and what is written of them.

`post.processor.chain` changes documents, `writemodel.strategy` says how they are written, and
tombstones delete.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from bson import Int64
from pymongo import DeleteOne, InsertOne, ReplaceOne, UpdateOne

from barnabas.connect.config.values import invalid, names
from barnabas.connect.connectors.mongodb.settings import no_class, short
from barnabas.connect.connectors.mongodb.sink.parts import (
    Document,
    SinkDocument,
    id_strategy,
    only,
    without,
)
from barnabas.schemas.data.errors import DataError

Model = InsertOne[Any] | ReplaceOne[Any] | UpdateOne | DeleteOne
MakeModel = Callable[[SinkDocument], Model | None]
Process = Callable[[SinkDocument], None]


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
    raise no_class("writemodel.strategy", class_name)


def delete_strategy(values: Mapping[str, Any]) -> MakeModel | None:
    """Return what makes a delete of a tombstone; None where tombstones do nothing."""
    if not values["delete.on.null.values"]:
        return None
    name = short(values["delete.writemodel.strategy"]) or "DeleteOneDefaultStrategy"
    if name == "DeleteOneBusinessKeyStrategy":
        return lambda one: DeleteOne(dict(one.key or {}))
    if name != "DeleteOneDefaultStrategy":
        raise no_class("delete.writemodel.strategy", name)
    kind = short(values["document.id.strategy"])
    if kind not in ("FullKeyStrategy", "PartialKeyStrategy", "ProvidedInKeyStrategy"):
        text = "delete.on.null.values needs one that takes the id from the key"
        raise invalid("document.id.strategy", kind, text)
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


def chain(values: Mapping[str, Any]) -> Sequence[Process]:
    """The processors, in order. Raises ConfigError."""
    return [_processor(name, values) for name in values["post.processor.chain"]]


def _processor(class_name: str, values: Mapping[str, Any]) -> Process:
    match short(class_name):
        case "DocumentIdAdder":
            return _id_adder(values)
        case "KafkaMetaAdder":
            return _add_place
        case "NullFieldValueRemover":
            return _remove_nulls
        case "BlockListKeyProjector" | "BlacklistKeyProjector":
            return _projector(values, "key", is_blocked=True)
        case "BlockListValueProjector" | "BlacklistValueProjector":
            return _projector(values, "value", is_blocked=True)
        case "AllowListKeyProjector" | "WhitelistKeyProjector":
            return _projector(values, "key", is_blocked=False)
        case "AllowListValueProjector" | "WhitelistValueProjector":
            return _projector(values, "value", is_blocked=False)
        case "RenameByMapping":
            return _by_mapping(values)
        case "RenameByRegex" | "RenameByRegExp":
            return _by_regex(values)
    raise no_class("post.processor.chain", class_name)


def _id_adder(values: Mapping[str, Any]) -> Process:
    make_id = id_strategy(values)
    overwrites = bool(values["document.id.strategy.overwrite.existing"])

    def add(one: SinkDocument) -> None:
        if one.value is not None and (overwrites or one.value.get("_id") is None):
            made = make_id(one)
            one.value = {"_id": made, **{k: v for k, v in one.value.items() if k != "_id"}}

    return add


def _add_place(one: SinkDocument) -> None:
    if one.value is None:
        return
    record = one.record
    one.value["topic-partition-offset"] = f"{record.topic}-{record.partition}-{record.offset}"
    if record.timestamp_ms is not None:
        one.value[record.timestamp_type] = Int64(record.timestamp_ms)


def _remove_nulls(one: SinkDocument) -> None:
    if one.value is not None:
        one.value = _without_nulls(one.value)


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_nulls(part) for name, part in value.items() if part is not None}
    if isinstance(value, list):
        return [_without_nulls(part) if isinstance(part, dict) else part for part in value]
    return value


def _projector(values: Mapping[str, Any], part: str, *, is_blocked: bool) -> Process:
    fields = names(str(values[f"{part}.projection.list"] or ""))
    kind = str(values[f"{part}.projection.type"]).lower()
    wanted = ("blocklist", "blacklist") if is_blocked else ("allowlist", "whitelist")
    project = without if is_blocked else only

    def apply(one: SinkDocument) -> None:
        document = getattr(one, part)
        if document is not None and kind in wanted:
            setattr(one, part, project(document, fields))

    return apply


def _by_mapping(values: Mapping[str, Any]) -> Process:
    new = {one["oldName"]: one["newName"] for one in _list(values, "field.renamer.mapping")}
    return _renamer(lambda path, name: new.get(path, name))


def _by_regex(values: Mapping[str, Any]) -> Process:
    rules = [
        (re.compile(one["regexp"]), one["pattern"], one["replace"])
        for one in _list(values, "field.renamer.regexp")
    ]

    def rename(path: str, name: str) -> str:
        for rule, pattern, replacement in rules:
            if rule.fullmatch(path):
                name = re.sub(pattern, re.sub(r"\$(\d)", r"\\\1", replacement), name)
        return name

    return _renamer(rename)


def _list(values: Mapping[str, Any], name: str) -> list[dict[str, str]]:
    rules: list[dict[str, str]] = json.loads(values[name] or "[]")
    wanted = (
        {"oldName", "newName"} if name.endswith("mapping") else {"regexp", "pattern", "replace"}
    )
    for one in rules:
        if not isinstance(one, dict) or not wanted <= one.keys():
            text = f"each one must have {', '.join(sorted(wanted))}"
            raise invalid(name, values[name], text)
    return rules


def _renamer(rename: Callable[[str, str], str]) -> Process:
    def part(value: Any, path: str) -> Any:
        if isinstance(value, dict):
            made: Document = {}
            for name, inner in value.items():
                own = f"{path}.{name}"
                made[rename(own, name)] = part(inner, own)
            return made
        if isinstance(value, list):
            return [part(one, path) for one in value]
        return value

    def apply(one: SinkDocument) -> None:
        one.key = part(one.key, "key")
        one.value = part(one.value, "value")

    return apply
