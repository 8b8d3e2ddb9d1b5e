"""For whom a request over HTTP is, and who sends it."""

from __future__ import annotations

import base64

import pytest

from barnabas.web.guard import (
    basic_credentials,
    is_meant_for_loopback,
    is_of_own_page,
    may_ask,
    only_loopback,
)


@pytest.mark.parametrize(
    ("hosts", "so"),
    [
        (["127.0.0.1", "::1", "localhost"], True),
        (["[::1]", "127.9.9.9"], True),
        (["127.0.0.1", "0.0.0.0"], False),
        (["kafka.example"], False),
        ([""], False),
    ],
)
def test_listeners_on_loopback(hosts: list[str], so: bool) -> None:
    assert only_loopback(hosts) is so


@pytest.mark.parametrize(
    ("host", "so"),
    [
        (b"", True),
        (b"localhost", True),
        (b"LOCALHOST:8081", True),
        (b"app.localhost:1", True),
        (b"127.0.0.1:8081", True),
        (b"[::1]:8081", True),
        (b"own.name:8081", True),
        (b"evil.example", False),
        (b"localhost.evil.example:8081", False),
        (b"127.0.0.1.evil.example", False),
        (b"evil.example@localhost.evil", False),
        (b"\xff\xfe", False),
        (b"[::1", False),
    ],
)
def test_hosts_that_a_server_on_loopback_answers_to(host: bytes, so: bool) -> None:
    assert is_meant_for_loopback(host, {"own.name"}) is so


@pytest.mark.parametrize(
    ("origin", "so"),
    [
        (None, True),
        (b"http://registry:8081", True),
        (b"https://REGISTRY:8081", True),
        (b"http://registry", False),
        (b"http://evil:8081", False),
        (b"null", False),
        (b"", False),
        (b"http://[", False),
    ],
)
def test_pages_that_may_ask(origin: bytes | None, so: bool) -> None:
    assert is_of_own_page(origin, b"registry:8081") is so


def encoded(text: bytes) -> bytes:
    return b"Basic " + base64.b64encode(text)


@pytest.mark.parametrize(
    ("values", "user"),
    [
        ([encoded(b"alice:secret")], ("alice", "secret")),
        ([encoded(b"alice:a:b")], ("alice", "a:b")),
        ([encoded(b"alice:")], ("alice", "")),
        ([encoded(b"alice")], None),
        ([encoded(b"\xff:x")], None),
        ([b"Basic #"], None),
        ([b"Bearer YTpi"], None),
        ([], None),
        ([encoded(b"a:b"), encoded(b"a:b")], None),
    ],
)
def test_names_and_passwords(values: list[bytes], user: tuple[str, str] | None) -> None:
    assert basic_credentials(values) == user


@pytest.mark.parametrize(
    ("origin", "site", "origins", "so"),
    [
        (None, None, (), True),  # no browser
        (None, b"none", (), True),  # typed by somebody
        (None, b"same-origin", (), True),
        (None, b"cross-site", (), False),  # an image, a link or a form of another page
        (None, b"same-site", (), False),  # another port of this machine
        (b"http://registry:8081", b"same-origin", (), True),
        (b"http://evil", b"cross-site", (), False),
        (b"http://good", b"cross-site", ("http://good",), True),
        (None, b"cross-site", ("http://good",), False),
        (None, b"cross-site", ("*",), True),
        (b"null", b"cross-site", ("http://good",), False),
    ],
)
def test_pages_whose_browser_says_where_they_are(
    origin: bytes | None, site: bytes | None, origins: tuple[str, ...], so: bool
) -> None:
    assert may_ask(origin, site, b"registry:8081", origins) is so
