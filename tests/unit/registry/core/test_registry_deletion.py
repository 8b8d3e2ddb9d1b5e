"""Deletion: what may go, in which order, and what stays behind."""

import pytest

from barnabas.registry.core.deletion import delete_context, delete_subject, delete_version
from barnabas.registry.core.listing import list_subjects, list_versions
from barnabas.registry.core.lookup import get_by_id, get_version, look_up
from barnabas.registry.core.modes import set_mode
from barnabas.registry.core.registration import register
from barnabas.registry.core.requests import SchemaRequest
from barnabas.registry.core.settings import ConfigUpdate, update_config
from barnabas.registry.store.records import (
    ConfigKey,
    DeleteSubjectKey,
    DeleteSubjectValue,
    MarkValue,
    ModeKey,
    NoopKey,
    Record,
    SchemaKey,
)
from barnabas.schemas.schema import Reference
from support.registry_format import Registry, put, refused, refused_read, text


@pytest.fixture
def registry() -> Registry:
    """Subject a with versions 1, 2 (deleted) and 3; b deleted; c refers to version 1 of a."""
    registry = Registry()
    for fields in ("x", "xy", "xyz"):
        put(registry, "a", text(*fields))
    put(registry, "b", text("b"))
    put(registry, "c", text("c", uses=["A"]), references=(Reference("A", "a", 1),))
    registry.do(delete_version, "a", 2)
    registry.do(delete_subject, "b")
    registry.log.clear()
    return registry


@pytest.mark.parametrize(
    ("subject", "version", "permanent", "code"),
    [
        ("none", 1, False, 40401),
        ("none", "latest", True, 40401),
        ("a", 9, False, 40402),
        ("a", 9, True, 40402),
        ("b", 2, False, 40402),
        ("b", "latest", False, 40402),
        ("a", 2, False, 40406),
        ("b", 1, False, 40406),
        ("a", 3, True, 40407),
        ("a", "latest", True, 40407),
        ("a", 1, False, 42206),
        ("a", 1, True, 42206),
        ("a", 0, False, 42202),
        ("a", -2, False, 42202),
        ("a", "x", False, 42202),
        ("a", str(1 << 31), False, 42202),
    ],
)
def test_versions_that_cannot_be_deleted(
    registry: Registry, subject: str, version: str | int, permanent: bool, code: int
) -> None:
    refused(registry, code, delete_version, subject, version, permanent=permanent)


@pytest.mark.parametrize(
    ("subject", "permanent", "code"),
    [
        ("none", False, 40401),
        ("none", True, 40401),
        ("b", False, 40404),
        ("c", True, 40405),
        ("a", False, 42206),
        ("a", True, 42206),
    ],
)
def test_subjects_that_cannot_be_deleted(
    registry: Registry, subject: str, permanent: bool, code: int
) -> None:
    refused(registry, code, delete_subject, subject, permanent=permanent)


@pytest.mark.parametrize("version", [3, "3", "latest", "Latest", " -1 ", -1])
def test_a_version_is_deleted_by_its_number_or_as_the_latest(
    registry: Registry, version: str | int
) -> None:
    assert registry.do(delete_version, "a", version) == 3
    assert list_versions(registry.view, "a") == [1]
    assert list_versions(registry.view, "a", which="all") == [1, 2, 3]


def test_latest_after_a_soft_deletion_is_the_one_before(registry: Registry) -> None:
    registry.do(delete_version, "a", 3)
    assert get_version(registry.view, "a", "latest").version == 1
    assert get_version(registry.view, "a", "latest", deleted=True).version == 1


def test_a_soft_deleted_schema_can_be_read_by_its_id(registry: Registry) -> None:
    assert get_by_id(registry.view, 4).text == text("b")
    registry.do(delete_subject, "b", permanent=True)
    assert "Schema 4 not found" in refused_read(registry, 40403, get_by_id, 4)


def test_the_records_of_a_soft_deletion(registry: Registry) -> None:
    registry.do(delete_version, "a", 3)
    registry.do(delete_subject, "c")
    (first, second) = registry.log
    assert first.key == SchemaKey("a", 3)
    assert first.value.deleted
    assert second == Record(DeleteSubjectKey("c"), DeleteSubjectValue("c", 1))


def test_a_later_deletion_of_lower_versions_covers_the_higher_ones(registry: Registry) -> None:
    """Compaction keeps the last record of a subject's deletion alone."""
    registry.do(set_mode, None, "IMPORT", force=True)
    for version in (2, 1):  # each is deleted before the next comes
        registry.do(register, "d", SchemaRequest(text("d"), id=40, version=version))
        assert registry.do(delete_subject, "d") == [version]
    assert registry.log[-1] == Record(DeleteSubjectKey("d"), DeleteSubjectValue("d", 2))


def test_the_records_of_a_deletion_for_good(registry: Registry) -> None:
    registry.do(delete_version, "a", 2, permanent=True)
    assert registry.log == [Record(SchemaKey("a", 2), None)]
    registry.log.clear()
    registry.do(set_mode, "b", "IMPORT", force=True)
    registry.do(update_config, "b", ConfigUpdate({"normalize": True}))
    registry.log.clear()
    registry.do(delete_subject, "b", permanent=True)
    assert registry.log == [
        Record(NoopKey("b"), MarkValue("b", 1, 5)),
        Record(SchemaKey("b", 1), None),
        Record(ModeKey("b"), None),
        Record(ConfigKey("b"), None),
    ]


def test_the_last_version_takes_the_settings_of_its_subject_with_it(registry: Registry) -> None:
    registry.do(update_config, "b", ConfigUpdate({"normalize": True}))
    registry.do(delete_version, "b", 1, permanent=True)
    assert registry.state.config("b") is None
    assert list_subjects(registry.view, which="all") == ["a", "c"]


def test_references_hold_what_they_refer_to(registry: Registry) -> None:
    registry.do(delete_subject, "c")
    registry.do(delete_version, "a", 1)
    assert "'c'" in refused(registry, 42206, delete_version, "a", 1, permanent=True)
    registry.do(delete_subject, "c", permanent=True)
    assert registry.do(delete_version, "a", 1, permanent=True) == 1


def test_a_subject_may_refer_to_itself_and_go(registry: Registry) -> None:
    put(registry, "d", text("x"))
    put(registry, "d", text("x", uses=["D"]), references=(Reference("D", "d", 1),))
    refused(registry, 42206, delete_version, "d", 1)
    assert registry.do(delete_subject, "d") == [1, 2]
    assert registry.do(delete_subject, "d", permanent=True) == [1, 2]


@pytest.mark.parametrize("mode", ["READONLY", "READONLY_OVERRIDE"])
def test_nothing_goes_from_a_read_only_subject(registry: Registry, mode: str) -> None:
    registry.do(set_mode, None, mode)
    refused(registry, 42205, delete_version, "a", 3)
    refused(registry, 42205, delete_version, "a", 2, permanent=True)
    refused(registry, 42205, delete_subject, "c")
    refused(registry, 42205, delete_subject, "b", permanent=True)


def test_a_subject_of_another_context_is_another(registry: Registry) -> None:
    put(registry, ":.ctx:a", text("x"))
    assert registry.do(delete_subject, ":.ctx:a") == [1]
    assert list_versions(registry.view, "a") == [1, 3]
    refused(registry, 40401, delete_version, "ctx:a", 1)


def test_a_context_goes_when_it_is_empty(registry: Registry) -> None:
    put(registry, ":.ctx:a", text("x"))
    put(registry, ":.ctx:a", text("x", "y"))
    for name in ("ctx", ".ctx", ":.ctx:"):
        refused(registry, 42211, delete_context, name)
    registry.do(delete_subject, ":.ctx:a")
    refused(registry, 42211, delete_context, ".ctx")
    registry.do(delete_subject, ":.ctx:a", permanent=True)
    assert registry.state.contexts() == [".", ".ctx"]
    registry.do(delete_context, ".ctx")
    assert registry.state.contexts() == ["."]
    registry.do(delete_context, ".ctx")
    refused(registry, 42208, delete_context, "a:b")
    refused(registry, 42211, delete_context, ".")
    assert put(registry, ":.ctx:b", text("x")).id == 3


def test_a_deleted_schema_is_looked_up_on_request(registry: Registry) -> None:
    request = SchemaRequest(text("b"))
    assert look_up(registry.view, "b", request, deleted=True).version == 1
    refused_read(registry, 40401, look_up, "b", request)
    refused_read(registry, 40403, look_up, "a", SchemaRequest(text(*"xy")))
