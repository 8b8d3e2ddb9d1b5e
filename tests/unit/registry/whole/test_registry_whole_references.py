"""Schemas that use others, in each format, from the request to the text in all its forms."""

import json
from dataclasses import dataclass
from typing import Any

import pytest

from barnabas.registry.store.records import Record, SchemaKey, SchemaValue
from barnabas.schemas.schema import Reference
from support.registry_whole import WholeRegistry, avro_record, reference, request

P = 'syntax = "proto3"; '


@dataclass(frozen=True)
class Chain:
    """Three schemas: `outer` uses `middle` by a name, which uses `inner`."""

    kind: str
    inner: Any
    middle: Any
    outer: Any
    names: tuple[str, str]
    """The names by which references use inner and middle."""
    inner_changed: Any
    """Another inner, with which `outer` cannot read what was written with the first."""


CHAINS = {
    "AVRO": Chain(
        "AVRO",
        avro_record("c.Inner", ("x", "int")),
        avro_record("c.Middle", ("inner", {"type": "array", "items": "c.Inner"})),
        avro_record("c.Outer", ("middle", "c.Middle")),
        ("c.Inner", "c.Middle"),
        avro_record("c.Inner", ("x", "int"), ("y", "int")),
    ),
    "JSON": Chain(
        "JSON",
        {"type": "object", "properties": {"x": {"type": "integer"}}},
        {"type": "object", "properties": {"inner": {"$ref": "inner.json"}}},
        {"type": "object", "properties": {"middle": {"$ref": "middle.json"}}},
        ("inner.json", "middle.json"),
        {"type": "object", "properties": {"x": {"type": "string"}}},
    ),
    "PROTOBUF": Chain(
        "PROTOBUF",
        P + "package c; message Inner { int32 x = 1; }",
        P + 'package c; import "inner.proto"; message Middle { Inner inner = 1; }',
        P + 'package c; import "middle.proto"; message Outer { Middle middle = 1; }',
        ("inner.proto", "middle.proto"),
        P + "package c; message Inner { string x = 1; }",
    ),
}
chains = pytest.mark.parametrize("chain", CHAINS.values(), ids=CHAINS)


def put_chain(registry: WholeRegistry, chain: Chain, context: str = "") -> list[int]:
    """Register all three in a context; their ids."""
    kind, (inner, middle) = chain.kind, chain.names
    steps = [
        ("inner", chain.inner, []),
        ("middle", chain.middle, [reference(inner, "inner")]),
        ("outer", chain.outer, [reference(middle, "middle")]),
    ]
    return [
        registry.put(context + subject, schema, kind=kind, references=uses)
        for subject, schema, uses in steps
    ]


@chains
def test_a_chain_is_kept_found_and_listed(chain: Chain) -> None:
    registry = WholeRegistry()
    ids = put_chain(registry, chain)
    assert ids == [1, 2, 3]
    assert put_chain(registry, chain) == ids
    read = registry.get("/subjects/outer/versions/latest")
    assert read["references"] == [reference(chain.names[1], "middle")]
    assert registry.get("/schemas/ids/3")["references"] == read["references"]
    assert registry.get("/subjects/inner/versions/1/referencedby") == [2]
    assert registry.get("/subjects/middle/versions/1/referencedby") == [3]
    body = request(read["schema"], chain.kind, read["references"])
    assert registry.ask("POST", "/subjects/outer", body).json["id"] == 3


@chains
def test_the_latest_version_of_a_target_is_kept_by_its_number(chain: Chain) -> None:
    registry = WholeRegistry()
    put_chain(registry, chain)
    latest = [reference(chain.names[1], "middle", -1)]
    assert registry.put("outer", chain.outer, kind=chain.kind, references=latest) == 3
    other = registry.put("another", chain.outer, kind=chain.kind, references=latest)
    assert other == 3
    assert registry.get("/subjects/another/versions/1")["references"][0]["version"] == 1


@pytest.mark.parametrize(
    ("kind", "form"), [("AVRO", "resolved"), ("JSON", "resolved"), ("PROTOBUF", "serialized")]
)
def test_a_form_of_a_chain_is_a_schema_of_its_own(kind: str, form: str) -> None:
    registry = WholeRegistry()
    chain = CHAINS[kind]
    put_chain(registry, chain)
    by_version = registry.get(f"/subjects/outer/versions/1?format={form}")["schema"]
    assert registry.get(f"/schemas/ids/3?format={form}")["schema"] == by_version
    reply = registry.ask("GET", f"/subjects/outer/versions/1/schema?format={form}")
    assert reply.body.decode() == by_version
    references = [reference(chain.names[1], "middle")] if kind == "PROTOBUF" else []
    registry.put("alone", by_version, kind=kind, references=references)
    if kind == "AVRO":
        # The schema with all written out is found as the one with references.
        found = registry.ask("POST", "/subjects/outer", request(by_version, kind)).json
        assert (found["id"], found["references"]) == (3, [reference("c.Middle", "middle")])
    if kind == "JSON":
        assert "inner.json" in by_version
        assert '"integer"' in by_version


@chains
@pytest.mark.parametrize("form", ["nothing", "resolved", "serialized", "ignore_extensions"])
def test_only_forms_of_the_format_are_given(chain: Chain, form: str) -> None:
    registry = WholeRegistry()
    put_chain(registry, chain)
    forms = {"PROTOBUF": {"serialized", "ignore_extensions"}}.get(chain.kind, {"resolved"})
    reply = registry.ask("GET", f"/subjects/outer/versions/1?format={form}")
    assert reply.code == (200 if form in forms else 422)


@chains
def test_a_change_of_what_is_used_counts(chain: Chain) -> None:
    registry = WholeRegistry()
    inner, middle = chain.names
    put_chain(registry, chain)
    registry.set("/config", compatibility="NONE")
    registry.put("inner", chain.inner_changed, kind=chain.kind)
    uses = [reference(inner, "inner", 2)]
    registry.put("middle", chain.middle, kind=chain.kind, references=uses)
    registry.set("/config", compatibility="BACKWARD")
    uses = [reference(middle, "middle", 2)]
    is_compatible, said = registry.check("outer", chain.outer, kind=chain.kind, references=uses)
    assert not is_compatible
    assert "oldSchemaVersion: 1" in said
    reply = registry.register("outer", chain.outer, kind=chain.kind, references=uses)
    assert reply.code == 409
    registry.set("/config", compatibility="NONE")
    assert registry.put("outer", chain.outer, kind=chain.kind, references=uses) == 6


@chains
def test_references_stay_in_their_context_unless_they_name_one(chain: Chain) -> None:
    registry = WholeRegistry()
    assert put_chain(registry, chain, ":.c:") == [1, 2, 3]
    inner, middle = chain.names
    lost = registry.register(
        "outer", chain.outer, kind=chain.kind, references=[reference(middle, "middle")]
    )
    assert lost.code == 42201
    assert "'middle'" in lost.json["message"]
    across = [reference(middle, ":.c:middle")]
    assert registry.put("outer", chain.outer, kind=chain.kind, references=across) == 1
    # The default context is no context: its name leads nowhere from another one.
    registry.put("inner", chain.inner, kind=chain.kind)
    default = [reference(inner, ":.:inner")]
    lost = registry.register(":.d:middle", chain.middle, kind=chain.kind, references=default)
    assert lost.code == 42201
    registry.put(":.d:inner", chain.inner, kind=chain.kind)
    registry.put(":.d:middle", chain.middle, kind=chain.kind, references=default)
    qualified = registry.get("/subjects/:.c:outer/versions/1?referenceFormat=qualified")
    assert qualified["references"] == [reference(middle, ":.c:middle")]
    assert registry.get("/contexts/.c/subjects/middle/versions/1/referencedby") == [1, 3]


@chains
def test_a_target_that_is_missing_is_named(chain: Chain) -> None:
    registry = WholeRegistry()
    put_chain(registry, chain)
    middle = chain.names[1]
    for target, version in (("nowhere", 1), ("middle", 2), ("nowhere", -1)):
        reply = registry.register(
            "new", chain.outer, kind=chain.kind, references=[reference(middle, target, version)]
        )
        assert reply.code == 42201, reply.body
        assert f"'{target}'" in reply.json["message"]
        assert middle in reply.json["message"]
    # Nothing is said of what the text uses.
    reply = registry.register("new", chain.outer, kind=chain.kind)
    assert reply.code == 42201
    assert middle in reply.json["message"]


@chains
def test_what_is_used_cannot_be_deleted(chain: Chain) -> None:
    registry = WholeRegistry()
    put_chain(registry, chain)
    for target in ("/subjects/inner", "/subjects/middle/versions/1"):
        reply = registry.ask("DELETE", target)
        assert reply.code == 42206
        assert "'middle'" in reply.json["message"] or "'outer'" in reply.json["message"]
    assert registry.ask("DELETE", "/subjects/outer").json == [1]
    # Softly deleted, `outer` can still be read, and keeps others from going for good.
    assert registry.ask("DELETE", "/subjects/middle").json == [1]
    assert registry.ask("DELETE", "/subjects/middle?permanent=true").code == 42206
    resolved = "serialized" if chain.kind == "PROTOBUF" else "resolved"
    registry.get(f"/subjects/outer/versions/1?deleted=true&format={resolved}")
    new = registry.register(
        "new", chain.outer, kind=chain.kind, references=[reference(chain.names[1], "middle")]
    )
    assert new.code == 42201
    for subject in ("outer", "middle"):
        assert registry.ask("DELETE", f"/subjects/{subject}?permanent=true").json == [1]
    assert registry.ask("DELETE", "/subjects/inner").json == [1]


@chains
def test_a_cycle_in_the_topic_is_refused_when_it_is_read(chain: Chain) -> None:
    """Requests cannot make one: what is referred to has to be there."""
    registry = WholeRegistry()
    inner, middle = chain.names
    own = [reference(middle, "middle")]
    assert registry.register("middle", chain.middle, kind=chain.kind, references=own).code == 42201
    texts = {"inner": chain.middle, "middle": chain.outer}
    uses = {"inner": Reference(inner, "middle", 1), "middle": Reference(middle, "inner", 1)}
    for number, (subject, schema) in enumerate(texts.items(), 1):
        text = schema if isinstance(schema, str) else json.dumps(schema)
        value = SchemaValue(subject, 1, number, text, chain.kind, (uses[subject],))
        registry.service.log.append(Record(SchemaKey(subject, 1), value))
    assert registry.put("other", chain.inner, kind=chain.kind) == 3
    assert registry.get("/subjects/inner/versions/1")["id"] == 1
    for target in (
        "/subjects/inner/versions/1?format=resolved",
        "/schemas/ids/2?format=serialized",
        "/schemas/ids/2?findTags=*",
    ):
        reply = registry.ask("GET", target)
        assert reply.code == 42201
        assert "refers to itself" in reply.json["message"]
    uses_it = [reference(inner, "inner")]
    reply = registry.register("new", chain.middle, kind=chain.kind, references=uses_it)
    assert reply.code == 42201
    assert registry.ask("DELETE", "/subjects/inner").code == 42206


@chains
def test_a_later_version_may_use_what_uses_an_earlier_one(chain: Chain) -> None:
    """By versions that is no cycle, and by names one or not: it has an answer."""
    registry = WholeRegistry()
    registry.set("/config", compatibility="NONE")
    put_chain(registry, chain)
    uses = [reference(chain.names[1], "middle")]
    reply = registry.register("inner", chain.outer, kind=chain.kind, references=uses)
    assert reply.status == 200
    assert registry.get("/subjects/inner/versions") == [1, 2]
    assert registry.check("inner", chain.outer, kind=chain.kind, references=uses)[0]
