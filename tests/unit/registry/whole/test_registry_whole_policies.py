"""What configuration asks of compatibility beside the level: the policy, and reserved fields."""

from typing import Any

import pytest

from support.registry_whole import WholeRegistry, avro_record, request

P = 'syntax = "proto3"; '
OPEN = {"type": "object", "properties": {"a": {"type": "string"}}}
WITH_B: dict[str, Any] = {
    "type": "object",
    "properties": {"a": {"type": "string"}, "b": {"type": "integer"}},
}


@pytest.mark.parametrize("place", ["/config", "/config/s", "/contexts/.c/config/s"])
def test_a_lenient_policy_lets_open_objects_have_more_properties(place: str) -> None:
    registry = WholeRegistry()
    subject = ":.c:s" if "contexts" in place else "s"
    registry.put(subject, OPEN, kind="JSON")
    reply = registry.register(subject, WITH_B, kind="JSON")
    assert reply.code == 409
    assert "PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL" in reply.json["message"]
    registry.set(place, compatibilityPolicy="LENIENT")
    assert registry.check(subject, WITH_B, kind="JSON") == (True, "")
    registry.put(subject, WITH_B, kind="JSON")
    # Forward: the older schema reads what the newer one allows.
    registry.set(place, compatibility="FULL_TRANSITIVE", compatibilityPolicy="STRICT")
    assert not registry.check(subject, OPEN, kind="JSON")[0]
    registry.set(place, compatibilityPolicy="LENIENT", compatibility="FULL_TRANSITIVE")
    assert registry.check(subject, WITH_B | {"title": "t"}, kind="JSON")[0]


def test_other_formats_ignore_the_policy() -> None:
    registry = WholeRegistry()
    registry.set("/config", compatibilityPolicy="LENIENT")
    registry.put("a", avro_record("R", ("x", "int")))
    assert not registry.check("a", avro_record("R", ("x", "int"), ("y", "int")))[0]
    registry.put("p", P + "message M { int32 x = 1; }", kind="PROTOBUF")
    assert not registry.check("p", P + "message M { string x = 1; }", kind="PROTOBUF")[0]


# Kind, a schema, and which of the names `a` to `h` are fields at its top.
FIELDS = [
    ("AVRO", avro_record("R", ("a", "int"), ("b", avro_record("S", ("c", "int")))), "ab"),
    ("AVRO", {"type": "array", "items": avro_record("R", ("a", "int"))}, ""),
    ("AVRO", '"string"', ""),
    ("JSON", {"properties": {"a": {"properties": {"b": {}}}, "c": True}}, "ac"),
    ("JSON", {"properties": {"a": {}}, "allOf": [{"properties": {"b": {}}}]}, "a"),
    ("JSON", {"$ref": "#/$defs/x", "$defs": {"x": {"properties": {"a": {}}}}}, ""),
    ("JSON", "true", ""),
    ("PROTOBUF", P + "message M { int32 a = 1; message N { int32 b = 1; } }", "a"),
    ("PROTOBUF", P + "message M { int32 a = 1; } message N { int32 b = 1; }", "ab"),
    ("PROTOBUF", P + "message M { map<int32, int32> a = 1; oneof x { int32 b = 2; } }", "a"),
    ("PROTOBUF", P + "enum E { a = 0; }", ""),
]


@pytest.mark.parametrize(("kind", "schema", "fields"), FIELDS)
def test_no_field_at_the_top_has_a_reserved_name(kind: str, schema: Any, fields: str) -> None:
    metadata = {"properties": {"confluent:reserved": ",".join("abcdefgh")}}
    registry = WholeRegistry()
    registry.put("before", schema, kind=kind, metadata=metadata)
    registry.set("/config", validateFields=True)
    _, said = registry.check("s", schema, kind=kind, metadata=metadata)
    assert [name for name in "abcdefgh" if f"field '{name}'" in said] == list(fields)
    reply = registry.register("s", schema, kind=kind, metadata=metadata)
    assert reply.status == (409 if fields else 200)


def test_what_is_reserved_stays_reserved_unless_validation_is_off() -> None:
    registry = WholeRegistry()
    registry.set("/config/s", validateFields=True, compatibility="NONE")
    schema = avro_record("R", ("x", "int"))
    registry.put("s", schema, metadata={"properties": {"confluent:reserved": "old, older"}})
    less = {"properties": {"confluent:reserved": "old"}}
    reply = registry.register("s", schema, metadata=less)
    assert reply.status == 409
    assert "field 'older' is reserved in the last version" in reply.json["message"]
    registry.set("/config/s", validateFields=False, compatibility="NONE")
    assert registry.register("s", schema, metadata=less).status == 200
    assert registry.ask("POST", "/subjects/s", request(schema, metadata=less)).json["version"] == 2
