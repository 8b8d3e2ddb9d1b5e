"""Every route, with what it answers and what it refuses: a table.

Many of the cases are the scenarios that axonops' schema registry holds against Confluent's
(`tests/bdd/features`), written anew with the small format of `support.registry_format`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from barnabas.registry.errors import RegistryError
from barnabas.registry.http.app import RegistryApp
from barnabas.registry.http.config import HttpConfig
from barnabas.registry.http.table import TABLE, find
from barnabas.registry.http.target import segments, without_context
from support.registry_format import text
from support.registry_http import Reply, ask, run
from support.registry_service import MemoryService

Step = tuple[str, str] | tuple[str, str, Any]


@dataclass
class Case:
    """Steps that all succeed, one request, its code and its body (or a part of it)."""

    name: str
    request: Step
    code: int = 200
    body: Any = None
    before: Sequence[Step] = ()
    has: dict[str, Any] = field(default_factory=dict)
    """Fields of the answer."""
    lacks: Sequence[str] = ()
    """Fields that the answer does not have."""


def add(subject: str, *fields: str, **more: Any) -> Step:
    """A registration; what is not of the schema's text goes in `more`."""
    return ("POST", f"/subjects/{subject}/versions", {"schema": text(*fields), **more})


def schema(*fields: str, **more: Any) -> dict[str, Any]:
    return {"schema": text(*fields), **more}


A = text("a")
GUID = "6b9ff1fc-4b62-57e6-bb3c-8a6dd4ea3b4a"
NONE: Step = ("PUT", "/config", {"compatibility": "NONE"})
TWO = (NONE, add("s", "a"), add("s", "b"))
THREE = (*TWO, add("s", "c"))
GONE = (*TWO, ("DELETE", "/subjects/s"))
REFERENCE = {"name": "base", "subject": "base", "version": 1}
REFERRING = {"schema": text("b", uses=["base"]), "references": [REFERENCE]}
REFERRED = (
    add("base", "a"),
    ("POST", "/subjects/s/versions", REFERRING),
)
IMPORT: Step = ("PUT", "/mode", {"mode": "IMPORT"})
ENTITY = {"schemaEntity": {"entityPath": ".a", "entityType": "sr_field"}, "tags": ["PII"]}
TAGGED = {"schemaEntity": {"entityPath": "a", "entityType": "sr_field"}, "tags": ["PII"]}
TAGS = text("a", tags={"a": ["PII"]})
RULES = {"domainRules": [{"name": "r", "kind": "CONDITION", "mode": "WRITE", "type": "CEL"}]}

ROOT = [
    Case("root", ("GET", "/"), body={}),
    Case("root takes anything", ("POST", "/", {"a": "b"}), body={}),
    Case("no such path", ("GET", "/this/path/does/not/exist"), 404),
    Case("no such path to post to", ("POST", "/nonexistent/endpoint", {"foo": "bar"}), 404),
    Case("cluster id", ("GET", "/v1/metadata/id"), has={
        "scope": {"path": [], "clusters": {
            "kafka-cluster": "k", "schema-registry-cluster": "schema-registry"}}}),
    Case("version", ("GET", "/v1/metadata/version"), body={"version": "1.2", "commitId": "c0ffee"}),
    Case("deployment", ("GET", "/v1/metadata/deployment"), body={"attributes": ["x"]}),
    Case("no exporters", ("GET", "/exporters"), body=[]),
    Case("no such exporter", ("GET", "/exporters/e"), 40450),
    Case("no status of an exporter", ("GET", "/exporters/e/status"), 40450),
    Case("no config of an exporter", ("GET", "/exporters/e/config"), 40450),
    Case("exporters cannot be made", ("POST", "/exporters", {"name": "e"}), 405),
]  # fmt: skip

CONTEXTS = [
    Case("the default context", ("GET", "/contexts"), body=["."]),
    Case("contexts", ("GET", "/contexts"), body=[".", ".a", ".b"],
         before=[add(":.b:s", "a"), add(":.a:s", "a")]),
    Case("contexts from the second on", ("GET", "/contexts?offset=1&limit=1"), body=[".a"],
         before=[add(":.b:s", "a"), add(":.a:s", "a")]),
    Case("contexts with a prefix", ("GET", "/contexts?contextPrefix=.b"), body=[".b"],
         before=[add(":.b:s", "a"), add(":.a:s", "a")]),
    Case("delete a context", ("DELETE", "/contexts/.a"), 204, before=[
        add(":.a:s", "a"), ("DELETE", "/subjects/:.a:s"),
        ("DELETE", "/subjects/:.a:s?permanent=true")]),
    Case("delete a context in colons", ("DELETE", "/contexts/:.a:"), 204),
    Case("a context with schemas", ("DELETE", "/contexts/.a"), 42211, before=[add(":.a:s", "a")]),
    Case("a context with soft-deleted schemas", ("DELETE", "/contexts/.a"), 42211,
         before=[add(":.a:s", "a"), ("DELETE", "/subjects/:.a:s")]),
    Case("a context is not to be read", ("GET", "/contexts/.a"), 405),
    Case("no context with a colon inside", ("DELETE", "/contexts/a:b"), 400),
]  # fmt: skip

SUBJECTS = [
    Case("no subjects", ("GET", "/subjects"), body=[]),
    Case("subjects of all contexts", ("GET", "/subjects"), body=[":.c:s", "a", "b"],
         before=[add("b", "x"), add("a", "x"), add(":.c:s", "x")]),
    Case("subjects with a prefix", ("GET", "/subjects?subjectPrefix=a"), body=["a1", "a2"],
         before=[add("a2", "x"), add("a1", "x"), add("b", "x")]),
    Case("subjects of a context", ("GET", "/subjects?subjectPrefix=:.c:"), body=[":.c:s"],
         before=[add("a", "x"), add(":.c:s", "x")]),
    Case("subjects of the default context", ("GET", "/subjects?subjectPrefix="), body=["a"],
         before=[add("a", "x"), add(":.c:s", "x")]),
    Case("subjects in a page", ("GET", "/subjects?offset=1&limit=1"), body=["b"],
         before=[add("a", "x"), add("b", "x"), add("c", "x")]),
    Case("limits below zero do not count", ("GET", "/subjects?limit=-5"), body=["a"],
         before=[add("a", "x")]),
    Case("a limit that is none", ("GET", "/subjects?limit=abc"), 404),
    Case("an offset of 33 bits", ("GET", "/subjects?offset=4294967296"), 404),
    Case("an empty limit is none", ("GET", "/subjects?limit="), body=[]),
    Case("deleted subjects are not listed", ("GET", "/subjects"), body=[], before=GONE),
    Case("deleted subjects too", ("GET", "/subjects?deleted=true"), body=["live", "s"],
         before=[*GONE, add("live", "a")]),
    Case("deleted subjects alone", ("GET", "/subjects?deletedOnly=true"), body=["s"],
         before=[*GONE, add("live", "a")]),
    Case("deleted alone wins", ("GET", "/subjects?deletedOnly=TRUE&deleted=true"), body=["s"],
         before=[*GONE, add("live", "a")]),
    Case("a flag that is not true is false", ("GET", "/subjects?deleted=yes"), body=[],
         before=GONE),
    Case("subjects cannot be put", ("PUT", "/subjects", {}), 405),
]  # fmt: skip

LOOK_UP = [
    Case("look up", ("POST", "/subjects/s", schema("a")), before=TWO,
         has={"subject": "s", "version": 1, "id": 1, "schemaType": "AVRO", "schema": A,
              "deleted": False}),
    Case("look up in another type", ("POST", "/subjects/s", schema("a", schemaType="JSON")),
         40403, before=[add("s", "a")]),
    Case("look up a subject that is not there", ("POST", "/subjects/s", schema("a")), 40401),
    Case("look up a schema that is not there", ("POST", "/subjects/s", schema("z")), 40403,
         before=TWO),
    Case("look up what is no schema", ("POST", "/subjects/s", {"schema": "{"}), 42201, before=TWO),
    Case("look up a deleted one", ("POST", "/subjects/s", schema("a")), 40401, before=GONE),
    Case("look up with deleted ones", ("POST", "/subjects/s?deleted=true", schema("a")),
         before=GONE, has={"version": 1, "deleted": True}),
    Case("look up normalised", ("POST", "/subjects/s?normalize=true", schema("b", "a")),
         has={"version": 1}, before=[add("s", "a", "b")]),
    Case("look up not normalised", ("POST", "/subjects/s", schema("b", "a")), 40403,
         before=[add("s", "a", "b")]),
    Case("look up in a form", ("POST", "/subjects/s?format=resolved",
         REFERRING),
         has={"schema": '{"fields": ["b"], "uses": ["{\\"fields\\":[\\"a\\"]}"]}'},
         before=REFERRED),
    Case("latest with metadata", ("GET", "/subjects/s/metadata?key=k&value=1"),
         has={"version": 1, "metadata": {"properties": {"k": "1"}}},
         before=[NONE, add("s", "a", metadata={"properties": {"k": "1"}}),
                 add("s", "b", metadata={"properties": {"k": "2"}})]),
    Case("no version with that metadata", ("GET", "/subjects/s/metadata?key=k&value=3"), 40403,
         before=[add("s", "a", metadata={"properties": {"k": "1"}})]),
    Case("metadata of no subject", ("GET", "/subjects/s/metadata?key=k&value=3"), 40401),
]  # fmt: skip

DELETE_SUBJECT = [
    Case("delete a subject of one", ("DELETE", "/subjects/s"), body=[1], before=[add("s", "a")]),
    Case("delete a subject of three", ("DELETE", "/subjects/s"), body=[1, 2, 3], before=THREE),
    Case("delete for good", ("DELETE", "/subjects/s?permanent=true"), body=[1, 2], before=GONE),
    Case("delete no subject", ("DELETE", "/subjects/s"), 40401),
    Case("delete twice", ("DELETE", "/subjects/s"), 40404, before=GONE),
    Case("for good at once", ("DELETE", "/subjects/s?permanent=true"), 40405, before=TWO),
    Case("delete what is referred to", ("DELETE", "/subjects/base"), 42206, before=REFERRED),
    Case("delete what is read-only", ("DELETE", "/subjects/s"), 42205,
         before=[*TWO, ("PUT", "/mode/s", {"mode": "READONLY"})]),
    Case("subjects cannot be replaced", ("PUT", "/subjects/s", {}), 405, before=TWO),
]  # fmt: skip

VERSIONS = [
    Case("versions", ("GET", "/subjects/s/versions"), body=[1, 2, 3], before=THREE),
    Case("versions in a page", ("GET", "/subjects/s/versions?offset=1&limit=1"), body=[2],
         before=THREE),
    Case("versions of no subject", ("GET", "/subjects/s/versions"), 40401),
    Case("versions of a deleted one", ("GET", "/subjects/s/versions"), 40401, before=GONE),
    Case("versions, deleted ones too", ("GET", "/subjects/s/versions?deleted=true"), body=[1, 2],
         before=[*TWO, ("DELETE", "/subjects/s/versions/1")]),
    Case("versions, deleted ones alone", ("GET", "/subjects/s/versions?deletedOnly=true"),
         body=[1], before=[*TWO, ("DELETE", "/subjects/s/versions/1")]),
    Case("versions, deleted ones with a minus",
         ("GET", "/subjects/s/versions?deletedAsNegative=true"),
         body=[-1, 2], before=[*TWO, ("DELETE", "/subjects/s/versions/1")]),
    Case("versions cannot be deleted in one", ("DELETE", "/subjects/s/versions"), 405, before=TWO),
    Case("register", add("s", "a"), has={"id": 1, "version": 1, "schemaType": "AVRO", "schema": A},
         lacks=["subject", "references", "deleted"]),
    Case("register again", add("s", "a"), has={"id": 1, "version": 1}, before=TWO),
    Case("the same under another subject", add("t", "a"), has={"id": 1, "version": 1}, before=TWO),
    Case("another schema, another id", add("t", "z"), has={"id": 3, "version": 1}, before=TWO),
    Case("register in a type", add("s", "a", schemaType="PROTOBUF"), has={
        "schemaType": "PROTOBUF"}),
    Case("a type in small letters", add("s", "a", schemaType="avro"), 42201),
    Case("a type that is not known", add("s", "a", schemaType="XML"), 42201),
    Case("register normalised", ("POST", "/subjects/s/versions?normalize=true", schema("b", "a")),
         has={"schema": text("a", "b")}),
    Case("register with a form of the answer",
         ("POST", "/subjects/s/versions?format=resolved", schema("b")),
         has={"schema": '{"fields": ["b"], "uses": []}'}),
    Case("a form that is not known", ("POST", "/subjects/s/versions?format=none", schema("b")),
         422),
    Case("incompatible", add("s", "b!"), 40901, before=[add("s", "a")]),
    Case("incompatible by force", ("POST", "/subjects/s/versions?force=true", schema("b!")),
         has={"version": 2}, before=[add("s", "a")]),
    Case("no schema", ("POST", "/subjects/s/versions", {}), 42201),
    Case("an empty schema", ("POST", "/subjects/s/versions", {"schema": ""}), 42201),
    Case("a schema that is none", ("POST", "/subjects/s/versions", {"schema": "not json{{{"}),
         42201),
    Case("half a surrogate pair in a schema",
         ("POST", "/subjects/s/versions", {"schema": '{"x":"\ud800"}'}), 42201),
    Case("a reference to no subject", ("POST", "/subjects/s/versions", schema(
        "a", references=[{"name": "x", "subject": "none", "version": 1}])), 42201),
    Case("a reference to no version", ("POST", "/subjects/s/versions", schema(
        "a", references=[{"name": "x", "subject": "base", "version": 999}])), 42201,
        before=[add("base", "a")]),
    Case("a reference without a version", ("POST", "/subjects/s/versions", schema(
        "a", references=[{"name": "x", "subject": "base"}])), 422, before=[add("base", "a")]),
    Case("an id outside of an import", add("s", "a", id=7), 42205),
    Case("an import", add("s", "a", id=7, version=4), has={"id": 7, "version": 4},
         before=[IMPORT]),
    Case("an import without an id", add("s", "a"), 42205, before=[IMPORT]),
    Case("an import of an id that is taken", add("s", "b", id=7), 42205,
         before=[IMPORT, add("t", "a", id=7, version=1)]),
    Case("a version that is not the next", add("s", "a", version=5), 42201),
    Case("a version below -1", add("s", "a", version=-2), 42202),
    Case("read-only", add("s", "a"), 42205, before=[("PUT", "/mode", {"mode": "READONLY"})]),
    Case("control characters", add("%00", "a"), 42208),
    Case("a reserved name", add("__GLOBAL", "a"), 42208),
    Case("rules without a type", add("s", "a", ruleSet={"domainRules": [{"name": "r"}]}), 42210),
    Case("metadata and rules", add("s", "a", metadata={"properties": {"k": "v"}}, ruleSet=RULES),
         has={"metadata": {"properties": {"k": "v"}},
              "ruleSet": {"domainRules": [RULES["domainRules"][0] | {"disabled": False}]}}),
    Case("references", REFERRED[1], has={"references": [REFERENCE]}, before=REFERRED[:1]),
    Case("tags on the way", add("s", "a", schemaTagsToAdd=[ENTITY]), has={"schema": TAGS}),
    Case("a tag for nothing", add("s", "b", schemaTagsToAdd=[ENTITY]), 42201),
]  # fmt: skip

VERSION = [
    Case("a version", ("GET", "/subjects/s/versions/1"), before=TWO,
         has={"subject": "s", "version": 1, "id": 1, "schemaType": "AVRO", "schema": A,
              "deleted": False}, lacks=["references", "metadata", "ruleSet", "schemaTags"]),
    Case("latest", ("GET", "/subjects/s/versions/latest"), has={"version": 2}, before=TWO),
    Case("-1 is latest", ("GET", "/subjects/s/versions/-1"), has={"version": 2}, before=TWO),
    Case("latest after a deletion", ("GET", "/subjects/s/versions/latest"), has={"version": 1},
         before=[*TWO, ("DELETE", "/subjects/s/versions/2")]),
    Case("version of no subject", ("GET", "/subjects/s/versions/1"), 40401),
    Case("latest of no subject", ("GET", "/subjects/s/versions/latest"), 40401),
    Case("no such version", ("GET", "/subjects/s/versions/99"), 40402, before=TWO),
    Case("version 0", ("GET", "/subjects/s/versions/0"), 42202, before=TWO),
    Case("version -2", ("GET", "/subjects/s/versions/-2"), 42202, before=TWO),
    Case("version abc", ("GET", "/subjects/s/versions/abc"), 42202, before=TWO),
    Case("version 2147483648", ("GET", "/subjects/s/versions/2147483648"), 42202, before=TWO),
    Case("a deleted version", ("GET", "/subjects/s/versions/1"), 40402,
         before=[*TWO, ("DELETE", "/subjects/s/versions/1")]),
    Case("a deleted version all the same", ("GET", "/subjects/s/versions/1?deleted=true"),
         has={"version": 1, "deleted": True}, before=[*TWO, ("DELETE", "/subjects/s/versions/1")]),
    Case("a version in a form", ("GET", "/subjects/s/versions/1?format=resolved"),
         has={"schema": '{"fields": ["b"], "uses": ["{\\"fields\\":[\\"a\\"]}"]}'},
         before=REFERRED),
    Case("a form that is not known", ("GET", "/subjects/s/versions/1?format=x"), 422, before=TWO),
    Case("tags found", ("GET", "/subjects/s/versions/1?findTags=PII"), has={"schemaTags": [TAGGED]},
         before=[("POST", "/subjects/s/versions", {"schema": TAGS})]),
    Case("all tags found", ("GET", "/subjects/s/versions/1?findTags=*"),
         has={"schemaTags": [TAGGED]}, before=[("POST", "/subjects/s/versions", {"schema": TAGS})]),
    Case("no tags found", ("GET", "/subjects/s/versions/1?findTags=x"), lacks=["schemaTags"],
         before=[("POST", "/subjects/s/versions", {"schema": TAGS})]),
    Case("references as they are", ("GET", "/contexts/.c/subjects/s/versions/1"),
         has={"references": [REFERENCE]},
         before=[(m, "/contexts/.c" + t, *rest) for m, t, *rest in REFERRED]),
    Case("references qualified",
         ("GET", "/contexts/.c/subjects/s/versions/1?referenceFormat=qualified"),
         has={"references": [REFERENCE | {"subject": ":.c:base"}]},
         before=[(m, "/contexts/.c" + t, *rest) for m, t, *rest in REFERRED]),
    Case("versions cannot be replaced", ("PUT", "/subjects/s/versions/1", {}), 405, before=TWO),
    Case("its text", ("GET", "/subjects/s/versions/1/schema"), body={"fields": ["a"]}, before=TWO),
    Case("its latest text", ("GET", "/subjects/s/versions/latest/schema"), body={"fields": ["b"]},
         before=TWO),
    Case("the text of no version", ("GET", "/subjects/s/versions/99/schema"), 40402, before=TWO),
    Case("the text of no subject", ("GET", "/subjects/s/versions/1/schema"), 40401),
    Case("its text in a form", ("GET", "/subjects/s/versions/1/schema?format=resolved"),
         body={"fields": ["a"], "uses": []}, before=TWO),
    Case("referred to by none", ("GET", "/subjects/s/versions/1/referencedby"), body=[],
         before=TWO),
    Case("referred to by one", ("GET", "/subjects/base/versions/1/referencedby"), body=[2],
         before=REFERRED),
    Case("referred to by a deleted one", ("GET", "/subjects/base/versions/1/referencedby"),
         body=[], before=[*REFERRED, ("DELETE", "/subjects/s")]),
    Case("referred to, deleted ones too",
         ("GET", "/subjects/base/versions/1/referencedby?deleted=true"),
         body=[2], before=[*REFERRED, ("DELETE", "/subjects/s")]),
    Case("no version to refer to", ("GET", "/subjects/s/versions/9/referencedby"), 40402,
         before=TWO),
    Case("delete version 1", ("DELETE", "/subjects/s/versions/1"), body=1, before=TWO),
    Case("delete version 2", ("DELETE", "/subjects/s/versions/2"), body=2, before=TWO),
    Case("delete the latest", ("DELETE", "/subjects/s/versions/latest"), body=2, before=TWO),
    Case("delete no version", ("DELETE", "/subjects/s/versions/99"), 40402, before=TWO),
    Case("delete of no subject", ("DELETE", "/subjects/s/versions/1"), 40401),
    Case("delete version abc", ("DELETE", "/subjects/s/versions/abc"), 42202, before=TWO),
    Case("delete a version twice", ("DELETE", "/subjects/s/versions/1"), 40406,
         before=[*TWO, ("DELETE", "/subjects/s/versions/1")]),
    Case("a version for good at once", ("DELETE", "/subjects/s/versions/1?permanent=true"), 40407,
         before=TWO),
    Case("a version for good", ("DELETE", "/subjects/s/versions/1?permanent=true"), body=1,
         before=[*TWO, ("DELETE", "/subjects/s/versions/1")]),
    Case("a version that is referred to", ("DELETE", "/subjects/base/versions/1"), 42206,
         before=REFERRED),
    Case("change tags", ("POST", "/subjects/s/versions/1/tags", {"tagsToAdd": [ENTITY]}),
         has={"version": 2, "schema": TAGS, "metadata": {"properties": {"confluent:version": "2"}}},
         before=[add("s", "a")]),
    Case("change tags of nothing", ("POST", "/subjects/s/versions/1/tags",
         {"tagsToAdd": [ENTITY]}), 40401),
    Case("rules at odds", ("POST", "/subjects/s/versions/1/tags",
         {"ruleSet": RULES, "rulesToRemove": ["r"]}), 42210, before=[add("s", "a")]),
    Case("rules to merge without a name", ("POST", "/subjects/s/versions/1/tags",
         {"rulesToMerge": {"domainRules": [{}]}}), 42210, before=[add("s", "a")]),
    Case("tags of a reserved name", ("POST", "/subjects/__EMPTY/versions/1/tags", {}), 42208),
]  # fmt: skip

SCHEMAS = [
    Case("types", ("GET", "/schemas/types"), body=["AVRO", "JSON", "PROTOBUF"]),
    Case("types cannot be posted", ("POST", "/schemas/types", {"type": "AVRO"}), 405),
    Case("types cannot be deleted", ("DELETE", "/schemas/types"), 405),
    Case("types cannot be put", ("PUT", "/schemas/types", {}), 405),
    Case("schemas cannot be posted", ("POST", "/schemas", {"schema": "{}"}), 405),
    Case("ids cannot be deleted", ("DELETE", "/schemas/ids/1"), 405),
    Case("by id", ("GET", "/schemas/ids/1"), before=TWO,
         has={"schema": A, "schemaType": "AVRO", "subject": "s", "version": 1}, lacks=["id",
         "maxId", "references"]),
    Case("by id, of a type", ("GET", "/schemas/ids/1"), before=[add("s", "a", schemaType="JSON")],
         has={"schemaType": "JSON"}),
    Case("by id, deleted", ("GET", "/schemas/ids/1"), before=GONE, has={"schema": A}),
    Case("by id, with references", ("GET", "/schemas/ids/2"), before=REFERRED,
         has={"references": [REFERENCE]}),
    Case("by id, with the highest id", ("GET", "/schemas/ids/1?fetchMaxId=true"), before=THREE,
         has={"maxId": 3}),
    Case("by id, in a form", ("GET", "/schemas/ids/1?format=resolved"), before=TWO,
         has={"schema": '{"fields": ["a"], "uses": []}'}),
    Case("by id, with tags", ("GET", "/schemas/ids/1?findTags=*"), has={"schemaTags": [TAGGED]},
         before=[("POST", "/subjects/s/versions", {"schema": TAGS})]),
    Case("by id, of a subject", ("GET", "/schemas/ids/1?subject=t"), has={"subject": "t"},
         before=[add("s", "a"), add("t", "a")]),
    Case("by id, in a context", ("GET", "/schemas/ids/1?subject=:.c:"),
         has={"subject": ":.c:t", "schema": text("b")}, before=[add("s", "a"), add(":.c:t", "b")]),
    Case("by id, in the context of a subject", ("GET", "/schemas/ids/1?subject=t"),
         has={"subject": ":.c:t"}, before=[add("s", "a"), add(":.c:t", "b")]),
    Case("no such id", ("GET", "/schemas/ids/999999"), 40403),
    Case("an id that is no number", ("GET", "/schemas/ids/abc"), 404),
    Case("an id of 33 bits", ("GET", "/schemas/ids/4294967297"), 404),
    Case("an id below zero", ("GET", "/schemas/ids/-1"), 40403),
    Case("text by id", ("GET", "/schemas/ids/1/schema"), body={"fields": ["a"]}, before=TWO),
    Case("no text by id", ("GET", "/schemas/ids/99999/schema"), 40403),
    Case("subjects of an id", ("GET", "/schemas/ids/1/subjects"), body=["s", "t", "u"],
         before=[add("u", "a"), add("t", "a"), add("s", "a")]),
    Case("subjects of an id in a page", ("GET", "/schemas/ids/1/subjects?offset=1&limit=1"),
         body=["t"], before=[add("u", "a"), add("t", "a"), add("s", "a")]),
    Case("subjects of an id that are live", ("GET", "/schemas/ids/1/subjects"), body=["s"],
         before=[add("s", "a"), add("t", "a"), ("DELETE", "/subjects/t")]),
    Case("subjects of an id with deleted ones", ("GET", "/schemas/ids/1/subjects?deleted=true"),
         body=["s", "t"], before=[add("s", "a"), add("t", "a"), ("DELETE", "/subjects/t")]),
    Case("subjects of no id", ("GET", "/schemas/ids/999999/subjects"), 40403),
    Case("versions of an id", ("GET", "/schemas/ids/1/versions"), before=[
        add("s", "a"), add("t", "a")],
        body=[{"subject": "s", "version": 1}, {"subject": "t", "version": 1}]),
    Case("versions of an id in a page", ("GET", "/schemas/ids/1/versions?limit=1"), before=[
        add("s", "a"), add("t", "a")], body=[{"subject": "s", "version": 1}]),
    Case("versions of no id", ("GET", "/schemas/ids/9/versions"), 40403),
    Case("a guid that is none", ("GET", "/schemas/guids/abc"), 40403),
    Case("a guid that is not known", ("GET", f"/schemas/guids/{GUID}"), 40403),
    Case("ids of a guid that is not known", ("GET", f"/schemas/guids/{GUID}/ids"), body=[]),
    Case("no schemas", ("GET", "/schemas"), body=[]),
    Case("an offset past the end", ("GET", "/schemas?offset=9999"), body=[], before=TWO),
    Case("an association that none has", ("GET", "/schemas?associationType=value"), body=[],
         before=TWO),
    Case("a lifecycle that is none", ("GET", "/schemas?lifecycle=x"), 404),
]  # fmt: skip

COMPATIBILITY = [
    Case("compatible", ("POST", "/compatibility/subjects/s/versions/1", schema("a", "b")),
         body={"is_compatible": True}, before=[add("s", "a")]),
    Case("compatible with the latest", ("POST", "/compatibility/subjects/s/versions/latest",
         schema("b")), body={"is_compatible": True}, before=[add("s", "a")]),
    Case("not compatible", ("POST", "/compatibility/subjects/s/versions/1", schema("b!")),
         body={"is_compatible": False}, before=[add("s", "a")]),
    Case("not compatible, in words", ("POST",
         "/compatibility/subjects/s/versions/1?verbose=true", schema("b!")),
         has={"is_compatible": False}, before=[add("s", "a")]),
    Case("no words if compatible", ("POST",
         "/compatibility/subjects/s/versions/1?verbose=true", schema("b")),
         body={"is_compatible": True, "messages": []}, before=[add("s", "a")]),
    Case("check against no version", ("POST", "/compatibility/subjects/s/versions/99",
         schema("b")), 40402, before=[add("s", "a")]),
    Case("check against no subject", ("POST", "/compatibility/subjects/s/versions/1",
         schema("b")), 40402),
    Case("check against the latest of no subject", ("POST",
         "/compatibility/subjects/s/versions/latest", schema("b")), body={"is_compatible": True}),
    Case("check against version 0", ("POST", "/compatibility/subjects/s/versions/0",
         schema("b")), 42202),
    Case("check what is no schema", ("POST", "/compatibility/subjects/s/versions/1",
         {"schema": "{"}), 42201, before=[add("s", "a")]),
    Case("check what is no schema, in words", ("POST",
         "/compatibility/subjects/s/versions/1?verbose=true", {"schema": "{"}),
         has={"is_compatible": False}, before=[add("s", "a")]),
    Case("check all", ("POST", "/compatibility/subjects/s/versions", schema("b!")),
         body={"is_compatible": False}, before=[
             ("PUT", "/config", {"compatibility": "BACKWARD_TRANSITIVE"}), add("s", "a")]),
    Case("check all of no subject", ("POST", "/compatibility/subjects/s/versions", schema("b!")),
         body={"is_compatible": True}),
    Case("check what is empty", ("POST", "/compatibility/subjects/s/versions", {}), 42201),
]  # fmt: skip

CONFIG = [
    Case("config", ("GET", "/config"), body={"compatibilityLevel": "BACKWARD"}),
    Case("change config", ("PUT", "/config", {"compatibility": "FULL"}),
         body={"compatibility": "FULL"}),
    Case("change config in small letters", ("PUT", "/config", {"compatibility": "full"}),
         body={"compatibility": "FULL"}),
    Case("config with nothing to change", ("PUT", "/config", {}), has={"compatibility": "FULL"},
         before=[("PUT", "/config", {"compatibility": "FULL"})]),
    Case("no such level", ("PUT", "/config", {"compatibility": "INVALID_LEVEL"}), 42203),
    Case("no such level for a subject", ("PUT", "/config/s", {"compatibility": "NOT"}), 42203),
    Case("a switch that is none", ("PUT", "/config", {"normalize": 5}), 422),
    Case("rules that are none", ("PUT", "/config", {"defaultRuleSet": {"domainRules": [{}]}}),
         42210),
    Case("config of a subject", ("GET", "/config/s"), has={"compatibilityLevel": "FORWARD"},
         before=[("PUT", "/config/s", {"compatibility": "FORWARD"})]),
    Case("no config of a subject", ("GET", "/config/s"), 40408),
    Case("what holds for a subject", ("GET", "/config/s?defaultToGlobal=true"),
         has={"compatibilityLevel": "BACKWARD"}),
    Case("change config of a subject", ("PUT", "/config/s", {"compatibility": "FULL"}),
         has={"compatibility": "FULL"}),
    Case("config of an alias", ("PUT", "/config/s", {"alias": "t"}), has={"alias": "t"}),
    Case("remove config of a subject", ("DELETE", "/config/s"), has={"compatibilityLevel": "FULL"},
         before=[("PUT", "/config/s", {"compatibility": "FULL"})]),
    Case("remove config of no subject", ("DELETE", "/config/s"), 40401),
    Case("remove config", ("DELETE", "/config"), has={"compatibilityLevel": "FULL"},
         before=[("PUT", "/config", {"compatibility": "FULL"})]),
    Case("config is gone", ("GET", "/config"), has={"compatibilityLevel": "BACKWARD"},
         before=[("PUT", "/config", {"compatibility": "FULL"}), ("DELETE", "/config")]),
    Case("config when read-only", ("PUT", "/config", {"compatibility": "FULL"}), 42205,
         before=[("PUT", "/mode", {"mode": "READONLY"})]),
    Case("config of a reserved name", ("PUT", "/config/__EMPTY", {"normalize": True}), 42208),
    Case("config cannot be posted", ("POST", "/config", {}), 405),
]  # fmt: skip

MODE = [
    Case("mode", ("GET", "/mode"), body={"mode": "READWRITE"}),
    Case("change mode", ("PUT", "/mode", {"mode": "READONLY"}), body={"mode": "READONLY"}),
    Case("mode of a subject", ("GET", "/mode/s"), body={"mode": "READONLY"},
         before=[("PUT", "/mode/s", {"mode": "READONLY"})]),
    Case("no mode of a subject", ("GET", "/mode/s"), 40409),
    Case("the mode that holds", ("GET", "/mode/s?defaultToGlobal=true"), body={
        "mode": "READONLY"}, before=[("PUT", "/mode", {"mode": "READONLY"})]),
    Case("no such mode", ("PUT", "/mode", {"mode": "INVALID_MODE"}), 42204),
    Case("mode not said", ("PUT", "/mode", {}), 42204),
    Case("take a mode away", ("PUT", "/mode/s", {"mode": None}), body={"mode": None},
         before=[("PUT", "/mode/s", {"mode": "READONLY"})]),
    Case("import with schemas", ("PUT", "/mode", {"mode": "IMPORT"}), 42205, before=TWO),
    Case("import by force", ("PUT", "/mode?force=true", {"mode": "IMPORT"}),
         body={"mode": "IMPORT"}, before=TWO),
    Case("mode of a reserved name", ("PUT", "/mode/__EMPTY", {"mode": "READONLY"}), 42208),
    Case("remove mode", ("DELETE", "/mode"), body={"mode": "READONLY"},
         before=[("PUT", "/mode", {"mode": "READONLY"})]),
    Case("remove mode of a subject", ("DELETE", "/mode/s"), body={"mode": "READONLY"},
         before=[("PUT", "/mode/s", {"mode": "READONLY"})]),
    Case("remove mode of no subject", ("DELETE", "/mode/s"), 40401),
    Case("remove modes of a context", ("DELETE", "/mode/:.c:?recursive=true"), body={},
         before=[("PUT", "/mode/:.c:s", {"mode": "READONLY"})]),
    Case("mode cannot be posted", ("POST", "/mode", {}), 405),
]  # fmt: skip

CASES = [
    *ROOT,
    *CONTEXTS,
    *SUBJECTS,
    *LOOK_UP,
    *DELETE_SUBJECT,
    *VERSIONS,
    *VERSION,
    *SCHEMAS,
    *COMPATIBILITY,
    *CONFIG,
    *MODE,
]


def new_app() -> RegistryApp:
    config = HttpConfig(version="1.2", commit_id="c0ffee", deployment=("x",))
    return RegistryApp(MemoryService(), config)


def send(app: RegistryApp, step: Step) -> Reply:
    return run(ask(app, *step))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_route(case: Case) -> None:
    app = new_app()
    for step in case.before:
        reply = send(app, step)
        assert reply.status < 300, (step, reply.body)
    reply = send(app, case.request)
    assert reply.code == case.code, reply.body
    assert reply.status == (case.code if case.code < 1000 else case.code // 100)
    if case.body is not None:
        assert reply.json == case.body
    for name, value in case.has.items():
        assert reply.json.get(name) == value, (name, reply.json)
    assert (
        not set(case.lacks) & set(reply.json if isinstance(reply.json, dict) else ())
        if (case.lacks)
        else True
    )


def test_every_route_is_in_the_table_of_cases() -> None:
    called: dict[int, set[str]] = {}
    for case in CASES:
        for method, target, *_ in (*case.before, case.request):
            try:
                parts, _ = without_context(segments(target.partition("?")[0].encode()))
            except RegistryError:
                continue
            called.setdefault(id(find(parts)[0]), set()).add(method)
    for method, path, _ in TABLE:
        node, _ = find(segments(path.encode()))
        assert method in called.get(id(node), ()), f"{method} {path}"


def test_schemas_are_listed() -> None:
    app = new_app()
    for step in (
        *TWO,
        add("t", "a", ruleSet=RULES),
        add(":.c:u", "x"),
        ("PUT", "/config/alias", {"alias": "s"}),
        ("DELETE", "/subjects/s/versions/1"),
    ):
        assert send(app, step).status == 200

    def listed(query: str) -> list[tuple[str, int]]:
        reply = send(app, ("GET", f"/schemas{query}"))
        assert reply.status == 200
        assert all("schema" in one and "id" in one for one in reply.json)
        return [(one["subject"], one["version"]) for one in reply.json]

    table = {
        "": [("s", 2), ("t", 1)],
        "?deleted=true": [("s", 1), ("s", 2), ("t", 1)],
        "?deleted=true&latestOnly=true": [("s", 2), ("t", 1)],
        "?subjectPrefix=s": [("s", 2)],
        "?subjectPrefix=:*:": [(":.c:u", 1), ("s", 2), ("t", 1)],
        "?subjectPrefix=:.c:": [(":.c:u", 1)],
        "?ruleType=CEL": [("t", 1)],
        "?ruleType=OTHER": [],
        "?offset=1&limit=5": [("t", 1)],
        "?limit=1": [("s", 2)],
        "?subjectPrefix=al": [],
        "?subjectPrefix=al&aliases=true": [("s", 2)],
        "?lifecycle=STRONG": [],
        "?lifecycle=STRONG&lifecycle=NONE": [("s", 2), ("t", 1)],
        "?resourceType=topic": [],
    }
    assert {query: listed(query) for query in table} == table
    found = send(app, ("GET", "/schemas?subjectPrefix=al&aliases=true")).json
    assert [one["aliases"] for one in found] == [["alias"]]


def test_a_guid_names_the_content_of_a_schema() -> None:
    app = new_app()
    first = send(app, add("s", "a")).json
    again = send(app, add(":.c:s", "a")).json
    assert first["guid"] == again["guid"]
    found = send(app, ("GET", f"/schemas/guids/{first['guid']}")).json
    assert found == {
        "guid": first["guid"],
        "schemaType": "AVRO",
        "schema": A,
        "deleted": False,
    }
    ids = send(app, ("GET", f"/schemas/guids/{first['guid']}/ids")).json
    assert ids == [{"context": ".", "id": 1}, {"context": ".c", "id": 1}]


def test_fields_come_in_confluent_s_order() -> None:
    app = new_app()
    everything = REFERRING | {
        "metadata": {"properties": {"k": "v"}},
        "ruleSet": RULES,
    }
    send(app, add("base", "a"))
    made = send(app, ("POST", "/subjects/s/versions", everything))
    assert list(made.json) == [
        "id", "version", "guid", "schemaType", "references", "metadata", "ruleSet", "schema",
    ]  # fmt: skip
    assert list(send(app, ("GET", "/subjects/s/versions/1")).json) == [
        "subject", "version", "id", "guid", "schemaType", "references", "metadata", "ruleSet",
        "schema", "deleted",
    ]  # fmt: skip
    assert list(send(app, ("GET", "/schemas/ids/2?fetchMaxId=true")).json) == [
        "subject", "version", "guid", "schemaType", "schema", "references", "metadata", "ruleSet",
        "maxId", "deleted",
    ]  # fmt: skip


def test_an_answer_that_is_kept_changes_with_its_schema() -> None:
    app = new_app()
    for step in TWO:
        send(app, step)
    reads = ("/subjects/s/versions/1", "/schemas/ids/1")
    for target in reads:
        first, second = send(app, ("GET", target)), send(app, ("GET", target))
        assert first.body == second.body
        assert first.json["deleted"] is False
    send(app, ("DELETE", "/subjects/s/versions/1"))
    assert send(app, ("GET", reads[0])).code == 40402
    assert send(app, ("GET", reads[1])).json["deleted"] is True
    send(app, ("DELETE", "/subjects/s/versions/1?permanent=true"))
    assert send(app, ("GET", reads[1])).code == 40403
