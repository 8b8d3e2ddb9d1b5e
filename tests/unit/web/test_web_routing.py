"""Paths to handlers."""

from __future__ import annotations

import pytest

from barnabas.web.routing import Routes, segments

ROUTES = Routes(
    [
        ("GET", "/", "root"),
        ("GET", "/things", "list"),
        ("GET", "/things/{}", "thing"),
        ("DELETE", "/things/{}", "remove"),
        ("GET", "/things/{}/parts/{#}", "part"),
        ("GET", "/things/all/parts", "parts of all"),
    ]
)


@pytest.mark.parametrize(
    ("path", "found", "parameters"),
    [
        (b"/", "root", []),
        (b"//", "root", []),
        (b"/things", "list", []),
        (b"/things//a%2Fb/", "thing", [b"a%2Fb"]),
        (b"/things/a/parts/-12", "part", [b"a", b"-12"]),
        (b"/things/all/parts", "parts of all", []),
    ],
)
def test_paths_that_lead_somewhere(path: bytes, found: str, parameters: list[bytes]) -> None:
    node, names = ROUTES.find(segments(path))
    assert node is not None
    assert (node.handler("GET"), node.handler("HEAD"), names) == (found, found, parameters)


@pytest.mark.parametrize(
    "path", [b"/thing", b"/things/a/parts", b"/things/a/parts/b", b"/things/a/parts/1/2", b"/\xff"]
)
def test_paths_that_lead_nowhere(path: bytes) -> None:
    assert ROUTES.find(segments(path))[0] is None


def test_methods_of_a_path() -> None:
    node, _ = ROUTES.find(segments(b"/things/a"))
    assert node is not None
    assert node.methods == ["DELETE", "GET", "HEAD", "OPTIONS"]
    assert node.handler("POST") is None
