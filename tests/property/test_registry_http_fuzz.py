"""Random requests: the registry always answers JSON with a status below 500."""

import asyncio
import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.registry.http.app import RegistryApp
from barnabas.registry.http.config import HttpConfig
from barnabas.registry.http.table import TABLE
from barnabas.schemas.formats import all_formats
from support.effort import examples
from support.registry_format import text
from support.registry_http import ask, run
from support.registry_service import MemoryService

METHODS = st.sampled_from(["GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"])
NAMES = st.sampled_from(
    ["s", "t", "1", "2", "latest", "-1", "0", ":.c:s", ":.c:", ":.:", ":*:", ":*:s", ":.__GLOBAL:",
     "__GLOBAL", ".", "..", "%2F", "a%2Fb", "%00", "99999999999", "alias", "%F0%9F%98%80"]
)  # fmt: skip
RAW = st.binary(max_size=12).map(lambda data: data.replace(b"?", b"").replace(b"/", b""))
SEGMENTS = st.one_of(
    NAMES.map(str.encode),
    RAW,
    st.sampled_from(
        [b"subjects", b"versions", b"schemas", b"ids", b"config", b"mode", b"contexts"]
    ),
)
PARAMETERS = st.sampled_from(
    ["normalize", "format", "deleted", "deletedOnly", "deletedAsNegative", "latestOnly", "subject",
     "subjectPrefix", "verbose", "defaultToGlobal", "permanent", "force", "offset", "limit",
     "fetchMaxId", "ruleType", "referenceFormat", "findTags", "aliases", "recursive", "key",
     "value", "contextPrefix", "lifecycle"]
)  # fmt: skip
VALUES = st.one_of(
    st.sampled_from(["true", "false", "", "*", "-1", "5", "resolved", "qualified", "PII", "NONE"]),
    NAMES,
    st.text(alphabet=st.characters(codec="ascii", exclude_characters="?#"), max_size=6),
)
QUERIES = st.lists(st.tuples(PARAMETERS, VALUES), max_size=3).map(
    lambda pairs: "&".join(f"{name}={value}" for name, value in pairs).encode()
)
SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5), st.just("\ud800")
)
JSON = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=6,
)
SCHEMAS = st.sampled_from(
    [text("a"), text("b"), text("b!"), text("a", tags={"a": ["PII"]}), text("a", uses=["base"]),
     "", "{", "null", '"x"']
)  # fmt: skip
RULES = st.fixed_dictionaries(
    {},
    optional={
        "domainRules": st.lists(
            st.fixed_dictionaries({"name": st.just("r")}, optional={"type": JSON, "params": JSON}),
            max_size=2,
        ),
        "enableAt": JSON,
    },
)
REFERENCES = st.lists(
    st.fixed_dictionaries(
        {"name": st.just("base"), "subject": st.sampled_from(["s", "", ":.c:s"])},
        optional={"version": st.sampled_from([1, -1, 0, None, 1 << 40])},
    ),
    max_size=2,
)
TAGS = st.lists(
    st.fixed_dictionaries(
        {"schemaEntity": st.fixed_dictionaries(
            {"entityPath": st.sampled_from(["a", ".a", ""]), "entityType": st.just("sr_field")})},
        optional={"tags": st.lists(st.text(max_size=3), max_size=2)},
    ),
    max_size=2,
)  # fmt: skip
OBJECTS = st.fixed_dictionaries(
    {},
    optional={
        "schema": SCHEMAS | JSON,
        "schemaType": st.sampled_from(["AVRO", "JSON", "XML"]),
        "references": REFERENCES | JSON,
        "metadata": st.fixed_dictionaries({}, optional={"tags": JSON, "properties": JSON}) | JSON,
        "ruleSet": RULES | JSON,
        "version": st.sampled_from([0, 1, 2, -1, -5, (1 << 31) - 1, 1 << 31]) | JSON,
        "id": st.sampled_from([0, 1, 7, -1, (1 << 31) - 1]) | JSON,
        "schemaTagsToAdd": TAGS | JSON,
        "propagateSchemaTags": st.booleans(),
        "tagsToAdd": TAGS,
        "newVersion": st.sampled_from([1, 2, 3]) | JSON,
        "rulesToMerge": RULES,
        "rulesToRemove": JSON,
        "compatibility": st.sampled_from(["NONE", "FULL", "x"]) | JSON,
        "mode": st.sampled_from(["IMPORT", "READWRITE", "READONLY", "FORWARD"]) | JSON,
        "alias": st.sampled_from(["s", "alias", ":.c:s", ""]) | JSON,
        "normalize": JSON,
        "defaultMetadata": st.fixed_dictionaries({}, optional={"properties": JSON}),
        "overrideRuleSet": RULES,
        "compatibilityGroup": JSON,
    },
)


def _dumped(value: Any) -> bytes:
    return json.dumps(value).encode()


TEXTS = st.one_of(st.text(max_size=3), st.sampled_from(["\ud800", "confluent:version", "\x00"]))
REGISTRATIONS = st.fixed_dictionaries(
    {"schema": st.sampled_from([text("a"), text("b"), text("a", tags={"a": ["PII"]})])},
    optional={
        "metadata": st.fixed_dictionaries(
            {},
            optional={
                "properties": st.dictionaries(TEXTS, TEXTS, max_size=2),
                "tags": st.dictionaries(TEXTS, st.lists(TEXTS, max_size=2), max_size=2),
                "sensitive": st.lists(TEXTS, max_size=2),
            },
        ),
        "ruleSet": RULES,
        "references": REFERENCES,
        "schemaTagsToAdd": TAGS,
        "version": st.sampled_from([0, 1, 2, -1, (1 << 31) - 1]),
        "id": st.sampled_from([1, 7, (1 << 31) - 1]),
    },
)
SETTINGS = st.fixed_dictionaries(
    {},
    optional={
        "mode": st.sampled_from(["IMPORT", "READWRITE", "READONLY", None]),
        "compatibility": st.sampled_from(["NONE", "FULL_TRANSITIVE", None]),
        "alias": TEXTS,
        "compatibilityGroup": TEXTS,
        "defaultMetadata": st.fixed_dictionaries(
            {"properties": st.dictionaries(TEXTS, TEXTS, max_size=2)}
        ),
    },
)
BODIES = st.one_of(OBJECTS.map(_dumped), JSON.map(_dumped), st.binary(max_size=20))


@st.composite
def known_paths(draw: st.DrawFn) -> tuple[str, bytes]:
    method, path, _ = draw(st.sampled_from(TABLE))
    parts = [
        draw(NAMES).encode() if part.startswith("{") else part.encode() for part in path.split("/")
    ]
    if draw(st.integers(0, 4)) == 0:
        parts[1:1] = [b"contexts", draw(NAMES).encode()]
    return method, b"/".join(parts)


@st.composite
def requests(draw: st.DrawFn) -> tuple[str, bytes, bytes]:
    kind = draw(st.sampled_from(["registration", "setting", "known", "known", "any"]))
    if kind == "registration":
        method = "POST"
        path = draw(st.sampled_from([b"/subjects/s/versions", b"/subjects/t/versions"]))
        body = draw(REGISTRATIONS.map(_dumped))
    elif kind == "setting":
        method = "PUT"
        path = draw(st.sampled_from([b"/config", b"/config/s", b"/mode", b"/mode/s"]))
        body = draw(SETTINGS.map(_dumped))
    elif kind == "known":
        method, path = draw(known_paths())
        body = draw(BODIES) if method in ("POST", "PUT") else b""
    else:
        method = draw(METHODS)
        path = b"/" + b"/".join(draw(st.lists(SEGMENTS, max_size=6)))
        body = draw(BODIES) if method in ("POST", "PUT") else b""
    query = draw(QUERIES)
    return method, path + (b"?" + query if query else b""), body


@given(st.lists(requests(), min_size=1, max_size=8))
@settings(max_examples=examples(30), deadline=None)
def test_every_request_has_an_answer(asked: list[tuple[str, bytes, bytes]]) -> None:
    app = RegistryApp(MemoryService(), HttpConfig(logs_requests=False))
    run(ask(app, "POST", "/subjects/s/versions", {"schema": text("a")}))
    for method, target, body in asked:
        reply = run(ask(app, method, target, body))
        request = (method, target, body)
        assert reply.status < 500, (request, reply.body)
        if method == "HEAD" or reply.status == 204:
            assert reply.body == b"", request
        elif reply.status >= 400:
            assert set(reply.json) == {"error_code", "message"}, request
            code = reply.json["error_code"]
            assert (code if code < 1000 else code // 100) == reply.status, request
        elif not target.partition(b"?")[0].rstrip(b"/").endswith(b"/schema"):
            assert reply.json is not False, request


REAL = {
    "AVRO": [
        '"string"',
        '{"type":"record","name":"R","fields":[{"name":"a","type":["null","int"],"default":null}]}',
        '{"type":"enum","name":"E","symbols":["A","B"],"default":"A"}',
        '{"type":"map","values":{"type":"array","items":"bytes"}}',
    ],
    "JSON": [
        "true",
        '{"type":"object","properties":{"a":{"$ref":"#/$defs/x"}},"$defs":{"x":{"minimum":1}}}',
        '{"$schema":"http://json-schema.org/draft-04/schema#","required":["a"]}',
        '{"allOf":[{"$ref":"#"}],"additionalProperties":false}',
    ],
    "PROTOBUF": [
        'syntax = "proto3"; message M { string a = 1; repeated M b = 2; }',
        'import "google/protobuf/timestamp.proto"; message M { oneof x { int32 a = 1; } }',
        "enum E { A = 0; } service S { rpc R (E) returns (stream E); }",
    ],
}


@st.composite
def real_schemas(draw: st.DrawFn) -> dict[str, Any]:
    """Schemas of the real formats, as they are or with some characters changed."""
    kind = draw(st.sampled_from(sorted(REAL)))
    found = draw(st.sampled_from(REAL[draw(st.sampled_from([kind, kind, *sorted(REAL)]))]))
    for _ in range(draw(st.integers(0, 3))):
        start = draw(st.integers(0, len(found)))
        end = draw(st.integers(start, min(len(found), start + 4)))
        new = draw(st.one_of(st.text(max_size=2), st.sampled_from(['"', "{", "}", "[", "]", "0"])))
        found = found[:start] + new * draw(st.sampled_from([1, 1, 1, 2000])) + found[end:]
    return {"schema": found, "schemaType": kind}


REAL_PATHS = st.sampled_from(
    ["/subjects/s/versions", "/subjects/s/versions?normalize=true", "/subjects/s",
     "/subjects/s?normalize=true&format=resolved",
     "/compatibility/subjects/s/versions?verbose=true"]
)  # fmt: skip
REAL_READS = (
    "/subjects/s/versions/latest?format=resolved",
    "/subjects/s/versions/latest?format=serialized",
    "/subjects/s/versions/latest?findTags=*",
)


@given(st.lists(st.tuples(REAL_PATHS, real_schemas()), min_size=1, max_size=6))
@settings(max_examples=examples(13), deadline=None)
def test_every_schema_has_an_answer(asked: list[tuple[str, dict[str, Any]]]) -> None:
    service = MemoryService(formats=all_formats())
    app = RegistryApp(service, HttpConfig(logs_requests=False))
    run(ask(app, "PUT", "/config", {"compatibility": "FULL_TRANSITIVE"}))
    for target, body in asked:
        reply = asyncio.run(ask(app, "POST", target, body))  # large ones go to a thread
        assert reply.status < 500, (target, body, reply.body)
        for read in REAL_READS:
            assert run(ask(app, "GET", read)).status < 500, (read, body)
