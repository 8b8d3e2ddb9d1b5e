"""Our differences and verdicts for pairs of schemas equal those of Confluent's registry.

`confluent-8.5-changes.json` says how it was generated. The pairs for which ours is stricter are
below the table.
"""

import json
import os
from typing import Any, ClassVar, cast

import pytest

from barnabas.schemas.protobuf import ProtobufFormat, ProtobufSchema
from barnabas.schemas.protobuf.compatibility import compare
from barnabas.schemas.schema import ParsedSchema, ResolvedReference

FORMAT = ProtobufFormat()
PROTO3 = 'syntax = "proto3";\n'

with open(os.path.join(os.path.dirname(__file__), "confluent-8.5-changes.json"), "rb") as _file:
    CASES: list[dict[str, Any]] = json.load(_file)["cases"]


def parse(side: dict[str, Any]) -> ProtobufSchema:
    references = [
        ResolvedReference(one["name"], one["subject"], one["version"], one["schema"])
        for one in side["references"]
    ]
    return FORMAT.parse(side["schema"], references)


def changes(old: ProtobufSchema, new: ProtobufSchema) -> list[str]:
    found = compare(old.scope, new.scope, old.versions, new.versions)
    return sorted(f"{one.kind} {one.path}" for one in found)


def kinds(old: str, new: str) -> list[str]:
    return [one.kind for one in FORMAT.parse(new).incompatibilities(FORMAT.parse(old))]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_a_change_is_what_confluent_says(case: dict[str, Any]) -> None:
    old, new = parse(case["old"]), parse(case["new"])
    assert changes(old, new) == case["changes"]
    reasons = new.incompatibilities(old)
    assert (not reasons) == case["compatible"]
    for reason in reasons:
        assert f"{reason.kind} {reason.path}" in case["changes"]
        assert reason.description
        assert "{" not in reason.description


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_the_verdict_is_the_same_for_the_serialized_forms(case: dict[str, Any]) -> None:
    sides = [
        parse({**case[side], "schema": parse(case[side]).formatted("serialized")})
        for side in ("old", "new")
    ]
    assert (not sides[1].incompatibilities(sides[0])) == case["compatible"]


def test_every_kind_of_change_has_a_case() -> None:
    seen = {change.split()[0] for case in CASES for change in case["changes"]}
    assert len(seen) == 26


# A reader that Confluent's registry lets pass would not see what was written.
STRICTER = {
    "a number without a label becomes repeated": (
        PROTO3 + "message A { int32 a = 1; }",
        PROTO3 + "message A { repeated int32 a = 1; }",
        ["FIELD_NUMERIC_LABEL_CHANGED"],
    ),
    "a repeated enum loses its label": (
        PROTO3 + "message A { repeated E a = 1; enum E { Z = 0; } }",
        PROTO3 + "message A { E a = 1; enum E { Z = 0; } }",
        ["FIELD_NUMERIC_LABEL_CHANGED"],
    ),
    "a group becomes a message": (
        "message A { optional group G = 1 { } }",
        "message A { optional G g = 1; message G { } }",
        ["MESSAGE_ADDED", "FIELD_KIND_CHANGED"],
    ),
    "a field of a group changes its type": (
        "message A { optional group G = 1 { optional int32 a = 1; } }",
        "message A { optional group G = 1 { optional string a = 1; } }",
        ["FIELD_SCALAR_KIND_CHANGED", "FIELD_NAMED_TYPE_CHANGED"],
    ),
    "a required group is removed": (
        "message A { required group G = 1 { } }",
        "message A { }",
        ["REQUIRED_FIELD_REMOVED"],
    ),
}


@pytest.mark.parametrize("name", STRICTER)
def test_where_we_are_stricter(name: str) -> None:
    old, new, expected = STRICTER[name]
    assert kinds(old, new) == [kind for kind in expected if kind != "MESSAGE_ADDED"]


def test_a_number_in_two_oneofs_moves_from_none_to_the_other() -> None:
    """No rule forbids it in a schema that was registered elsewhere, and is as it was."""
    text = "message A { oneof x { bool a = 1; bool b = 2; } oneof y { bool c = 1; } }"
    assert kinds(text, text) == []


def _with_wind(version: int, wind: str) -> ProtobufSchema:
    text = PROTO3 + 'import "wind.proto";\nmessage R { w.Wind wind = 1; }'
    return FORMAT.parse(text, [ResolvedReference("wind.proto", "wind", version, PROTO3 + wind)])


def test_messages_of_a_reference_that_use_each_other_end() -> None:
    texts = [
        f"package w; message Wind {{ B b = 1; }} message B {{ Wind w = 1; {kind} v = 2; }}"
        for kind in ("int32", "string")
    ]
    assert changes(_with_wind(1, texts[0]), _with_wind(2, texts[1])) == [
        "FIELD_NAMED_TYPE_CHANGED #/B/1",
        "FIELD_NAMED_TYPE_CHANGED #/R/1",
        "FIELD_NAMED_TYPE_CHANGED #/Wind/1",
        "FIELD_SCALAR_KIND_CHANGED #/B/2",
    ]


def test_many_uses_of_each_message_are_compared_once() -> None:
    """Two fields of each type in each message: 2^n paths lead to the last one."""
    length = 400

    def wind(last: str) -> str:
        messages = ["package w; message Wind { M0 a = 1; M0 b = 2; }"]
        messages += [f"message M{i} {{ M{i + 1} a = 1; M{i + 1} b = 2; }}" for i in range(length)]
        return "\n".join([*messages, f"message M{length} {{ {last} v = 1; }}"])

    assert _with_wind(2, wind("int64")).incompatibilities(_with_wind(1, wind("int32"))) == []
    reasons = _with_wind(2, wind("string")).incompatibilities(_with_wind(1, wind("int32")))
    assert len(reasons) == 1 + 2 * (length + 1) + 1


def test_types_that_nothing_defines_are_compared_by_name() -> None:
    old = PROTO3 + "message A { lost.B b = 1; }"
    assert kinds(old, old) == []
    assert kinds(old, PROTO3 + "message A { lost.C b = 1; }") == ["FIELD_NAMED_TYPE_CHANGED"]


class _OtherSchema:
    schema_type: ClassVar[str] = "AVRO"


def test_a_schema_of_another_format_is_not_compatible() -> None:
    new = FORMAT.parse(PROTO3 + "message A {}")
    reasons = new.incompatibilities(cast("ParsedSchema", _OtherSchema()))
    assert [one.kind for one in reasons] == ["TYPE_MISMATCH"]
    assert "AVRO" in reasons[0].description
