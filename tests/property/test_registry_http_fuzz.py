"""Whatever is asked, the registry answers JSON with a code below 500."""

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.registry.http.app import RegistryApp
from barnabas.registry.http.config import HttpConfig
from barnabas.registry.http.table import TABLE
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
    if draw(st.integers(0, 4)):
        method, path = draw(known_paths())
    else:
        method = draw(METHODS)
        path = b"/" + b"/".join(draw(st.lists(SEGMENTS, max_size=6)))
    query = draw(QUERIES)
    body = draw(BODIES) if method in ("POST", "PUT") else b""
    return method, path + (b"?" + query if query else b""), body


@given(st.lists(requests(), min_size=1, max_size=8))
@settings(max_examples=400, deadline=None)
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
