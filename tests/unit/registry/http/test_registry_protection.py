"""Who may use the registry's interface: logins, pages of other origins, other hosts."""

from __future__ import annotations

import base64
import logging
from pathlib import Path

import pytest
from starlette.types import Receive, Scope, Send

from barnabas.base.errors import ConfigError
from barnabas.registry.config import RegistryConfig
from barnabas.registry.http.app import RegistryApp
from barnabas.registry.http.protection import protected
from support.registry_http import ask
from support.registry_service import MemoryService

BROKERS = {"kafkastore.bootstrap.servers": "localhost:9092"}
LOOPBACK = {"listeners": "http://127.0.0.1:8081"}
ANYWHERE = {"listeners": "http://0.0.0.0:8081"}


async def answered(scope: Scope, receive: Receive, send: Send) -> None:
    """An application that answers everything."""
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"{}"})


async def status(
    values: dict[str, str], headers: dict[str, str], method: str = "GET", path: str = "/subjects"
) -> int:
    config = RegistryConfig({**BROKERS, **LOOPBACK, **values})
    app = protected(answered, config)
    sent = {name.lower().encode(): value.encode() for name, value in headers.items()}
    reply = await ask(app, method, path, headers=sent)
    assert reply.headers[b"x-content-type-options"] == b"nosniff"
    if reply.status != 200:
        assert reply.code == reply.status
    assert (b"www-authenticate" in reply.headers) == (reply.status == 401)
    return reply.status


@pytest.mark.parametrize(
    ("values", "headers", "code"),
    [
        (LOOPBACK, {}, 200),
        (LOOPBACK, {"host": "localhost:8081"}, 200),
        (LOOPBACK, {"host": "127.0.0.1:8081"}, 200),
        (LOOPBACK, {"host": "[::1]:8081"}, 200),
        (LOOPBACK, {"host": "evil.example:8081"}, 421),
        (LOOPBACK, {"host": "localhost.evil.example"}, 421),
        (LOOPBACK | {"host.name": "registry.lab"}, {"host": "registry.lab:8081"}, 200),
        (ANYWHERE, {"host": "registry.example:8081"}, 200),
        (LOOPBACK, {"host": "localhost:8081", "origin": "http://localhost:8081"}, 200),
        (LOOPBACK, {"host": "localhost:8081", "origin": "https://evil.example"}, 403),
        (LOOPBACK, {"host": "localhost:8081", "origin": "null"}, 403),
        (LOOPBACK, {"host": "localhost:8081", "sec-fetch-site": "cross-site"}, 403),
        (LOOPBACK, {"host": "localhost:8081", "sec-fetch-site": "none"}, 200),
        (
            {"access.control.allow.origin": "https://good.example"},
            {"host": "localhost:8081", "origin": "https://good.example"},
            200,
        ),
        (
            {"access.control.allow.origin": "*"},
            {"host": "localhost", "origin": "https://a.example"},
            200,
        ),
    ],
)
async def test_pages_of_others(values: dict[str, str], headers: dict[str, str], code: int) -> None:
    assert await status(values, headers) == code


async def test_web_pages_of_allowed_origins_may_use_it() -> None:
    values = {"access.control.allow.origin": "http://page", "access.control.allow.headers": "X-Own"}
    config = RegistryConfig({**BROKERS, **ANYWHERE, **values})
    opened = protected(RegistryApp(MemoryService()), config)
    asked = {b"origin": b"http://page", b"access-control-request-method": b"DELETE"}
    reply = await ask(opened, "OPTIONS", "/subjects/s", headers=asked)
    assert reply.status == 200
    assert reply.headers[b"access-control-allow-origin"] == b"http://page"
    reply = await ask(opened, "GET", "/subjects", headers={b"origin": b"http://page"})
    assert reply.headers[b"access-control-allow-origin"] == b"http://page"
    reply = await ask(opened, "GET", "/subjects", headers={b"origin": b"http://other"})
    assert reply.status == 403
    assert b"access-control-allow-origin" not in reply.headers


def basic(text: str) -> dict[str, str]:
    return {"authorization": "Basic " + base64.b64encode(text.encode()).decode()}


@pytest.fixture
def accounts(tmp_path: Path) -> dict[str, str]:
    path = tmp_path / "passwords"
    path.write_text("alice: secret,writer\nbob: other\n")
    return {"authentication.method": "BASIC", "barnabas.registry.password.file": str(path)}


async def test_logins(accounts: dict[str, str], caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    assert await status(accounts, {}) == 401
    assert await status(accounts, basic("alice:secret")) == 200
    assert await status(accounts, basic("alice:Secret")) == 401
    assert await status(accounts, basic("nobody:secret")) == 401
    assert await status(accounts, {"authorization": "Basic #"}) == 401
    assert await status(accounts, {"authorization": "Bearer secret"}) == 401
    roles = accounts | {"authentication.roles": "writer"}
    assert await status(roles, basic("alice:secret")) == 200
    assert await status(roles, basic("bob:other")) == 403
    skipped = accounts | {"authentication.skip.paths": "/v1/metadata/version"}
    assert await status(skipped, {}, path="/v1/metadata/version") == 200
    assert await status(skipped, {}) == 401
    asking = {"host": "localhost", "origin": "http://localhost"}
    assert await status(accounts, asking, method="OPTIONS") == 200
    assert "secret" not in caplog.text


@pytest.mark.parametrize(
    ("values", "key"),
    [
        ({"authentication.method": "BEARER"}, "authentication.method"),
        ({"authentication.method": "BASIC"}, "java.security.auth.login.config"),
        (
            {"authentication.method": "BASIC", "barnabas.registry.password.file": "/nothing"},
            "barnabas.registry.password.file",
        ),
    ],
)
def test_what_cannot_be_served_is_refused_at_the_start(values: dict[str, str], key: str) -> None:
    with pytest.raises(ConfigError) as caught:
        protected(answered, RegistryConfig({**BROKERS, **values}))
    assert caught.value.key == key
