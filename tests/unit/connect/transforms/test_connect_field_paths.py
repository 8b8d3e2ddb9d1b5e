"""Paths of fields."""

from __future__ import annotations

import pytest

from barnabas.connect.transforms.fields import FieldPath
from barnabas.schemas.data.errors import ConfigError


@pytest.mark.parametrize(
    ("path", "steps"),
    [
        ("a", ["a"]),
        ("a.b.c", ["a", "b", "c"]),
        ("`a.b`.c", ["a.b", "c"]),
        ("a.`b.c`", ["a", "b.c"]),
        ("`a`b`.c", ["a`b", "c"]),
        (r"`a\`.b`.c", ["a`.b", "c"]),
        ("a.", ["a", ""]),
    ],
)
def test_a_path_is_names_between_dots(path: str, steps: list[str]) -> None:
    assert FieldPath(path, "V2").steps == steps
    assert FieldPath(path, "V1").steps == [path]


@pytest.mark.parametrize("path", ["`a", r"`a\`", "`a`b", "x.`a.b"])
def test_a_name_in_backticks_has_an_end(path: str) -> None:
    with pytest.raises(ConfigError, match=r"^Incomplete backtick pair in path"):
        FieldPath(path, "V2")
