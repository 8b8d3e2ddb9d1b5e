"""Bodies and content types: what is read, what is refused and how."""

import json
from typing import Any

import pytest

from barnabas.registry.contracts import Metadata
from barnabas.registry.core.requests import SchemaRequest, TagChange, TagRequest
from barnabas.registry.errors import RegistryError
from barnabas.registry.http.app import RegistryApp
from barnabas.registry.http.bodies import schema_request, tag_request
from barnabas.registry.http.config import HttpConfig
from barnabas.registry.http.negotiation import V1, answer_type
from barnabas.schemas.schema import Reference, TaggedEntity
from support.registry_format import text
from support.registry_http import ask, run
from support.registry_service import MemoryService

V = "/subjects/s/versions"
GOOD = json.dumps({"schema": text("a")}).encode()


@pytest.fixture
def app() -> RegistryApp:
    return RegistryApp(MemoryService(), HttpConfig(body_bytes_max=1 << 20))


BODIES: list[tuple[bytes, int]] = [
    (GOOD, 200),
    (b" \n" + GOOD + b"\t", 200),
    (GOOD.decode().encode("utf-16"), 200),
    (b"\xef\xbb\xbf" + GOOD, 200),
    (json.dumps({"schema": text("a"), "unknown": {"x": [1]}, "ID": 5}).encode(), 200),
    (json.dumps({"schema": text("a"), "references": None, "metadata": None}).encode(), 200),
    (json.dumps({"schema": text("a"), "version": "1", "id": "-1"}).encode(), 200),
    (b"", 422),
    (b"   ", 422),
    (b"null", 422),
    (b"{", 400),
    (b"{'schema': 1}", 400),
    (b"not json", 400),
    (b"[]", 400),
    (b'"text"', 400),
    (b"5", 400),
    (b"NaN", 400),
    (GOOD + b"}", 400),
    (b"[" * 100_000, 400),
    (b'{"a":' * 100_000, 400),
    (b'{"version":' + b"9" * 5000 + b"}", 400),
    (b"\xff\xfe\xfd", 400),
    (b'{"schema": {}}', 400),
    (b'{"schema": ["a"]}', 400),
    (b'{"schema": 5}', 42201),
    (b'{"schema": "x", "version": {}}', 400),
    (b'{"schema": "x", "version": true}', 400),
    (b'{"schema": "x", "version": "one"}', 400),
    (b'{"schema": "x", "version": 4294967296}', 400),
    (b'{"schema": "x", "version": Infinity}', 400),
    (b'{"schema": "x", "id": []}', 400),
    (b'{"schema": "x", "schemaType": {}}', 400),
    (b'{"schema": "x", "references": {}}', 400),
    (b'{"schema": "x", "references": [5]}', 400),
    (b'{"schema": "x", "references": [{"name": {}, "version": 1}]}', 400),
    (b'{"schema": "x", "metadata": []}', 400),
    (b'{"schema": "x", "metadata": {"tags": 5}}', 400),
    (b'{"schema": "x", "metadata": {"properties": {"a": "\\ud800"}}}', 400),
    (b'{"schema": "x", "\\udc00": 1}', 400),
    (b'{"schema": "x", "ruleSet": {"domainRules": 1}}', 400),
    (b'{"schema": "x", "ruleSet": {"domainRules": [{"kind": "OTHER"}]}}', 400),
    (b'{"schema": "x", "schemaTagsToAdd": [{}]}', 400),
    (b'{"schema": "x", "schemaTagsToAdd": [{"schemaEntity": {"entityPath": "a"}}]}', 400),
    (b'{"schema": "x", "propagateSchemaTags": "perhaps"}', 400),
]


@pytest.mark.parametrize(("body", "code"), BODIES, ids=range(len(BODIES)))
def test_a_body_that_registers(app: RegistryApp, body: bytes, code: int) -> None:
    assert run(ask(app, "POST", V, body, headers={b"content-type": V1})).code == code


@pytest.mark.parametrize("method", ["PUT", "POST"])
@pytest.mark.parametrize("body", [b"", b"null", b"[]", b"{"])
@pytest.mark.parametrize(
    "target", ["/config", "/config/s", "/mode", "/mode/s", V, "/subjects/s", f"{V}/1/tags"]
)
def test_every_route_with_a_body_refuses_what_is_no_object(
    app: RegistryApp, method: str, target: str, body: bytes
) -> None:
    expected = 422 if body in (b"", b"null") else 400
    assert run(ask(app, method, target, body)).code in (expected, 405)


def test_all_fields_of_a_schema_are_read() -> None:
    body: dict[str, Any] = {
        "schema": "x",
        "schemaType": "JSON",
        "references": [{"name": "n", "subject": "s", "version": -1}],
        "metadata": {"properties": {"a": 1}},
        "version": 3,
        "id": 4,
        "schemaTagsToAdd": [
            {"schemaEntity": {"entityPath": ".a.b", "entityType": "sr_record"}, "tags": ["t"]}
        ],
        "propagateSchemaTags": "true",
    }
    assert schema_request(body) == SchemaRequest(
        "x",
        "JSON",
        (Reference("n", "s", -1),),
        Metadata(properties={"a": "1"}),
        version=3,
        id=4,
        tags_to_add=(TagChange(TaggedEntity("SR_RECORD", "a.b"), frozenset({"t"})),),
        propagate_tags=True,
    )
    assert schema_request({}) == SchemaRequest(None)
    assert tag_request({"newVersion": 5, "rulesToRemove": ["r"]}) == TagRequest(
        5, rules_to_remove=("r",)
    )
    with pytest.raises(RegistryError, match="rulesToRemove"):
        tag_request({"rulesToRemove": [1]})


CONTENT_TYPES: list[tuple[bytes, int]] = [
    (b"application/vnd.schemaregistry.v1+json", 200),
    (b"application/vnd.schemaregistry+json", 200),
    (b"application/json", 200),
    (b"application/json; charset=utf-8", 200),
    (b"Application/JSON", 200),
    (b"application/octet-stream", 200),
    (b"", 200),
    (b"text/plain", 415),
    (b"application/xml", 415),
    (b"application/x-www-form-urlencoded", 415),
    (b"application/vnd.schemaregistry.v2+json", 415),
    (b"garbage", 415),
]


@pytest.mark.parametrize(("content_type", "code"), CONTENT_TYPES)
def test_content_types_of_requests(app: RegistryApp, content_type: bytes, code: int) -> None:
    headers = {b"content-type": content_type}
    assert run(ask(app, "POST", V, GOOD, headers=headers)).code == code


DEFAULT = b"application/vnd.schemaregistry+json"
PLAIN = b"application/json"
ACCEPTED: list[tuple[bytes, bytes | None]] = [
    (b"", V1),
    (b"*/*", V1),
    (b"application/*", V1),
    (V1, V1),
    (DEFAULT, DEFAULT),
    (PLAIN, PLAIN),
    (b"Application/JSON", PLAIN),
    (b"application/json; charset=utf-8", PLAIN),
    (V1 + b"," + DEFAULT + b"; q=0.9, application/json; q=0.5", V1),
    (b"application/json, " + V1 + b";q=0.5", PLAIN),
    (b"application/json, */*", V1),
    (b"application/json, */*;q=0.1", PLAIN),
    (b"text/html,application/xhtml+xml,*/*;q=0.8", V1),
    (b"*/*, " + V1 + b";q=0", DEFAULT),
    (b",", V1),
    (b"text/html", None),
    (b"application/xml;q=0.9, text/*", None),
    (b"application/json;q=0", None),
    (b"application/json;q=x", None),
    (b"garbage", None),
    (b"application/vnd.schemaregistry.v2+json", None),
]


@pytest.mark.parametrize(("accept", "expected"), ACCEPTED)
def test_content_types_of_answers(app: RegistryApp, accept: bytes, expected: bytes | None) -> None:
    assert answer_type(accept) == expected
    for target in ("/config", "/subjects/none/versions"):
        reply = run(ask(app, "GET", target, headers={b"accept": accept}))
        assert reply.headers[b"content-type"] == (expected or V1)
        if expected is None:
            assert reply.code == 406


def test_few_accept_headers_are_remembered() -> None:
    for number in range(2000):
        assert answer_type(b"application/json;x=%d" % number) == PLAIN


@pytest.mark.parametrize("parts", [1, 3, 50])
def test_a_body_may_come_in_parts(app: RegistryApp, parts: int) -> None:
    assert run(ask(app, "POST", V, GOOD, parts=parts)).status == 200


@pytest.mark.parametrize("declared", [True, False])
@pytest.mark.parametrize("parts", [1, 4])
def test_a_body_that_is_too_long(app: RegistryApp, declared: bool, parts: int) -> None:
    body = json.dumps({"schema": "x" * (1 << 20)}).encode()
    headers = {b"content-type": V1}
    if declared:
        headers[b"content-length"] = b"%d" % len(body)
    assert run(ask(app, "POST", V, body, headers=headers, parts=parts)).code == 413
