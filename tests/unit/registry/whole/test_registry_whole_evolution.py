"""Compatibility levels: which changes each accepts, by format, for checks and registrations."""

from dataclasses import dataclass
from typing import Any

import pytest

from support.registry_whole import WholeRegistry, avro_record

BACKWARD = {"BACKWARD", "BACKWARD_TRANSITIVE"}
FORWARD = {"FORWARD", "FORWARD_TRANSITIVE"}
ALL = BACKWARD | FORWARD | {"FULL", "FULL_TRANSITIVE"}
TO_ALL_VERSIONS = {level for level in ALL if level.endswith("_TRANSITIVE")}
TO_THE_LATEST = ALL - TO_ALL_VERSIONS
LEVELS = ["NONE", *sorted(ALL)]
P = 'syntax = "proto3"; '


def record(*fields: Any) -> dict[str, Any]:
    """A record of Avro: `x` has no default, `x=` has one, `x:type` is of another type than int."""
    found: list[tuple[Any, ...]] = []
    for text in fields:
        name, _, kind = text.rstrip("=").partition(":")
        found.append((name, kind or "int", 0) if text.endswith("=") else (name, kind or "int"))
    return avro_record("R", *found)


def closed(**properties: Any) -> dict[str, Any]:
    """An object that has no other properties."""
    return {
        "type": "object",
        "properties": {name: {"type": kind} for name, kind in properties.items()},
        "additionalProperties": False,
    }


def message(*fields: str, name: str = "M") -> str:
    """A message with fields numbered from 1."""
    lines = [f"{field} = {number};" for number, field in enumerate(fields, 1)]
    return f"message {name} {{ {' '.join(lines)} }} "


@dataclass(frozen=True)
class Change:
    """A schema that comes after others, and the levels at which it is taken."""

    what: str
    kind: str
    before: tuple[Any, ...]
    after: Any
    levels: set[str]
    says: str = ""
    """Part of the check's message if the change is refused."""


AVRO = (record("x"), record("x", "y="))
JSON = (closed(x="integer"), closed(x="integer", y="integer"))
PROTOBUF = (P + message("int32 x"), P + message("int32 x", "string y"))
OTHER = message("int32 a", name="N")

CHANGES = [
    Change("a field with a default", "AVRO", AVRO, record("x", "y=", "z="), ALL),
    Change("a field fewer", "AVRO", (record("x", "w="), AVRO[1]), record("x"), ALL),
    Change("a default fewer", "AVRO", AVRO, record("x", "y"),
           TO_THE_LATEST | FORWARD, "READER_FIELD_MISSING_DEFAULT_VALUE"),
    Change("a field without a default", "AVRO", AVRO, record("x", "y=", "z"),
           FORWARD, "'/fields/2'"),
    Change("a field that others need", "AVRO", AVRO, record("y="),
           BACKWARD, "READER_FIELD_MISSING_DEFAULT_VALUE"),
    Change("a field that only older ones need", "AVRO", (record("x", "y"), record("x", "y=")),
           record("x"), TO_THE_LATEST | BACKWARD, "oldSchemaVersion: 1"),
    Change("a wider type", "AVRO", AVRO, record("x:long", "y="), BACKWARD, "TYPE_MISMATCH"),
    Change("a narrower type", "AVRO", (record("x:long"),), record("x"), FORWARD, "TYPE_MISMATCH"),
    Change("another type", "AVRO", AVRO, record("x:string", "y="), set(), "/fields/0/type"),
    Change("another name", "AVRO", AVRO[:1], avro_record("S", ("x", "int")), set(),
           "NAME_MISMATCH"),
    Change("a symbol more", "AVRO", ({"type": "enum", "name": "E", "symbols": ["A"]},),
           {"type": "enum", "name": "E", "symbols": ["A", "B"]}, BACKWARD, "MISSING_ENUM_SYMBOLS"),
    Change("a branch more", "AVRO", (["null", "int"],), ["null", "int", "string"],
           BACKWARD, "MISSING_UNION_BRANCH"),
    Change("a title", "JSON", JSON, {"title": "t", **JSON[1]},
           TO_THE_LATEST | BACKWARD, "PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL"),
    Change("a property of a closed object", "JSON", JSON,
           closed(x="integer", y="integer", z="string"),
           BACKWARD, "PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL"),
    Change("a property fewer", "JSON", JSON, {"title": "t", **closed(x="integer")},
           FORWARD, "PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL"),
    Change("a wider type", "JSON", JSON[:1], closed(x="number"), BACKWARD, "TYPE_NARROWED"),
    Change("another type", "JSON", JSON, closed(x="string", y="integer"), set(), "TYPE_CHANGED"),
    Change("a property of an open object", "JSON", ({"type": "object"},),
           {"type": "object", "properties": {"x": {"type": "string"}}},
           FORWARD, "PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL"),
    Change("a required property", "JSON", JSON[:1], {**JSON[0], "required": ["x"]},
           FORWARD, "REQUIRED_ATTRIBUTE_ADDED"),
    Change("all is allowed", "JSON", JSON, "true", BACKWARD, ""),
    Change("a field", "PROTOBUF", PROTOBUF, P + message("int32 x", "string y", "bool z"), ALL),
    Change("bytes for a string", "PROTOBUF", PROTOBUF, P + message("int32 x", "bytes y"), ALL),
    Change("a wider number", "PROTOBUF", PROTOBUF, P + message("uint64 x", "string y"), ALL),
    Change("another type", "PROTOBUF", PROTOBUF, P + message("string x", "string y"),
           set(), "FIELD_SCALAR_KIND_CHANGED"),
    Change("a type of the latest only", "PROTOBUF", PROTOBUF, P + message("int32 x", "bool y"),
           set(), "oldSchemaVersion: 2"),
    Change("a message more", "PROTOBUF", PROTOBUF[:1], PROTOBUF[0] + OTHER,
           BACKWARD, "MESSAGE_REMOVED"),
    Change("a message fewer than once", "PROTOBUF", (PROTOBUF[0] + OTHER, PROTOBUF[0]), PROTOBUF[1],
           TO_THE_LATEST | FORWARD, "MESSAGE_REMOVED"),
    Change("a message for another", "PROTOBUF", (PROTOBUF[0] + OTHER, PROTOBUF[0]),
           PROTOBUF[0] + message("int32 a", name="O"), {"BACKWARD"}, "MESSAGE_REMOVED"),
    Change("a required field", "PROTOBUF", (message("optional int32 x"),),
           message("optional int32 x", "required int32 y"), set(), "REQUIRED_FIELD"),
    Change("another format", "JSON", AVRO, closed(x="integer"), set(), "is of type AVRO"),
]  # fmt: skip


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("change", CHANGES, ids=lambda one: f"{one.kind.lower()}-{one.what}")
def test_a_level_says_what_is_taken(change: Change, level: str) -> None:
    registry = WholeRegistry()
    registry.set("/config", compatibility="NONE")
    kind_before = "AVRO" if change.what == "another format" else change.kind
    for schema in change.before:
        registry.put("s", schema, kind=kind_before)
    registry.set("/config/s", compatibility=level)
    is_taken = level in change.levels or level == "NONE"
    is_compatible, said = registry.check("s", change.after, kind=change.kind)
    assert is_compatible == is_taken, said
    reply = registry.register("s", change.after, kind=change.kind)
    assert reply.code == (200 if is_taken else 409)
    if is_taken:
        assert said == ""
        assert reply.json["version"] == len(change.before) + 1
        return
    for words in (said, reply.json["message"]):
        assert change.says in words
        assert f"compatibility: '{level}'" in words
        assert "oldSchemaVersion" in words or "is of type" in words


@pytest.mark.parametrize("change", CHANGES, ids=lambda one: f"{one.kind.lower()}-{one.what}")
def test_one_version_is_checked_at_the_level_of_the_subject(change: Change) -> None:
    registry = WholeRegistry()
    registry.set("/config", compatibility="NONE")
    kind_before = "AVRO" if change.what == "another format" else change.kind
    for schema in change.before:
        registry.put("s", schema, kind=kind_before)
    for level in sorted(ALL - TO_ALL_VERSIONS):
        registry.set("/config", compatibility=level)
        verdicts = [
            registry.check("s", change.after, f"/{version}", kind=change.kind)[0]
            for version in range(1, len(change.before) + 1)
        ]
        assert verdicts[-1] == (level in change.levels)
        assert all(verdicts) == (f"{level}_TRANSITIVE" in change.levels)
        latest = registry.check("s", change.after, "/latest", kind=change.kind)[0]
        assert latest == verdicts[-1]
