"""Configuration and modes: inheritance, changes, and what each mode forbids."""

from typing import Any

import pytest

from barnabas.registry.contracts import Metadata, Rule, RuleSet
from barnabas.registry.core.decision import Defaults
from barnabas.registry.core.deletion import delete_subject
from barnabas.registry.core.modes import delete_mode, get_mode, set_mode
from barnabas.registry.core.settings import (
    ConfigUpdate,
    config_in_scope,
    config_json,
    delete_config,
    get_config,
    resolve_alias,
    update_config,
)
from barnabas.registry.errors import RegistryError
from barnabas.registry.store.records import (
    ClearSubjectKey,
    ClearSubjectValue,
    ConfigValue,
    MarkValue,
    ModeKey,
    ModeValue,
    NoopKey,
    Record,
    SchemaKey,
)
from barnabas.schemas.schema import Reference
from support.registry_format import Registry, put, refused, refused_read, text


@pytest.fixture
def registry() -> Registry:
    return Registry()


def level(registry: Registry, subject: str | None, wanted: str) -> None:
    registry.do(update_config, subject, ConfigUpdate({"compatibility_level": wanted}))


def level_of(registry: Registry, subject: str | None) -> str | None:
    return get_config(registry.view, subject, default_to_global=True).compatibility_level


# Configuration


def test_the_default_is_that_of_the_server() -> None:
    registry = Registry(Defaults(compatibility_level="full"))
    assert get_config(registry.view) == ConfigValue(compatibility_level="FULL")
    assert level_of(registry, "a") == "FULL"
    assert config_json(get_config(registry.view)) == {"compatibilityLevel": "FULL"}
    assert get_config(registry.view, ":.__GLOBAL:").compatibility_level == "FULL"


INHERITANCE: list[tuple[list[str | None], str | None, str]] = [
    ([], "a", "BACKWARD"),
    ([], ":.c:a", "BACKWARD"),
    ([None], "a", "None"),
    ([None], ":.c:a", "BACKWARD"),
    ([":.__GLOBAL:"], "a", ":.__GLOBAL:"),
    ([":.__GLOBAL:"], ":.c:a", ":.__GLOBAL:"),
    ([":.__GLOBAL:"], None, ":.__GLOBAL:"),
    ([":.__GLOBAL:", None], "a", "None"),
    ([":.__GLOBAL:", ":.c:"], ":.c:a", ":.c:"),
    ([":.__GLOBAL:", ":.c:"], "a", ":.__GLOBAL:"),
    ([":.__GLOBAL:", ":.c:", ":.c:a"], ":.c:a", ":.c:a"),
    ([":.__GLOBAL:", None, "a"], "a", "a"),
    (["a"], ":.c:a", "BACKWARD"),
    (["a"], "b", "BACKWARD"),
]


@pytest.mark.parametrize(("places", "subject", "expected"), INHERITANCE)
def test_the_most_specific_configuration_wins(
    registry: Registry, places: list[str | None], subject: str | None, expected: str
) -> None:
    for place in places:
        registry.do(update_config, place, ConfigUpdate({"compatibility_group": str(place)}))
    found = config_in_scope(registry.view, subject).compatibility_group
    assert (found or "BACKWARD") == expected


def test_fields_that_a_subject_does_not_set_are_inherited(registry: Registry) -> None:
    rules, metadata = RuleSet(domain_rules=(Rule("r", type="T"),)), Metadata(properties={"k": "v"})
    wide = {
        "compatibility_level": "FULL",
        "normalize": True,
        "validate_fields": True,
        "compatibility_group": "g",
        "default_rule_set": rules,
    }
    registry.do(update_config, None, ConfigUpdate(wide))
    narrow = {"normalize": False, "default_metadata": metadata}
    registry.do(update_config, "a", ConfigUpdate(narrow))
    assert config_in_scope(registry.view, "a") == ConfigValue(
        "a",
        normalize=False,
        validate_fields=True,
        compatibility_level="FULL",
        compatibility_group="g",
        default_metadata=metadata,
    )
    own = get_config(registry.view, "a")
    assert own == ConfigValue(
        "a", normalize=False, compatibility_level="FULL", default_metadata=metadata
    )


def test_a_field_is_changed_alone_and_removed_by_null(registry: Registry) -> None:
    level(registry, "a", "FULL")
    registry.do(update_config, "a", ConfigUpdate({"alias": "b"}))
    assert get_config(registry.view, "a") == ConfigValue("a", alias="b", compatibility_level="FULL")
    answer = registry.do(update_config, "a", ConfigUpdate({"compatibility_level": None}))
    assert answer == ConfigValue("a", alias="b")
    assert level_of(registry, "a") == "BACKWARD"


def test_configuration_is_deleted(registry: Registry) -> None:
    refused(registry, 40401, delete_config, "a")
    level(registry, None, "NONE")
    level(registry, "a", "FULL")
    assert registry.do(delete_config, "a").compatibility_level == "FULL"
    assert level_of(registry, "a") == "NONE"
    refused_read(registry, 40408, get_config, "a")
    assert registry.do(delete_config, None).compatibility_level == "NONE"
    assert registry.do(delete_config, None).compatibility_level == "BACKWARD"
    assert level_of(registry, None) == "BACKWARD"


@pytest.mark.parametrize("name", ["", ":.:", ":."])
def test_the_default_context_has_several_names(registry: Registry, name: str) -> None:
    level(registry, name, "FULL")
    assert get_config(registry.view).compatibility_level == "FULL"
    registry.do(set_mode, name, "READONLY")
    assert get_mode(registry.view) == "READONLY"


@pytest.mark.parametrize("name", ["__GLOBAL", "a\nb", ":.c:__EMPTY"])
def test_bad_subjects_have_no_settings(registry: Registry, name: str) -> None:
    refused(registry, 42208, update_config, name, ConfigUpdate({}))
    refused(registry, 42208, set_mode, name, "READONLY")


def test_read_only_subjects_keep_their_configuration(registry: Registry) -> None:
    level(registry, "a", "FULL")
    registry.do(set_mode, "a", "READONLY")
    refused(registry, 42205, update_config, "a", ConfigUpdate({}))
    refused(registry, 42205, delete_config, "a")
    level(registry, "b", "FULL")


BODIES: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({}, {}),
    ({"compatibility": "full"}, {"compatibility_level": "FULL"}),
    ({"compatibilityLevel": "NONE"}, {"compatibility_level": "NONE"}),
    ({"compatibility": None, "more": 1}, {"compatibility_level": None}),
    ({"normalize": True, "alias": ""}, {"normalize": True, "alias": ""}),
    (
        {"defaultMetadata": {"properties": {"b": 1, "a": True}}, "overrideMetadata": None},
        {
            "default_metadata": Metadata(properties={"a": "true", "b": "1"}),
            "override_metadata": None,
        },
    ),
    (
        {"overrideRuleSet": {"domainRules": [{"name": "r", "type": "T"}]}},
        {"override_rule_set": RuleSet(domain_rules=(Rule("r", type="T"),))},
    ),
    ({"compatibilityPolicy": "lenient"}, {"compatibility_policy": "LENIENT"}),
]


@pytest.mark.parametrize(("body", "changes"), BODIES)
def test_requests_for_configuration_are_read(body: dict[str, Any], changes: dict[str, Any]) -> None:
    assert ConfigUpdate.from_json(body).changes == changes


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"compatibility": "SOME"}, 42203),
        ({"compatibility": 1}, 42203),
        ({"compatibility": ""}, 42203),
        ({"defaultRuleSet": {"domainRules": [{"name": "r"}]}}, 42210),
        ({"defaultRuleSet": {"domainRules": [{"name": "r", "mode": "X"}]}}, 422),
        ({"defaultRuleSet": []}, 422),
        ({"defaultRuleSet": {"domainRules": 1}}, 422),
        ({"defaultMetadata": {"tags": {"a": "b"}}}, 422),
        ({"defaultMetadata": {"properties": {"a": {}}}}, 422),
        ({"normalize": "yes"}, 422),
        ({"alias": 1}, 422),
        ({"compatibilityPolicy": "X"}, 422),
    ],
)
def test_bad_requests_for_configuration_are_refused(body: dict[str, Any], code: int) -> None:
    with pytest.raises(RegistryError) as caught:
        ConfigUpdate.from_json(body)
    assert caught.value.code == code


def test_the_answer_to_an_update_names_the_level_as_the_request_does() -> None:
    config = ConfigValue("a", "b", compatibility_level="FULL")
    assert config_json(config, as_update=True) == {"alias": "b", "compatibility": "FULL"}
    assert config_json(config) == {"alias": "b", "compatibilityLevel": "FULL"}


def test_an_alias_names_a_subject_of_its_context(registry: Registry) -> None:
    registry.do(update_config, "a", ConfigUpdate({"alias": "b"}))
    registry.do(update_config, ":.c:a", ConfigUpdate({"alias": "b"}))
    registry.do(update_config, "x", ConfigUpdate({"alias": ":.c:b"}))
    registry.do(update_config, "none", ConfigUpdate({"alias": ""}))
    names = ["a", ":.:a", ":.c:a", "x", "b", "none", ""]
    found = [resolve_alias(registry.view, name) for name in names]
    assert found == ["b", "b", ":.c:b", ":.c:b", "b", "none", ""]


# Modes


def test_modes_are_inherited_as_configuration_is() -> None:
    for places, subject, expected in INHERITANCE:
        registry = Registry(Defaults(mode="READONLY"))
        for place in places:
            wanted = "READWRITE" if str(place) == expected else "IMPORT"
            registry.do(set_mode, place, wanted, force=True)
        found = get_mode(registry.view, subject, default_to_global=True)
        assert found == ("READONLY" if expected == "BACKWARD" else "READWRITE"), (places, subject)


def test_a_subject_without_a_mode_of_its_own_has_none(registry: Registry) -> None:
    assert get_mode(registry.view) == "READWRITE"
    assert get_mode(registry.view, ":.__GLOBAL:") == "READWRITE"
    refused_read(registry, 40409, get_mode, "a")
    refused_read(registry, 40409, get_mode, ":.c:")
    refused(registry, 40401, delete_mode, "a")


def test_modes_are_set_and_deleted(registry: Registry) -> None:
    assert registry.do(set_mode, "a", "readonly") == "READONLY"
    assert get_mode(registry.view, "a") == "READONLY"
    assert registry.do(delete_mode, "a") == "READONLY"
    refused_read(registry, 40409, get_mode, "a")
    registry.do(set_mode, None, "READONLY")
    assert registry.do(delete_mode, None) == "READONLY"
    assert registry.do(delete_mode, None) == "READWRITE"
    registry.do(set_mode, "a", "READONLY")
    assert registry.do(set_mode, "a", None) is None
    refused_read(registry, 40409, get_mode, "a")


@pytest.mark.parametrize("place", [None, ":.__GLOBAL:"])
def test_read_only_can_override_all_modes(registry: Registry, place: str | None) -> None:
    registry.do(set_mode, "a", "READWRITE")
    registry.do(set_mode, ":.c:", "READWRITE")
    registry.do(set_mode, place, "READONLY_OVERRIDE")
    for subject in ("a", ":.c:a", None, "b"):
        assert get_mode(registry.view, subject, default_to_global=True) == "READONLY_OVERRIDE"
    assert get_mode(registry.view, "a") == "READWRITE"
    registry.do(set_mode, place, "READWRITE")
    assert get_mode(registry.view, "a", default_to_global=True) == "READWRITE"


@pytest.mark.parametrize(
    ("place", "mode", "code"),
    [("a", "SOME", 42204), (None, "", 42204), ("a", "FORWARD", 42204), (None, "FORWARD", 42204)],
)
def test_bad_modes_are_refused(registry: Registry, place: str | None, mode: str, code: int) -> None:
    refused(registry, code, set_mode, place, mode)


def test_forward_is_for_all_contexts(registry: Registry) -> None:
    registry.do(set_mode, ":.__GLOBAL:", "FORWARD")
    assert get_mode(registry.view, ":.c:a", default_to_global=True) == "FORWARD"


def test_modes_cannot_be_changed_if_mutability_is_off() -> None:
    registry = Registry(Defaults(mode_mutability=False))
    refused(registry, 42205, set_mode, "a", "READONLY")
    refused(registry, 42205, delete_mode, None)


@pytest.mark.parametrize(
    ("place", "is_free"),
    [
        (None, False),
        (":.__GLOBAL:", False),
        ("live", False),
        ("gone", True),
        ("new", True),
        (":.c:", False),
        (":.c:live", False),
        (":.d:", True),
    ],
)
def test_an_import_starts_without_schemas_or_by_force(
    registry: Registry, place: str | None, is_free: bool
) -> None:
    for subject in ("live", "gone", ":.c:live", ":.d:gone"):
        put(registry, subject, text("x"))
    registry.do(delete_subject, "gone")
    registry.do(delete_subject, ":.d:gone")
    if is_free:
        registry.do(set_mode, place, "IMPORT")
    else:
        refused(registry, 42205, set_mode, place, "IMPORT")
        registry.do(set_mode, place, "IMPORT", force=True)
        assert registry.do(set_mode, place, "IMPORT") == "IMPORT"
    assert get_mode(registry.view, place) == "IMPORT"


def test_an_import_clears_what_was_soft_deleted(registry: Registry) -> None:
    put(registry, "a", text("x"))
    put(registry, "a", text("x", uses=["A"]), references=(Reference("A", "a", 1),))
    registry.do(delete_subject, "a")
    registry.log.clear()
    registry.do(set_mode, "a", "IMPORT")
    assert registry.log == [
        Record(SchemaKey("a", 1), None),
        Record(SchemaKey("a", 2), None),
        Record(NoopKey("a"), MarkValue("a", 2, 2)),
        Record(ClearSubjectKey("a"), ClearSubjectValue("a")),
        Record(ModeKey("a"), ModeValue("a", "IMPORT")),
    ]


def test_an_import_does_not_clear_what_others_refer_to(registry: Registry) -> None:
    put(registry, "a", text("x"))
    put(registry, "b", text("y", uses=["A"]), references=(Reference("A", "a", 1),))
    registry.do(delete_subject, "b")
    registry.do(delete_subject, "a")
    refused(registry, 42206, set_mode, "a", "IMPORT")
    registry.do(set_mode, None, "IMPORT")
    assert not registry.state.has_subjects(None, "all")


def test_the_modes_of_a_whole_context_are_deleted(registry: Registry) -> None:
    for place in (None, "a", "b", ":.c:", ":.c:a"):
        registry.do(set_mode, place, "READONLY")
    assert registry.do(delete_mode, ":.c:", recursive=True) == "READONLY"
    assert list(registry.state.modes()) == [None, "a", "b"]
    assert registry.do(delete_mode, ":.d:", recursive=True) is None
    assert registry.do(delete_mode, None, recursive=True) == "READONLY"
    assert not registry.state.modes()
