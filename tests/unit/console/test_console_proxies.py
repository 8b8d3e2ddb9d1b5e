"""Proxies before the console: whose headers are believed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.requests import Request

from barnabas.base.errors import ConfigError
from barnabas.console.config import Proxies, proxies_of
from support.console_world import Console, console

TRUSTED = "10.0.0.0/8, 127.0.0.1, 2001:db8::/32"


def request(client: str | None, scheme: str = "http", **headers: str) -> Request:
    found = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    host = None if client is None else (client, 1)
    return Request(
        {
            "type": "http",
            "scheme": scheme,
            "client": host,
            "headers": found,
            "path": "/",
            "server": ("console", 80),
        }
    )


@pytest.fixture(scope="module")
def proxies() -> Proxies:
    return proxies_of(TRUSTED)


@pytest.mark.parametrize(
    ("client", "forwarded", "address"),
    [
        ("192.0.2.1", None, "192.0.2.1"),
        ("192.0.2.1", "198.51.100.9", "192.0.2.1"),
        ("10.1.2.3", "198.51.100.9", "198.51.100.9"),
        ("::ffff:10.1.2.3", "198.51.100.9", "198.51.100.9"),
        ("2001:db8::5", "198.51.100.9", "198.51.100.9"),
        # Addresses that a client sends itself come before those that the proxies add.
        ("10.1.2.3", "1.1.1.1, 198.51.100.9", "198.51.100.9"),
        ("10.1.2.3", "1.1.1.1, 198.51.100.9, 10.9.9.9", "198.51.100.9"),
        ("10.1.2.3", "10.9.9.9", "10.9.9.9"),
        ("10.1.2.3", "nonsense", "10.1.2.3"),
        ("10.1.2.3", "", "10.1.2.3"),
        (None, "198.51.100.9", ""),
    ],
)
def test_the_address_is_the_last_that_no_trusted_proxy_has(
    proxies: Proxies, client: str | None, forwarded: str | None, address: str
) -> None:
    headers = {} if forwarded is None else {"x_forwarded_for": forwarded}
    assert proxies.address(request(client, **headers)) == address
    assert Proxies().address(request(client, **headers)) == (client or "")


@pytest.mark.parametrize(
    ("client", "scheme", "forwarded", "is_secure"),
    [
        ("192.0.2.1", "https", None, True),
        ("192.0.2.1", "http", "https", False),
        ("10.1.2.3", "http", "https", True),
        ("10.1.2.3", "http", "HTTPS", True),
        ("10.1.2.3", "http", "https, http", False),
        ("10.1.2.3", "http", "http", False),
        ("10.1.2.3", "http", None, False),
    ],
)
def test_https_is_believed_of_trusted_proxies_alone(
    proxies: Proxies, client: str, scheme: str, forwarded: str | None, is_secure: bool
) -> None:
    headers = {} if forwarded is None else {"x_forwarded_proto": forwarded}
    assert proxies.is_secure(request(client, scheme, **headers)) is is_secure


@pytest.mark.parametrize("text", ["proxy.example", "10.0.0.1/8", "10.0.0.0/33"])
def test_what_is_no_network_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="is not an address or a network"):
        proxies_of(f"127.0.0.1, {text}")


@pytest.fixture(params=["127.0.0.1", "192.0.2.1"])
def page(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Console, bool]]:
    (tmp_path / "users").write_text("ann: pw,viewer\n")
    values = {
        "bootstrap.servers": "127.0.0.1:1",
        "console.users.file": str(tmp_path / "users"),
        "console.trusted.proxies": request.param,
    }
    with console(values) as found:
        yield found, request.param == "127.0.0.1"


def test_the_session_s_cookie_is_for_https_behind_a_proxy_that_ends_it(
    page: tuple[Console, bool],
) -> None:
    client, is_trusted = page
    body = {"name": "ann", "password": "pw"}
    plain = client.send("POST", "login", body)
    assert "secure" not in plain.headers["set-cookie"].lower()
    secure = client.send("POST", "login", body, **{"x-forwarded-proto": "https"})
    assert ("secure" in secure.headers["set-cookie"].lower()) == is_trusted
