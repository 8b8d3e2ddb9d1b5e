"""Processors of documents before they are written: `post.processor.chain`."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from bson import Int64

from barnabas.connect.connectors.mongodb.settings import short
from barnabas.connect.connectors.mongodb.sink.parts import (
    Document,
    SinkDocument,
    id_strategy,
    only,
    without,
)
from barnabas.schemas.data.errors import ConfigError

Process = Callable[[SinkDocument], None]


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
    raise ConfigError(
        f"Invalid value {class_name} for configuration post.processor.chain: there is no such class"
    )


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
    listed = str(values[f"{part}.projection.list"] or "")
    fields = [field.strip() for field in listed.split(",") if field.strip()]
    kind = str(values[f"{part}.projection.type"]).lower()
    wanted = ("blocklist", "blacklist") if is_blocked else ("allowlist", "whitelist")
    project = without if is_blocked else only

    def apply(one: SinkDocument) -> None:
        document = getattr(one, part)
        if document is not None and kind in wanted:
            setattr(one, part, project(document, fields))

    return apply


def _by_mapping(values: Mapping[str, Any]) -> Process:
    names = {one["oldName"]: one["newName"] for one in _list(values, "field.renamer.mapping")}
    return _renamer(lambda path, name: names.get(path, name))


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
            raise ConfigError(
                f"Invalid value {values[name]} for configuration {name}: "
                f"each one must have {', '.join(sorted(wanted))}"
            )
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
