"""Schemas from their registration to their deletion, in each format, as clients see them."""

from dataclasses import dataclass
from typing import Any

import pytest

from support.registry_whole import WholeRegistry, avro_record, request

P = 'syntax = "proto3"; '


@dataclass(frozen=True)
class Texts:
    """Schemas of one format; each reads what the one before wrote."""

    kind: str
    versions: tuple[Any, Any, Any]
    spelled_otherwise: Any
    """The first one in other words: in its normal form it is the same."""
    laid_out_otherwise: str
    """The first one with other white space only."""


TEXTS = {
    "AVRO": Texts(
        "AVRO",
        (
            {**avro_record("n.R", ("x", {"type": "int", "b": 1, "a": 2})), "doc": "d"},
            avro_record("n.R", ("x", "int"), ("y", "int", 0)),
            avro_record("n.R", ("x", "int"), ("y", "int", 0), ("z", "int", 0)),
        ),
        '{"namespace":"n","name":"R","fields":[{"type":{"a":2,"type":"int","b":1},"name":"x"}],'
        '"doc":"d","type":"record"}',
        '{ "type" : "record", "name" : "R", "namespace" : "n",\n "doc" : "d", "fields" : [ {'
        ' "name" : "x", "type" : { "type" : "int", "b" : 1, "a" : 2 } } ] }',
    ),
    "JSON": Texts(
        "JSON",
        (
            '{"type":"object","title":"t","properties":{"x":{"type":"integer"}},"minProperties":0}',
            '{"type":"object","properties":{"x":{"type":"number"}}}',
            '{"type":"object","properties":{"x":{}}}',
        ),
        '{"minProperties":0,"properties":{"x":{"type":"integer"}},"type":"object","title":"t"}',
        '{ "type": "object", "title": "t",\n"properties": {"x": {"type": "integer"}},'
        ' "minProperties": 0 }',
    ),
    "PROTOBUF": Texts(
        "PROTOBUF",
        (
            P + 'package n; option java_package = "j"; option go_package = "g";'
            " message M { int32 x = 2; string w = 1; }",
            P + "package n; message M { int32 x = 2; string w = 1; bool y = 3; }",
            P + "package n; message M { int32 x = 2; string w = 1; bool y = 3; bool z = 4; }",
        ),
        P + 'package n; option go_package = "g"; option java_package = "j";'
        " message M { string w = 1; int32 x = 2; }",
        'syntax="proto3";package n;\noption java_package="j";\noption go_package="g";\n'
        "// M\nmessage M{\n  int32 x=2;\n  string w=1;\n}",
    ),
}
formats = pytest.mark.parametrize("texts", TEXTS.values(), ids=TEXTS)


def filled(texts: Texts, subject: str = "s") -> WholeRegistry:
    """A registry with all three versions under a subject, ids 1 to 3."""
    registry = WholeRegistry()
    ids = [registry.put(subject, schema, kind=texts.kind) for schema in texts.versions]
    assert ids == [1, 2, 3]
    return registry


@formats
def test_layout_makes_no_other_schema_and_spelling_does(texts: Texts) -> None:
    registry = filled(texts)
    assert registry.put("s", texts.laid_out_otherwise, kind=texts.kind) == 1
    otherwise = registry.ask("POST", "/subjects/s", request(texts.spelled_otherwise, texts.kind))
    assert otherwise.code == 40403
    assert registry.put("t", texts.spelled_otherwise, kind=texts.kind) == 4


@formats
@pytest.mark.parametrize("by", ["request", "config", "config of the subject"])
def test_a_normal_form_finds_the_same_schema(texts: Texts, by: str) -> None:
    registry = WholeRegistry()
    query = "?normalize=true" if by == "request" else ""
    if query == "":
        registry.set("/config" if by == "config" else "/config/s", normalize=True)
    found = {
        registry.put("s", schema, query, kind=texts.kind)
        for schema in (texts.versions[0], texts.laid_out_otherwise, texts.spelled_otherwise)
    }
    assert found == {1}
    assert registry.get("/subjects/s/versions") == [1]
    body = request(texts.spelled_otherwise, texts.kind)
    assert registry.ask("POST", "/subjects/s?normalize=true", body).json["id"] == 1
    text = registry.get("/schemas/ids/1")["schema"]
    assert registry.put("t", text, "?normalize=true", kind=texts.kind) == 1


@formats
def test_a_text_has_one_id_in_a_context(texts: Texts) -> None:
    registry = filled(texts)
    assert registry.put("t", texts.versions[1], kind=texts.kind) == 2
    assert registry.get("/schemas/ids/2/versions") == [
        {"subject": "s", "version": 2},
        {"subject": "t", "version": 1},
    ]
    assert registry.put(":.c:s", texts.versions[1], kind=texts.kind) == 1
    assert registry.put(":.c:t", texts.versions[0], kind=texts.kind) == 2
    assert registry.put(":.c:u", texts.versions[1], kind=texts.kind) == 1
    there = registry.get("/schemas/ids/1?subject=:.c:")
    assert there["guid"] == registry.get("/schemas/ids/2")["guid"]
    assert registry.get(f"/schemas/guids/{there['guid']}/ids") == [
        {"context": ".", "id": 2},
        {"context": ".c", "id": 1},
    ]
    assert registry.get("/subjects?subjectPrefix=:*:") == [":.c:s", ":.c:t", ":.c:u", "s", "t"]


@formats
def test_the_latest_is_what_is_left_after_a_soft_delete(texts: Texts) -> None:
    registry = filled(texts)
    assert registry.ask("DELETE", "/subjects/s/versions/latest").json == 3
    assert registry.get("/subjects/s/versions/latest")["version"] == 2
    assert registry.get("/subjects/s/versions") == [1, 2]
    assert registry.get("/subjects/s/versions?deleted=true") == [1, 2, 3]
    assert registry.get("/schemas/ids/3")["schema"]
    assert registry.ask("GET", "/subjects/s/versions/3").code == 40402
    assert registry.get("/subjects/s/versions/3?deleted=true")["id"] == 3
    body = request(texts.versions[2], texts.kind)
    assert registry.ask("POST", "/subjects/s", body).code == 40403
    assert registry.ask("POST", "/subjects/s?deleted=true", body).json["version"] == 3
    # Registered again it has its old id, and a new version.
    assert registry.put("s", texts.versions[2], kind=texts.kind) == 3
    assert registry.get("/subjects/s/versions") == [1, 2, 4]
    assert registry.ask("DELETE", "/subjects/s").json == [1, 2, 4]
    assert registry.ask("GET", "/subjects/s/versions/latest").code == 40401


@formats
def test_nothing_deleted_for_good_comes_back(texts: Texts) -> None:
    registry = filled(texts)
    assert registry.ask("DELETE", "/subjects/s/versions/3?permanent=true").code == 40407
    registry.ask("DELETE", "/subjects/s/versions/3")
    assert registry.ask("DELETE", "/subjects/s/versions/3?permanent=true").json == 3
    assert registry.ask("GET", "/schemas/ids/3").code == 40403
    assert registry.put("s", texts.versions[2], kind=texts.kind) == 4
    assert registry.get("/subjects/s/versions") == [1, 2, 4]
    registry.ask("DELETE", "/subjects/s")
    assert registry.ask("DELETE", "/subjects/s?permanent=true").json == [1, 2, 4]
    assert registry.put("s", texts.versions[0], kind=texts.kind) == 5
    assert registry.get("/subjects/s/versions") == [5]


@formats
def test_a_deleted_version_no_longer_counts_for_compatibility(texts: Texts) -> None:
    registry = filled(texts)
    registry.set("/config", compatibility="FORWARD_TRANSITIVE")
    other = {"AVRO": '"int"', "JSON": '{"type":"string"}', "PROTOBUF": P + "enum E { A = 0; }"}
    assert not registry.check("s", other[texts.kind], kind=texts.kind)[0]
    registry.ask("DELETE", "/subjects/s")
    assert registry.check("s", other[texts.kind], kind=texts.kind) == (True, "")
    assert registry.put("s", other[texts.kind], kind=texts.kind) == 4
    assert registry.get("/subjects/s/versions") == [4]


@formats
def test_an_import_keeps_ids_and_versions(texts: Texts) -> None:
    registry = WholeRegistry()
    assert registry.register("s", texts.versions[0], kind=texts.kind, id=7).code == 42205
    registry.set("/mode", mode="IMPORT")
    # Compatible or not, in any order.
    first, second, third = texts.versions
    kind = texts.kind
    assert registry.put("s", third, kind=kind, id=70, version=9) == 70
    assert registry.put("s", first, kind=kind, id=50, version=3) == 50
    assert registry.put("t", first, kind=kind, id=50, version=1) == 50
    assert registry.register("s", second, kind=kind, id=50, version=4).code == 42205
    assert registry.register("s", second, kind=kind).code == 42205
    assert registry.get("/subjects/s/versions") == [3, 9]
    assert registry.ask("PUT", "/mode?force=true", {"mode": "READWRITE"}).status == 200
    registry.set("/config", compatibility="NONE")
    assert registry.put("s", second, kind=kind) == 71
    assert registry.get("/subjects/s/versions/latest")["version"] == 10
    assert registry.put("u", first, kind=kind) == 50


@formats
def test_the_latest_with_metadata(texts: Texts) -> None:
    registry = WholeRegistry()
    for schema, major in zip(texts.versions, ("1", "1", "2"), strict=True):
        metadata = {"properties": {"major": major, "by": "me"}}
        registry.put("s", schema, kind=texts.kind, metadata=metadata)
    where = "/subjects/s/metadata?key={}&value={}"
    for key, value, version in (("major", "1", 2), ("major", "2", 3), ("by", "me", 3)):
        assert registry.get(where.format(key, value))["version"] == version
    both = where.format("major", "1") + "&key=by&value=me"
    assert registry.get(both)["version"] == 2
    registry.ask("DELETE", "/subjects/s/versions/2")
    assert registry.get(both)["version"] == 1
    assert registry.get(both + "&deleted=true")["version"] == 2
    assert registry.ask("GET", where.format("major", "3")).code == 40403
    assert registry.ask("GET", where.format("major", "1").replace("/s/", "/t/")).code == 40401


@formats
def test_metadata_makes_another_schema(texts: Texts) -> None:
    registry = WholeRegistry()
    schema, kind = texts.versions[0], texts.kind
    plain = registry.put("s", schema, kind=kind)
    registry.set("/config", defaultMetadata={"properties": {"owner": "a"}})
    owned = registry.put("s", schema, kind=kind)
    assert (plain, owned) == (1, 2)
    assert registry.get("/schemas/ids/2")["metadata"] == {"properties": {"owner": "a"}}
    assert "metadata" not in registry.get("/schemas/ids/1")
    # A schema without metadata takes that of the previous version.
    registry.ask("DELETE", "/config")
    assert registry.put("s", texts.versions[1], kind=kind) == 3
    assert registry.get("/schemas/ids/3")["metadata"] == {"properties": {"owner": "a"}}
