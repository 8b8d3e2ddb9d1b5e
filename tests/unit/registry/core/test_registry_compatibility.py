"""Which versions a schema is held against, at each level, and what is said when it fails."""

import pytest

from barnabas.registry.contracts import Metadata
from barnabas.registry.core.compatibility import Verdict, check_all, check_version
from barnabas.registry.core.decision import Defaults
from barnabas.registry.core.deletion import delete_version
from barnabas.registry.core.registration import register
from barnabas.registry.core.requests import SchemaRequest
from barnabas.registry.core.settings import ConfigUpdate, update_config
from support.registry_format import Registry, put, refused, refused_read, text


@pytest.fixture
def registry() -> Registry:
    """Subject a: 1 {x}, 2 {x, y}, 3 {x, z!}; 4 {y} is deleted. A `!` has no default."""
    registry = Registry(Defaults(compatibility_level="NONE"))
    for fields in (["x"], ["x", "y"], ["x", "z!"], ["y"]):
        put(registry, "a", text(*fields))
    registry.do(delete_version, "a", 4)
    return registry


def level(registry: Registry, wanted: str) -> None:
    registry.do(update_config, "a", ConfigUpdate({"compatibility_level": wanted}))


# Fields of the new schema, and the levels at which it is compatible with all that counts.
LEVELS = [
    (["x", "z!"], {"NONE", "BACKWARD", "FORWARD", "FULL", "FORWARD_TRANSITIVE"}),
    (["x", "z"], {"NONE", "BACKWARD", "FORWARD", "FULL", "*"}),
    (["x"], {"NONE", "BACKWARD", "BACKWARD_TRANSITIVE"}),
    (["x!", "z"], {"NONE", "BACKWARD", "FORWARD", "FULL", "*"}),
    (["x", "y!", "z"], {"NONE", "FORWARD", "FORWARD_TRANSITIVE"}),
    (["y!"], {"NONE"}),
]


@pytest.mark.parametrize(("fields", "levels"), LEVELS)
@pytest.mark.parametrize(
    "wanted",
    [
        "NONE",
        "BACKWARD",
        "BACKWARD_TRANSITIVE",
        "FORWARD",
        "FORWARD_TRANSITIVE",
        "FULL",
        "FULL_TRANSITIVE",
    ],
)
def test_levels_say_with_which_versions_and_which_way(
    registry: Registry, fields: list[str], levels: set[str], wanted: str
) -> None:
    level(registry, wanted)
    expected = wanted in levels or ("*" in levels)
    request = SchemaRequest(text(*fields))
    verdict = check_all(registry.view, "a", request)
    assert verdict.is_compatible == expected
    assert bool(verdict.messages) != expected
    new = SchemaRequest(text(*fields, name="new"))
    if expected:
        assert registry.do(register, "a", new).version == 5
    else:
        refused(registry, 409, register, "a", new)


def test_everything_is_compatible_with_nothing(registry: Registry) -> None:
    for wanted in ("BACKWARD", "FULL_TRANSITIVE"):
        registry.do(update_config, None, ConfigUpdate({"compatibility_level": wanted}))
        request = SchemaRequest(text("y!"))
        assert check_all(registry.view, "new", request) == Verdict(True)
        assert check_version(registry.view, "new", "latest", request) == Verdict(True)
        assert put(registry, wanted, text("y!")).version == 1


@pytest.mark.parametrize(
    ("version", "expected"), [(1, False), (2, True), ("2", True), (3, False), ("latest", False)]
)
def test_one_version_can_be_asked_about(
    registry: Registry, version: str | int, expected: bool
) -> None:
    for wanted in ("BACKWARD", "BACKWARD_TRANSITIVE"):
        level(registry, wanted)
        request = SchemaRequest(text("y!"))
        assert check_version(registry.view, "a", version, request).is_compatible == expected


def test_the_words_of_a_refusal(registry: Registry) -> None:
    level(registry, "FULL")
    verdict = check_all(registry.view, "a", SchemaRequest(text("x", "y!")))
    assert verdict.messages == (
        (
            "{errorType:'FIELD_MISSING', description:'the new schema needs y! (at '/y!')', "
            "additionalInfo:'x'}"
        ),
        (
            "{errorType:'FIELD_MISSING', description:'the old schema needs z! (at '/z!')', "
            "additionalInfo:'x'}"
        ),
        "{oldSchemaVersion: 3}",
        "{oldSchema: '" + text("x", "z!") + "'}",
        "{validateFields: 'false', compatibility: 'FULL'}",
    )


def test_transitive_checks_stop_at_the_first_version_that_fails(registry: Registry) -> None:
    level(registry, "BACKWARD_TRANSITIVE")
    verdict = check_all(registry.view, "a", SchemaRequest(text("y!")))
    versions = [line for line in verdict.messages if "oldSchemaVersion" in line]
    assert versions == ["{oldSchemaVersion: 3}"]


def test_other_formats_say_it_in_their_way() -> None:
    registry = Registry()
    put(registry, "a", text("x"), schema_type="JSON")
    verdict = check_all(registry.view, "a", SchemaRequest(text("y!"), "JSON"))
    assert verdict.messages[0] == (
        '{errorType:"FIELD_MISSING", description:"the new schema needs y! (at \'/y!\')"}'
    )


def test_a_long_old_schema_is_cut(registry: Registry) -> None:
    level(registry, "BACKWARD")
    put(registry, "a", text(*(f"field{number}" for number in range(2000))))
    verdict = check_all(registry.view, "a", SchemaRequest(text("y!")))
    (shown,) = [line for line in verdict.messages if line.startswith("{oldSchema:")]
    assert shown.startswith("{oldSchema: <truncated> '")
    assert len(shown) < 11_000


def test_a_schema_of_another_type_is_not_compatible(registry: Registry) -> None:
    level(registry, "BACKWARD")
    verdict = check_all(registry.view, "a", SchemaRequest(text("x"), "JSON"))
    assert verdict.messages[0] == ("the schema is of type JSON, version 3 is of type AVRO")
    level(registry, "NONE")
    assert put(registry, "a", text("x"), schema_type="JSON").version == 5


def test_what_cannot_be_asked(registry: Registry) -> None:
    request = SchemaRequest(text("x"))
    refused_read(registry, 40402, check_version, "a", 4, request)
    refused_read(registry, 40402, check_version, "a", 9, request)
    refused_read(registry, 40402, check_version, "none", 1, request)
    refused_read(registry, 42202, check_version, "a", "first", request)


@pytest.mark.parametrize("schema", ["{", "", text("x", uses=["B"])])
def test_an_invalid_schema_is_refused_or_is_a_verdict(registry: Registry, schema: str) -> None:
    request = SchemaRequest(schema)
    refused_read(registry, 42201, check_all, "a", request)
    refused_read(registry, 42201, check_version, "a", 1, request)
    verdict = check_all(registry.view, "a", request, verbose=True)
    assert not verdict.is_compatible
    assert len(verdict.messages) == 1


def grouped(group: str | None) -> Metadata | None:
    return None if group is None else Metadata(properties={"major": group})


def test_only_versions_of_the_same_group_count() -> None:
    registry = Registry()
    registry.do(update_config, "a", ConfigUpdate({"compatibility_group": "major"}))
    put(registry, "a", text("x"), metadata=grouped("1"))
    put(registry, "a", text("x", "y!"), metadata=grouped("2"))
    assert put(registry, "a", text("x", "z"), metadata=grouped("1")).version == 3
    request = SchemaRequest(text("x", "y!", "z!"), metadata=grouped("2"))
    message = refused(registry, 409, register, "a", request)
    assert "{oldSchemaVersion: 2}" in message


def test_reserved_fields_stay_free_where_fields_are_validated() -> None:
    registry = Registry()
    reserved = Metadata(properties={"confluent:reserved": "old, older"})
    put(registry, "a", text("x"), metadata=reserved)
    assert put(registry, "a", text("x", "old"), metadata=reserved).version == 2
    registry.do(update_config, "a", ConfigUpdate({"validate_fields": True}))
    verdict = check_all(registry.view, "a", SchemaRequest(text("x", "older"), metadata=reserved))
    assert verdict.messages == (
        "field 'older' has a name that the metadata reserves",
        "{validateFields: 'true', compatibility: 'BACKWARD'}",
    )
    less = Metadata(properties={"confluent:reserved": "old"})
    verdict = check_all(registry.view, "a", SchemaRequest(text("x"), metadata=less))
    assert "field 'older' is reserved in the last version" in verdict.messages[0]
