"""Invalid, oversized or malicious input gets an answer that names the place, and has no effect."""

import socket
from typing import Any

import pytest

from barnabas.registry.http.config import BODY_BYTES_MAX
from support.registry_whole import WholeRegistry, avro_record, reference, request

P = 'syntax = "proto3";\n'

# Kind, schema, and what the message has to say of the place.
INVALID = [
    ("AVRO", "{", "line 1, column 2"),
    ("AVRO", '{"type":\n"recrod"}', "recrod"),
    ("AVRO", avro_record("R", ("a", "strin")), "strin"),
    ("AVRO", avro_record("R", ("a", "int"), ("a", "int")), "R"),
    ("AVRO", avro_record("R", ("a", "int", "x")), "a"),
    ("AVRO", avro_record("1R", ("a", "int")), "1R"),
    ("AVRO", {"type": "enum", "name": "E", "symbols": ["A", "A"]}, "A"),
    ("AVRO", {"type": "fixed", "name": "F", "size": -1}, "F"),
    ("AVRO", ["int", "int"], "int"),
    ("AVRO", {"type": "array"}, "items"),
    ("JSON", '{"type":\n"object"', "line 2"),
    ("JSON", "5", "#"),
    ("JSON", {"properties": {"a": {"type": "strin"}}}, "#/properties/a/type"),
    ("JSON", {"properties": {"a": {"minimum": "1"}}}, "#/properties/a/minimum"),
    ("JSON", {"items": {"pattern": "("}}, "#/items/pattern"),
    ("JSON", {"properties": {"a": {"$ref": "#/$defs/b"}}}, "#/properties/a"),
    ("JSON", {"required": "a"}, "#/required"),
    ("PROTOBUF", P + "message M { int32 a = 1 }", "line 2, column 25"),
    ("PROTOBUF", P + "message M {\n  Nothing a = 1;\n}", "line 3"),
    ("PROTOBUF", P + "message M { int32 a = 1; int32 b = 1; }", "line 2"),
    ("PROTOBUF", P + "message M { int32 a = 0; }", "line 2"),
    ("PROTOBUF", P + 'import "no.proto";', "no.proto"),
    ("PROTOBUF", P + "enum E { A = 1; }", "line 2"),
    ("PROTOBUF", "CgdkZWZhdWx0Cg==", "base64"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "schema", "place"), INVALID)
def test_an_invalid_schema_is_refused_with_the_place(kind: str, schema: Any, place: str) -> None:
    registry = WholeRegistry()
    reply = registry.register("s", schema, kind=kind)
    assert reply.code == 42201, reply.body
    assert place in reply.json["message"]
    assert registry.get("/subjects?deleted=true") == []
    registry.put(
        "s", "true" if kind == "JSON" else '"int"', kind="JSON" if kind == "JSON" else "AVRO"
    )
    is_compatible, said = registry.check("s", schema, kind=kind)
    assert not is_compatible
    assert place in said


@pytest.mark.parametrize("keyword", ["$ref", "$schema", "$id", "$dynamicRef", "id"])
@pytest.mark.parametrize("draft", ["2020-12/schema", "draft-07/schema#", "draft-04/schema#"])
def test_nothing_is_ever_fetched(keyword: str, draft: str) -> None:
    registry = WholeRegistry()
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        url = f"http://127.0.0.1:{server.getsockname()[1]}/other.json"
        host = "https" if "2020" in draft else "http"
        draft = f"{host}://json-schema.org/{'draft/' if '2020' in draft else ''}{draft}"
        schema = {
            "$schema": draft,
            "properties": {"a": {keyword: url}, "b": {"$ref": "#/properties/a"}},
        }
        if keyword in ("$schema", "$id", "id"):
            schema[keyword] = url
        for query in ("", "?normalize=true"):
            reply = registry.register("s", schema, query, kind="JSON")
            assert reply.status in (200, 422)
            if keyword == "$ref":
                assert (reply.code, url in reply.json["message"]) == (42201, True)
        for target in ("/compatibility/subjects/s/versions?verbose=true", "/subjects/s"):
            assert registry.ask("POST", target, request(schema, "JSON")).status < 500
        assert registry.ask("GET", "/subjects/s/versions/1?format=resolved").status < 500
        for kind, text in (
            ("PROTOBUF", P + f'import "{url}"; message M {{}}'),
            ("AVRO", {"type": url}),
        ):
            assert registry.register("t", text, kind=kind).code == 42201
        with pytest.raises(BlockingIOError):
            server.accept()


def doubled_avro(depth: int) -> dict[str, Any]:
    """Each record has the one before twice."""
    schema = avro_record("R0", ("a", "int"))
    for number in range(1, depth):
        schema = avro_record(f"R{number}", ("a", schema), ("b", f"R{number - 1}"))
    return schema


def doubled_json(depth: int, keyword: str) -> dict[str, Any]:
    """Each definition leads to the next one twice."""
    definitions: dict[str, Any] = {
        f"d{number}": {keyword: [{"$ref": f"#/$defs/d{number + 1}"}] * 2} for number in range(depth)
    }
    definitions[f"d{depth}"] = {"type": "string"}
    return {"$defs": definitions, "$ref": "#/$defs/d0"}


def doubled_protobuf(depth: int) -> str:
    """Each message has the one before twice."""
    lines = [
        f"message M{n} {{ M{max(n - 1, 0)} a = 1; M{max(n - 1, 0)} b = 2; }}" for n in range(depth)
    ]
    return P + "\n".join(lines)


# Kind, schema, and whether it is one; with 2**depth steps none of them would ever be answered.
BOMBS = {
    "avro nested": ("AVRO", '{"type":"array","items":' * 10**5 + '"int"' + "}" * 10**5, False),
    "avro brackets": ("AVRO", "[" * 10**6, False),
    "avro doubled": ("AVRO", doubled_avro(60), True),
    "avro recursive": (
        "AVRO", avro_record("R", *((f"f{n}", ["null", "R"]) for n in range(50))), True),
    "json nested": ("JSON", '{"not":' * 10**5 + "{}" + "}" * 10**5, False),
    "json brackets": ("JSON", "[" * 10**6, False),
    "json doubled anyOf": ("JSON", doubled_json(60, "anyOf"), True),
    "json doubled allOf": ("JSON", doubled_json(60, "allOf"), True),
    "json doubled oneOf": ("JSON", doubled_json(60, "oneOf"), True),
    "json pattern": ("JSON", {"pattern": "^(a+)+$", "patternProperties": {"(.*)*x": {}}}, True),
    "json number": ("JSON", '{"minimum":1e999999999}', None),
    "json digits": ("JSON", '{"minimum":' + "9" * 10**5 + "}", None),
    "protobuf nested": ("PROTOBUF", P + "message M {" * 10**5 + "}" * 10**5, False),
    "protobuf option": ("PROTOBUF", P + "option (a) = {" + "a {" * 10**5, False),
    "protobuf doubled": ("PROTOBUF", doubled_protobuf(60), True),
    "protobuf number": ("PROTOBUF", P + "message M { int32 a = " + "9" * 10**5 + "; }", False),
    "protobuf comment": ("PROTOBUF", P + "/*" * 10**5, False),
    "protobuf parts": ("PROTOBUF", P + "message M { " + "a." * 10**5 + "a f = 1; }", False),
}  # fmt: skip


@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_is_answered(name: str) -> None:
    kind, schema, is_schema = BOMBS[name]
    registry = WholeRegistry()
    registry.set("/config", compatibility="FULL_TRANSITIVE")
    reply = registry.register("s", schema, kind=kind)
    assert reply.code in ((200,) if is_schema else (42201,) if is_schema is False else (200, 42201))
    text = request(schema, kind)
    for target in ("/subjects/s?normalize=true", "/compatibility/subjects/s/versions?verbose=true"):
        assert registry.ask("POST", target, text).status < 500
    if reply.status == 200:
        registry.register("s", schema, "?normalize=true", kind=kind)
        for query in ("format=resolved", "format=serialized", "findTags=*"):
            found = registry.ask("GET", f"/subjects/s/versions/1?{query}")
            assert found.status < 500
            assert len(found.body) < 10**6


@pytest.mark.parametrize("kind", ["AVRO", "JSON", "PROTOBUF"])
def test_a_chain_of_references_that_doubles_is_answered(kind: str) -> None:
    """Each schema uses the one before twice; all are found once."""
    registry = WholeRegistry()
    makes = {
        "AVRO": lambda n: avro_record(f"R{n}", *((f, f"R{n - 1}" if n else "int") for f in "ab")),
        "JSON": lambda n: {"properties": {f: {"$ref": f"{n - 1}"} if n else {} for f in "ab"}},
        "PROTOBUF": lambda n: (
            P
            + (f'import "{n - 1}"; ' if n else "")
            + f"message M{n} {{ M{max(n - 1, 0)} a = 1; M{max(n - 1, 0)} b = 2; }}"
        ),
    }  # fmt: skip
    for number in range(40):
        name = f"R{number - 1}" if kind == "AVRO" else f"{number - 1}"
        uses = [reference(name, f"s{number - 1}")] if number else []
        registry.put(f"s{number}", makes[kind](number), kind=kind, references=uses)
    form = "serialized" if kind == "PROTOBUF" else "resolved"
    reply = registry.ask("GET", f"/subjects/s39/versions/1?format={form}")
    assert reply.status == 200
    assert len(reply.body) < 10**5


def test_huge_bodies_are_refused_unread() -> None:
    registry = WholeRegistry()
    body = b'{"schema":"' + b" " * BODY_BYTES_MAX + b'"}'
    assert registry.ask("POST", "/subjects/s/versions", body).code == 413
    deep = b'{"schema":' + b"[" * 10**6
    assert registry.ask("POST", "/subjects/s/versions", deep).code == 400


@pytest.mark.parametrize(
    "more", [{"unknown": [1, {"a": None}]}, {"schemaTagsToAdd": []}, {"id": -1}]
)
def test_unknown_fields_are_skipped(more: dict[str, Any]) -> None:
    registry = WholeRegistry()
    body = request('"int"') | more
    assert registry.ask("POST", "/subjects/s/versions", body).json["id"] == 1
    body["references"] = [reference("a", "b") | {"unknown": 1}]
    assert registry.ask("POST", "/subjects/s/versions", body).code == 42201


NAMES = [
    "..", ".", "../../etc/passwd", "a/b", "a//b", "%2e%2e", "a%2Fb", "ü€😀", "a b", "a+b", ":",
    "::", "a:b", "a?b", "a#b", "\\", "con", "a" * 500, "versions", "'; --", "{x}", "ids", "*",
]  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_a_name_is_a_name_and_no_path(name: str) -> None:
    registry = WholeRegistry()
    reply = registry.register(name, '"int"')
    assert reply.status in (200, 422), reply.body
    if reply.status == 200:
        assert registry.get("/subjects") == [name]
        assert registry.get("/schemas/ids/1/versions") == [{"subject": name, "version": 1}]


@pytest.mark.parametrize(
    "name", ["a\0b", "\x1b[31m", "a\nb", "__GLOBAL", "__EMPTY", ":.__GLOBAL:a"]
)
def test_a_name_that_may_not_be_is_refused(name: str) -> None:
    registry = WholeRegistry()
    assert registry.register(name, '"int"').code == 42208
    assert registry.get("/subjects?deleted=true&subjectPrefix=:*:") == []
