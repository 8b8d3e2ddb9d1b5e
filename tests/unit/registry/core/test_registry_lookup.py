"""Reads: a version, an id, a guid, a content, and the lists of all of them."""

import pytest

from barnabas.registry.contracts import Metadata, Rule, RuleSet
from barnabas.registry.core.decision import Defaults, Limits
from barnabas.registry.core.deletion import delete_subject, delete_version
from barnabas.registry.core.listing import (
    list_contexts,
    list_schemas,
    list_subjects,
    list_versions,
    referenced_by,
    subjects_of_id,
    versions_of_id,
)
from barnabas.registry.core.lookup import (
    ContextId,
    formatted,
    get_by_guid,
    get_by_id,
    get_version,
    guid,
    ids_of_guid,
    latest_with_metadata,
    look_up,
    schema_json,
    version_number,
)
from barnabas.registry.core.modes import set_mode
from barnabas.registry.core.requests import SchemaRequest
from barnabas.registry.core.settings import ConfigUpdate, update_config
from barnabas.registry.errors import RegistryError
from barnabas.registry.store.records import SchemaValue
from barnabas.schemas.schema import Reference
from support.registry_format import Registry, put, refused_read, text

CHECK = RuleSet(domain_rules=(Rule("check", type="CEL"),))


@pytest.fixture
def registry() -> Registry:
    """Subject a: 1, 2 (deleted), 3 (refers to b 1); b: 1 as a 1; old: deleted; :.c:only and
    :.c:a with other schemas.
    """
    registry = Registry()
    put(registry, "a", text("x"), metadata=Metadata(properties={"k": "v", "l": "w"}))
    put(registry, "a", text("x", "y"), metadata=Metadata(properties={"k": "v"}))
    put(registry, "b", text("b"))
    put(
        registry,
        "a",
        text("x", "z", uses=["B"]),
        references=(Reference("B", "b", 1),),
        metadata=Metadata(properties={"k": "other"}),
        rule_set=CHECK,
    )
    put(registry, "old", text("b"))
    put(registry, ":.c:only", text("c"))
    put(registry, ":.c:a", text("d"))
    registry.do(delete_version, "a", 2)
    registry.do(delete_subject, "old")
    return registry


@pytest.mark.parametrize(
    ("version", "number"),
    [
        ("1", 1),
        (" 7 ", 7),
        ("latest", -1),
        ("LATEST", -1),
        ("-1", -1),
        (-1, -1),
        ("2147483647", (1 << 31) - 1),
    ],
)
def test_a_version_is_a_number_or_latest(version: str | int, number: int) -> None:
    assert version_number(version) == number


@pytest.mark.parametrize("version", ["0", 0, "-2", "x", "", "1.5", "1_0", "٣", "2147483648", "1e3"])
def test_other_versions_are_refused(version: str | int) -> None:
    with pytest.raises(RegistryError) as caught:
        version_number(version)
    assert caught.value.code == 42202
    assert caught.value.status == 422


@pytest.mark.parametrize(
    ("subject", "version", "deleted", "expected"),
    [
        ("a", 1, False, ("a", 1)),
        ("a", "latest", False, ("a", 3)),
        ("a", 2, True, ("a", 2)),
        (":.:a", 1, False, ("a", 1)),
        (":.c:a", 1, False, (":.c:a", 1)),
        ("only", 1, False, (":.c:only", 1)),
        ("only", "latest", False, (":.c:only", 1)),
        ("old", 1, True, ("old", 1)),
        ("a", 2, False, 40402),
        ("a", 9, False, 40402),
        ("old", 1, False, 40401),
        ("old", 9, True, 40402),
        ("old", "latest", True, 40402),
        ("none", 1, True, 40401),
        (":.c:b", 1, False, 40401),
        ("a", "zero", False, 42202),
    ],
)
def test_versions_are_found(
    registry: Registry,
    subject: str,
    version: str | int,
    deleted: bool,
    expected: tuple[str, int] | int,
) -> None:
    if isinstance(expected, int):
        refused_read(registry, expected, get_version, subject, version, deleted=deleted)
    else:
        found = get_version(registry.view, subject, version, deleted=deleted)
        assert (found.subject, found.version) == expected


def test_a_version_as_json(registry: Registry) -> None:
    value = get_version(registry.view, "a", 3)
    assert list(schema_json(value).items()) == [
        ("subject", "a"),
        ("version", 3),
        ("id", 4),
        ("guid", guid(value)),
        ("schemaType", "AVRO"),
        ("references", [{"name": "B", "subject": "b", "version": 1}]),
        ("metadata", {"properties": {"k": "other"}}),
        (
            "ruleSet",
            {
                "domainRules": [
                    {
                        "name": "check",
                        "kind": "TRANSFORM",
                        "mode": "WRITEREAD",
                        "type": "CEL",
                        "disabled": False,
                    }
                ]
            },
        ),
        ("schema", text("x", "z", uses=["B"])),
        ("deleted", False),
    ]
    assert schema_json(SchemaValue("s", 1, 1, "x", timestamp_ms=5))["ts"] == 5


@pytest.mark.parametrize(
    ("schema_id", "subject", "expected"),
    [
        (1, None, "a"),
        (1, "", "a"),
        (1, "a", "a"),
        (1, ":.:a", "a"),
        (1, ":.c:", ":.c:only"),
        (1, ":.c:only", ":.c:only"),
        (1, "only", ":.c:only"),
        (2, None, "a"),
        (2, "a", "a"),
        (3, "old", "old"),
        (3, "b", "b"),
        (1, "none", "a"),
        (2, "only", "a"),
        (9, None, 40403),
        (3, ":.c:", 40403),
        (1, ":.c:none", 40403),
        (1, ":.d:", 40403),
    ],
)
def test_schemas_are_found_by_id(
    registry: Registry, schema_id: int, subject: str | None, expected: str | int
) -> None:
    if isinstance(expected, int):
        refused_read(registry, expected, get_by_id, schema_id, subject)
    else:
        assert get_by_id(registry.view, schema_id, subject).subject == expected


def test_schemas_are_found_by_guid(registry: Registry) -> None:
    put(registry, ":.c:b", text("b"))
    name = guid(get_version(registry.view, "b", 1))
    assert ids_of_guid(registry.view, name) == [ContextId(".", 3), ContextId(".c", 3)]
    assert ids_of_guid(registry.view, name.replace("-", "")) == ids_of_guid(registry.view, name)
    assert get_by_guid(registry.view, name).text == text("b")
    only = guid(get_version(registry.view, ":.c:only", 1))
    assert get_by_guid(registry.view, only).subject == ":.c:only"
    assert ids_of_guid(registry.view, "no guid") == []
    refused_read(registry, 40403, get_by_guid, "no guid")
    refused_read(registry, 40403, get_by_guid, "0" * 32)


@pytest.mark.parametrize(
    ("subject", "schema", "deleted", "expected"),
    [
        ("a", text("x"), False, ("a", 1)),
        ("a", ' {"fields" : ["x"]}', False, 40403),
        ("b", text("b"), False, ("b", 1)),
        ("only", text("c"), False, (":.c:only", 1)),
        (":.c:only", text("c"), False, (":.c:only", 1)),
        ("old", text("b"), True, ("old", 1)),
        ("old", text("b"), False, 40401),
        ("old", text("x"), True, 40403),
        ("a", text("x", "y"), False, 40403),
        ("a", text("x", "y"), True, ("a", 2)),
        ("none", text("x"), False, 40401),
        ("none", "{", False, 42201),
        ("a", "", False, 40403),
    ],
)
def test_schemas_are_looked_up_by_content(
    registry: Registry, subject: str, schema: str, deleted: bool, expected: tuple[str, int] | int
) -> None:
    metadata = {
        text("x"): Metadata(properties={"k": "v", "l": "w"}),
        text("x", "y"): Metadata(properties={"k": "v"}),
    }.get(schema)
    request = SchemaRequest(schema, metadata=metadata)
    if isinstance(expected, int):
        refused_read(registry, expected, look_up, subject, request, deleted=deleted)
    else:
        found = look_up(registry.view, subject, request, deleted=deleted)
        assert (found.subject, found.version) == expected


def test_a_look_up_is_completed_as_a_registration_is(registry: Registry) -> None:
    references = (Reference("B", "b", -1),)
    request = SchemaRequest(text("x", "z", uses=["B"]), references=references)
    assert look_up(registry.view, "a", request).version == 3
    first = put(registry, "n", text("p", "q"), normalize=True)
    assert look_up(registry.view, "n", SchemaRequest(text("q", "p")), normalize=True) == first
    refused_read(registry, 40403, look_up, "n", SchemaRequest(text("q", "p")))
    registry.do(update_config, "n", ConfigUpdate({"normalize": True}))
    assert look_up(registry.view, "n", SchemaRequest(text("q", "p"))) == first


@pytest.mark.parametrize(
    ("subject", "properties", "deleted", "expected"),
    [
        ("a", {"k": "v"}, False, 1),
        ("a", {"k": "v"}, True, 2),
        ("a", {"k": "v", "l": "w"}, True, 1),
        ("a", {}, False, 3),
        ("a", {"k": "none"}, False, 40403),
        ("b", {"k": "v"}, False, 40403),
        ("old", {}, False, 40401),
        ("none", {}, False, 40401),
    ],
)
def test_the_latest_version_with_metadata(
    registry: Registry, subject: str, properties: dict[str, str], deleted: bool, expected: int
) -> None:
    if expected > 40000:
        refused_read(registry, expected, latest_with_metadata, subject, properties)
    else:
        found = latest_with_metadata(registry.view, subject, properties, deleted=deleted)
        assert found.version == expected


def test_texts_have_the_forms_of_their_format(registry: Registry) -> None:
    value = get_version(registry.view, "a", 3)
    before = registry.formats.parsed
    assert formatted(registry.view, value, "") == value.text
    assert registry.formats.parsed == before
    assert text("b").replace('"', '\\"') in formatted(registry.view, value, "resolved")
    with pytest.raises(RegistryError, match="no form"):
        formatted(registry.view, value, "odd")


# Lists


@pytest.mark.parametrize(
    ("prefix", "which", "expected"),
    [
        (":*:", "live", [":.c:a", ":.c:only", "a", "b"]),
        (":*:", "all", [":.c:a", ":.c:only", "a", "b", "old"]),
        (":*:", "deleted", ["old"]),
        ("", "live", ["a", "b"]),
        ("o", "all", ["old"]),
        (":*:o", "all", [":.c:only", "old"]),
        (":.c:", "live", [":.c:a", ":.c:only"]),
        (":.c:o", "live", [":.c:only"]),
        (":.:", "live", ["a", "b"]),
        (":.c", "live", [":.c:a", ":.c:only"]),
        (":.d:", "live", []),
    ],
)
def test_subjects_are_listed(
    registry: Registry, prefix: str, which: str, expected: list[str]
) -> None:
    found = list_subjects(registry.view, prefix=prefix, which=which)  # type: ignore[arg-type]
    assert found == expected


@pytest.mark.parametrize(
    ("which", "expected"), [("live", [1, 3]), ("all", [1, 2, 3]), ("deleted", [2])]
)
def test_versions_are_listed(registry: Registry, which: str, expected: list[int]) -> None:
    assert list_versions(registry.view, "a", which=which) == expected  # type: ignore[arg-type]


def test_versions_of_nothing_are_not_there(registry: Registry) -> None:
    refused_read(registry, 40401, list_versions, "none", which="all")
    refused_read(registry, 40401, list_versions, "old")
    assert list_versions(registry.view, "old", which="deleted") == [1]
    assert list_versions(registry.view, "b", which="deleted") == []
    assert list_versions(registry.view, "a", deleted_as_negative=True) == [1, -2, 3]


@pytest.mark.parametrize(
    ("offset", "limit", "expected"),
    [
        (0, -1, [1, 2, 3]),
        (1, -1, [2, 3]),
        (0, 2, [1, 2]),
        (1, 1, [2]),
        (5, 1, []),
        (-3, 2, [1, 2]),
        (0, 0, [1, 2, 3]),
        (0, 99, [1, 2, 3]),
    ],
)
def test_lists_come_in_pages(
    registry: Registry, offset: int, limit: int, expected: list[int]
) -> None:
    found = list_versions(registry.view, "a", which="all", offset=offset, limit=limit)
    assert found == expected


def test_a_limit_above_the_highest_is_the_default(registry: Registry) -> None:
    registry.defaults = Defaults(subjects=Limits(1, 2), schemas=Limits(2, 3))
    assert len(list_subjects(registry.view)) == 1
    assert len(list_subjects(registry.view, limit=2)) == 2
    assert len(list_subjects(registry.view, limit=3)) == 1
    assert len(list_schemas(registry.view, prefix=":*:", limit=9)) == 2


def test_contexts_are_listed(registry: Registry) -> None:
    put(registry, ":.b:x", text("x"))
    assert list_contexts(registry.view) == [".", ".b", ".c"]
    assert list_contexts(registry.view, prefix=".c") == [".c"]
    assert list_contexts(registry.view, offset=1, limit=1) == [".b"]


def names(found: object) -> list[tuple[str, int]]:
    return [(one.schema.subject, one.schema.version) for one in found]  # type: ignore[attr-defined]


def test_schemas_are_listed(registry: Registry) -> None:
    view = registry.view
    assert names(list_schemas(view)) == [("a", 1), ("a", 3), ("b", 1)]
    assert names(list_schemas(view, latest_only=True)) == [("a", 3), ("b", 1)]
    assert names(list_schemas(view, which="all", prefix="o")) == [("old", 1)]
    assert names(list_schemas(view, prefix=":*:", offset=1, limit=2)) == [(":.c:only", 1), ("a", 1)]
    assert names(list_schemas(view, rule_type="CEL")) == [("a", 3)]
    assert names(list_schemas(view, rule_type="CEL", prefix="b")) == []


def test_schemas_are_listed_with_the_aliases_of_their_subjects(registry: Registry) -> None:
    registry.do(update_config, "z1", ConfigUpdate({"alias": "a"}))
    registry.do(update_config, "z2", ConfigUpdate({"alias": "a"}))
    registry.do(update_config, "b1", ConfigUpdate({"alias": "b"}))
    found = list_schemas(registry.view, prefix="z", aliases=True)
    assert names(found) == [("a", 1), ("a", 3)]
    assert found[0].aliases == ("z1", "z2")
    assert list_schemas(registry.view, prefix="z") == []


def test_the_places_of_an_id_are_listed(registry: Registry) -> None:
    view = registry.view
    assert subjects_of_id(view, 3) == ["b"]
    assert subjects_of_id(view, 3, deleted=True) == ["b", "old"]
    assert versions_of_id(view, 2, deleted=True) == [("a", 2)]
    assert versions_of_id(view, 2) == []
    assert subjects_of_id(view, 1, ":.c:") == [":.c:only"]
    assert versions_of_id(view, 1, "only") == [(":.c:only", 1)]
    refused_read(registry, 40403, subjects_of_id, 9)
    refused_read(registry, 40403, versions_of_id, 9)


def test_referrers_are_listed(registry: Registry) -> None:
    view = registry.view
    assert referenced_by(view, "b", 1) == [ContextId(".", 4)]
    assert referenced_by(view, "b", "latest") == [ContextId(".", 4)]
    assert referenced_by(view, "a", 1) == []
    put(registry, "user", text("u", uses=["C"]), references=(Reference("C", ":.c:only", 1),))
    assert referenced_by(view, ":.c:only", 1) == [ContextId(".", 5)]
    assert referenced_by(view, "only", 1) == [ContextId(".", 5)]
    refused_read(registry, 40401, referenced_by, "none", 1)
    refused_read(registry, 40402, referenced_by, "b", 2)
    registry.do(delete_version, "a", 3)
    assert referenced_by(view, "b", 1) == []
    assert referenced_by(view, "b", 1, deleted=True) == [ContextId(".", 4)]


def test_an_import_does_not_normalise_look_ups(registry: Registry) -> None:
    put(registry, "n", text("q", "p"))
    registry.do(set_mode, "n", "IMPORT", force=True)
    assert look_up(registry.view, "n", SchemaRequest(text("q", "p")), normalize=True).version == 1
