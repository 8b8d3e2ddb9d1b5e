"""The state: replay of records, tombstones, marks, and copies."""

import pytest

from barnabas.registry.store.records import (
    ClearSubjectKey,
    ClearSubjectValue,
    ConfigKey,
    ConfigValue,
    ContextKey,
    ContextValue,
    DeleteSubjectKey,
    DeleteSubjectValue,
    Key,
    MarkValue,
    ModeKey,
    ModeValue,
    NoopKey,
    SchemaKey,
    SchemaValue,
    Value,
)
from barnabas.registry.store.state import RegistryState
from barnabas.schemas.schema import Reference


def schema(subject: str, version: int, schema_id: int, *references: Reference) -> SchemaValue:
    return SchemaValue(subject, version, schema_id, f"text {schema_id}", references=references)


def put(state: RegistryState, *values: SchemaValue) -> None:
    for value in values:
        key = SchemaKey(value.subject, value.version)
        assert state.replay(key, value, state.offset + 1) is None


def apply(state: RegistryState, key: Key, value: Value | None) -> None:
    assert state.replay(key, value, state.offset + 1) is None


def test_a_new_state_is_empty() -> None:
    state = RegistryState()
    assert state.offset == -1
    assert state.contexts() == ["."]
    assert state.subjects(":*:", "all") == []
    assert state.next_id(".") == 1
    assert state.next_version("a") == 1
    assert state.latest("a") is None
    assert state.any_by_id(".", 1) is None


def test_schemas_are_found_from_all_sides() -> None:
    state = RegistryState()
    one, two = schema("a", 1, 1), schema("a", 2, 2, Reference("N", "b", 1))
    other = schema("b", 1, 1)
    put(state, one, two, other)
    assert state.offset == 2
    assert state.version("a", 2) == two
    assert state.versions("a") == [one, two]
    assert state.latest("a") == two
    assert state.by_id(".", 1) == [one, other]
    assert state.ids_of(".", one.content_hash()) == (1,)
    assert state.referrers("b", 1) == [two]
    assert (state.next_id("."), state.next_version("a"), state.max_id(".")) == (3, 3, 2)


def test_versions_that_come_in_any_order_are_listed_ascending() -> None:
    state = RegistryState()
    put(state, schema("a", 5, 3), schema("a", 2, 9), schema("a", 4, 1))
    assert [value.version for value in state.versions("a")] == [2, 4, 5]
    assert state.latest("a") == schema("a", 5, 3)
    assert (state.next_id("."), state.next_version("a")) == (10, 6)


def test_a_tombstone_takes_all_traces() -> None:
    state = RegistryState()
    put(state, schema("a", 1, 1, Reference("N", "b", 1)))
    apply(state, SchemaKey("a", 1), None)
    assert state.subjects(":*:", "all") == []
    assert state.by_id(".", 1) == []
    assert state.ids_of(".", schema("a", 1, 1).content_hash()) == ()
    assert state.referrers("b", 1) == []
    assert state.next_id(".") == 2
    apply(state, SchemaKey("never", 1), None)


def test_an_id_stays_while_another_version_has_it() -> None:
    state = RegistryState()
    put(state, schema("a", 1, 1), schema("b", 1, 1))
    apply(state, SchemaKey("a", 1), None)
    assert state.by_id(".", 1) == [schema("b", 1, 1)]
    assert state.ids_of(".", schema("b", 1, 1).content_hash()) == (1,)


def test_a_subject_is_deleted_up_to_a_version() -> None:
    state = RegistryState()
    put(state, *(schema("a", number, number) for number in (1, 2, 3)))
    apply(state, DeleteSubjectKey("a"), DeleteSubjectValue("a", 2))
    assert [value.version for value in state.versions("a")] == [3]
    assert [value.version for value in state.versions("a", "deleted")] == [1, 2]
    apply(state, DeleteSubjectKey("a"), None)
    assert [value.version for value in state.versions("a", "deleted")] == [1, 2]
    assert state.by_id(".", 1)[0].deleted


@pytest.mark.parametrize(
    ("scope", "left"),
    [
        ("a", [":.c:a", "b"]),
        (":.c:", ["a", "b"]),
        (":.c:a", ["a", "b"]),
        (":.d:", [":.c:a", "a", "b"]),
        (None, ["b"]),
        (":.__GLOBAL:", ["b"]),
    ],
)
def test_what_is_soft_deleted_can_be_cleared(scope: str | None, left: list[str]) -> None:
    state = RegistryState()
    for subject in ("a", "b", ":.c:a"):
        put(state, schema(subject, 1, 1), schema(subject, 2, 2))
        apply(state, DeleteSubjectKey(subject), DeleteSubjectValue(subject, 2))
    put(state, schema("b", 3, 3))
    apply(state, ClearSubjectKey(scope), ClearSubjectValue(scope))
    assert state.subjects(":*:", "all") == left
    assert state.version("b", 3) is not None


def test_a_second_text_under_an_id_is_passed_over() -> None:
    state = RegistryState()
    put(state, schema("a", 1, 1))
    message = state.replay(SchemaKey("b", 1), SchemaValue("b", 1, 1, "other"), 5)
    assert message
    assert "id 1" in message
    assert "'b'" in message
    assert state.subjects() == ["a"]
    assert state.offset == 5
    put(state, SchemaValue(":.c:b", 1, 1, "other"))


def test_a_version_that_is_written_again_is_the_new_one() -> None:
    state = RegistryState()
    put(state, schema("a", 1, 1, Reference("N", "b", 1)), schema("a", 1, 2))
    assert state.by_id(".", 1) == []
    assert state.by_id(".", 2) == [schema("a", 1, 2)]
    assert state.referrers("b", 1) == []


def test_one_content_may_have_two_ids() -> None:
    state = RegistryState()
    one, two = SchemaValue("a", 1, 1, "x"), SchemaValue("a", 2, 2, "x")
    put(state, one, two)
    assert state.ids_of(".", one.content_hash()) == (1, 2)
    apply(state, SchemaKey("a", 2), None)
    assert state.ids_of(".", one.content_hash()) == (1,)


def test_settings_come_and_go() -> None:
    state = RegistryState()
    for name in (None, "a", ":.c:"):
        apply(state, ConfigKey(name), ConfigValue(name, normalize=True))
        apply(state, ModeKey(name), ModeValue(name, "READONLY"))
    assert state.config(None) == ConfigValue(normalize=True)
    assert list(state.modes()) == [None, "a", ":.c:"]
    for name in (None, "a", ":.c:", "never"):
        apply(state, ConfigKey(name), None)
        apply(state, ModeKey(name), None)
    assert not state.configs()
    assert state == RegistryState()


def test_contexts_are_those_named_and_those_with_schemas() -> None:
    state = RegistryState()
    apply(state, ContextKey(".named"), ContextValue(".named"))
    put(state, schema(":.used:a", 1, 1))
    assert state.contexts() == [".", ".named", ".used"]
    assert state.is_named(".named")
    assert not state.is_named(".used")
    apply(state, ContextKey(".named"), None)
    apply(state, SchemaKey(":.used:a", 1), None)
    assert state.contexts() == ["."]


def test_marks_hold_ids_and_versions_up() -> None:
    state = RegistryState()
    apply(state, NoopKey("a"), MarkValue("a", 4, 7))
    apply(state, NoopKey("a"), MarkValue("a", 2, 3))
    assert (state.next_version("a"), state.next_id(".")) == (5, 8)
    assert (state.next_version("b"), state.next_id(".c")) == (1, 1)
    assert state.contexts() == ["."]
    apply(state, NoopKey(), None)


def test_a_copy_goes_its_own_way() -> None:
    state = RegistryState()
    put(state, schema("a", 1, 1), schema("b", 1, 1), schema(":.c:a", 1, 1))
    before = state.copy()
    assert before == state
    assert before.offset == state.offset
    copy = state.copy()
    put(copy, schema("a", 2, 2))
    apply(copy, DeleteSubjectKey("b"), DeleteSubjectValue("b", 1))
    apply(copy, SchemaKey(":.c:a", 1), None)
    apply(copy, ConfigKey("a"), ConfigValue("a"))
    apply(copy, ModeKey("a"), ModeValue("a", "READONLY"))
    apply(copy, NoopKey("a"), MarkValue("a", 9, 9))
    assert state == before
    assert copy != state
    put(state, schema("a", 2, 5))
    assert copy.version("a", 2) == schema("a", 2, 2)
    assert before.version("a", 2) is None
