"""Subjects, contexts and how they are spelled."""

import pytest

from barnabas.registry import subjects
from barnabas.registry.subjects import QualifiedSubject


@pytest.mark.parametrize(
    ("name", "context", "subject", "normal"),
    [
        ("orders", ".", "orders", "orders"),
        ("", ".", "", ""),
        (":.:orders", ".", "orders", "orders"),
        (":.:", ".", "", ""),
        (":.", ".", "", ""),
        (":.ctx:orders", ".ctx", "orders", ":.ctx:orders"),
        (":.ctx:", ".ctx", "", ":.ctx:"),
        (":.ctx", ".ctx", "", ":.ctx:"),
        (":.a:b:c", ".a", "b:c", ":.a:b:c"),
        (":ctx:orders", ".", ":ctx:orders", ":ctx:orders"),
        ("a/b ü:c", ".", "a/b ü:c", "a/b ü:c"),
        (":*:", "*", "", ":*:"),
        (":*:ord", "*", "ord", ":*:ord"),
        (":.__GLOBAL:", ".__GLOBAL", "", ":.__GLOBAL:"),
    ],
)
def test_a_name_has_a_context_and_a_subject(
    name: str, context: str, subject: str, normal: str
) -> None:
    assert subjects.parse(name) == QualifiedSubject(context, subject)
    assert subjects.normal(name) == normal
    assert subjects.normal(normal) == normal
    assert subjects.context_of(name) == context


@pytest.mark.parametrize(
    ("name", "context"),
    [
        ("ctx", ".ctx"),
        (".ctx", ".ctx"),
        (":.ctx:", ".ctx"),
        (":.ctx", ".ctx"),
        (".", "."),
        ("", "."),
    ],
)
def test_a_context_may_be_named_in_short(name: str, context: str) -> None:
    assert subjects.context_named(name) == context


def test_the_name_of_a_context_has_no_colon() -> None:
    with pytest.raises(ValueError, match="colon"):
        subjects.context_named("a:b")


@pytest.mark.parametrize(
    ("context", "subject", "expected"),
    [
        (".ctx", "orders", ":.ctx:orders"),
        (".", "orders", "orders"),
        (".ctx", ":.other:orders", ":.other:orders"),
        (".ctx", ":*:orders", ":*:orders"),
    ],
)
def test_a_subject_inside_a_context_is_qualified(context: str, subject: str, expected: str) -> None:
    assert subjects.in_context(context, subject) == expected


@pytest.mark.parametrize(
    ("parent", "subject", "expected"),
    [
        ("a", "b", "b"),
        (":.ctx:a", "b", ":.ctx:b"),
        (":.ctx:a", ":.other:b", ":.other:b"),
        ("a", ":.other:b", ":.other:b"),
        (":.ctx:a", ":.:b", ":.ctx:b"),
    ],
)
def test_a_reference_without_a_context_is_to_the_parents(
    parent: str, subject: str, expected: str
) -> None:
    assert subjects.qualified_from(parent, subject) == expected


@pytest.mark.parametrize(
    ("name", "is_subject", "is_setting"),
    [
        ("orders", True, True),
        ("", True, True),
        (":.ctx:", True, True),
        ("ünï/code:..%2f", True, True),
        ("a\nb", False, False),
        ("a\x00", False, False),
        ("a\x9f", False, False),
        ("__GLOBAL", False, False),
        ("__EMPTY", False, False),
        (":.ctx:__GLOBAL", False, False),
        (":.__GLOBAL:", False, True),
        (":.__GLOBAL:a", False, True),
    ],
)
def test_some_names_are_refused(name: str, is_subject: bool, is_setting: bool) -> None:
    assert subjects.is_valid(name) == is_subject
    assert subjects.is_valid(name, settings=True) == is_setting


@pytest.mark.parametrize("name", ["", "*", ":.ctx:", ":.ctx:*"])
def test_an_empty_subject_can_be_refused(name: str) -> None:
    assert subjects.is_valid(name)
    assert not subjects.is_valid(name, may_be_context=False)


@pytest.mark.parametrize(
    ("name", "prefix", "expected"),
    [
        ("orders", "", True),
        ("orders", "ord", True),
        (":.ctx:orders", "", False),
        (":.ctx:orders", ":*:", True),
        (":.ctx:orders", ":*:ord", True),
        ("orders", ":*:ord", True),
        ("orders", ":*:x", False),
        (":.ctx:orders", ":.ctx:", True),
        (":.ctx:orders", ":.ctx:x", False),
        (":.ctx:orders", ":.ct", True),
        (":.ctx:orders", ":.d", False),
    ],
)
def test_prefixes_are_of_a_context(name: str, prefix: str, expected: bool) -> None:
    assert subjects.has_prefix(name, prefix) == expected
