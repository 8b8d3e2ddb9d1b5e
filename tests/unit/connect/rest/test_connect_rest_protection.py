"""Protection of a worker's REST interface, forwarding to other workers, and listener settings."""

from __future__ import annotations

import asyncio
from pathlib import Path

import httpx
import pytest

from barnabas.connect.errors.requests import ElsewhereError
from barnabas.connect.rest import settings
from barnabas.connect.rest.app import RestApp
from barnabas.connect.rest.bodies import Answer, Request, Route
from barnabas.schemas.data.errors import ConfigError
from barnabas.web.listening import ListenAddress
from barnabas.web.passwords import Passwords
from support.connect.rest_world import RestWorld


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"origin": "http://localhost:8083"}, 200),
        ({"origin": "http://elsewhere"}, 403),
        ({"host": "rebound.example"}, 403),
        ({"sec-fetch-site": "cross-site"}, 403),
        ({"sec-fetch-site": "none"}, 200),
        ({"host": "127.0.0.1:8083"}, 200),
    ],
)
async def test_pages_of_others_are_refused(
    tmp_path: Path, headers: dict[str, str], status: int
) -> None:
    world = RestWorld(tmp_path, is_on_loopback=True)
    assert (await world.send("GET", "/", headers=headers)).status_code == status
    world.close()


async def test_origins_may_be_allowed(tmp_path: Path) -> None:
    world = RestWorld(tmp_path, {"access.control.allow.origin": "http://elsewhere"})
    answer = await world.send("GET", "/", headers={"origin": "http://elsewhere"})
    assert answer.headers["access-control-allow-origin"] == "http://elsewhere"
    world.close()


async def test_basic_authentication(tmp_path: Path) -> None:
    file = tmp_path / "passwords"
    file.write_text("connect: secret\n")
    jaas = tmp_path / "jaas.conf"
    module = "org.apache.kafka.connect.rest.basic.auth.extension.PropertyFileLoginModule"
    jaas.write_text(f'KafkaConnect {{\n  {module} required file="{file}";\n}};\n')
    values = {
        "rest.extension.classes": settings.BASIC_AUTH,
        "java.security.auth.login.config": str(jaas),
    }
    passwords = settings.passwords(values)
    assert isinstance(passwords, Passwords)
    world = RestWorld(tmp_path, passwords=passwords)
    refused = await world.send("GET", "/connectors")
    assert (refused.status_code, refused.text) == (401, "User cannot access the resource.")
    for user, status in ((("connect", "secret"), 200), (("connect", "no"), 401)):
        assert (await world.send("GET", "/connectors", auth=user)).status_code == status
    # Between workers: signed, not logged in.
    assert (await world.send("POST", "/connectors/c/tasks", [])).status_code == 500
    world.close()


async def test_headers_are_added(tmp_path: Path) -> None:
    rule = 'set X-Frame-Options:DENY,"add Cache-Control: no-cache, no-store"'
    headers = settings.response_headers({"response.http.headers.config": rule})
    world = RestWorld(tmp_path, headers=headers)
    answer = await world.send("GET", "/")
    assert answer.headers["x-frame-options"] == "DENY"
    assert answer.headers["cache-control"] == "no-cache, no-store"
    assert answer.headers["x-content-type-options"] == "nosniff"
    world.close()


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ("X:1", "Invalid format of header config 'X:1'"),
        ("put X:1", "Invalid header config action: 'put'"),
        ("set X", "Invalid format of header name and header value pair 'X'"),
        ("set a b:1", "Invalid header name 'a b'"),
    ],
)
def test_wrong_rules_of_headers(rule: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        settings.response_headers({"response.http.headers.config": rule})


def test_listeners() -> None:
    assert settings.listeners({}) == [ListenAddress("127.0.0.1", 8083)]
    assert settings.listeners({"listeners": "http://:1, HTTPS://[::1]:2"}) == [
        ListenAddress("0.0.0.0", 1),
        ListenAddress("::1", 2, True),
    ]
    assert settings.admin_listeners({}) is None
    assert settings.admin_listeners({"admin.listeners": ""}) == []
    for text, message in (
        ("x", "right format"),
        ("ftp://a:1", "protocol must"),
        ("", "one URL"),
        ("http://a:65536", "65536 is not a port"),
        ("http://a:-1", "-1 is not a port"),
    ):
        with pytest.raises(ConfigError, match=message):
            settings.listeners({"listeners": text})
    bound = [ListenAddress("h", 1), ListenAddress("h", 2, True)]
    assert settings.advertised_url({}, bound) == "http://h:1"
    values = {"rest.advertised.listener": "https", "rest.advertised.host.name": "w"}
    assert settings.advertised_url(values, bound) == "https://w:2"


def test_other_extensions_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"Invalid value a\.B for configuration rest\.extension"):
        settings.passwords({"rest.extension.classes": "a.B"})


@pytest.mark.parametrize(
    ("query", "forwarded"), [("", "?forward=true"), ("?forward=true", "?forward=false")]
)
async def test_requests_go_to_who_can_do_them(
    tmp_path: Path, query: str, forwarded: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        return httpx.Response(201, json={"name": "c"})

    client = httpx.AsyncClient(transport=httpx.MockTransport(answer))
    world = RestWorld(tmp_path, forwarding=client)

    def elsewhere(*_: object, **__: object) -> None:
        raise ElsewhereError("Only the leader", "http://leader:8083/")

    monkeypatch.setattr(world.herder.herder, "put", elsewhere)
    found = await world.ask(
        "PUT", f"/connectors/a%2Fb/config{query}", {"x": "1"}, headers={"authorization": "Basic eA"}
    )
    assert found == (201, {"name": "c"})
    assert str(seen[0].url) == f"http://leader:8083/connectors/a%2Fb/config{forwarded}"
    assert seen[0].headers["authorization"] == "Basic eA"
    assert seen[0].content == b'{"x":"1"}'
    status, error = await world.ask("PUT", "/connectors/c/config?forward=false", {"x": "1"})
    assert (status, error["message"]) == (
        409,
        "Cannot complete request because of a conflicting operation (e.g. worker rebalance)",
    )
    world.close()
    await client.aclose()


@pytest.mark.parametrize(
    "raised", [SystemExit(1), KeyboardInterrupt(), asyncio.CancelledError(), RecursionError("deep")]
)
async def test_what_a_handler_raises_is_told_and_the_worker_goes_on(
    raised: BaseException, caplog: pytest.LogCaptureFixture
) -> None:
    def ends(request: Request) -> Answer:
        raise raised

    rest = RestApp([Route("GET", "/ends", ends), Route("GET", "/", lambda _: Answer())])
    transport = httpx.ASGITransport(rest)
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
        answer = await client.get("/ends")
        assert (answer.status_code, answer.json()["error_code"]) == (500, 500)
        assert (await client.get("/")).status_code == 200
    rest.close()
    assert "/ends" in caplog.text


@pytest.mark.parametrize(
    "body",
    [
        b"[" * 100_000,
        b'{"a":' * 900 + b"1" + b"}" * 900,
        b'{"name":"c","config":{"a":' + b"9" * 5000 + b'e99999},"x":NaN}',
        b'{"name":"\\ud800","config":{}}',
        b'{"name":"\xff"}',
        b"\x00",
    ],
    ids=["deep", "deep and whole", "numbers", "half a character", "no text", "zero"],
)
@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/connectors"),
        ("PUT", "/connectors/c/config"),
        ("PATCH", "/connectors/c/config"),
        ("PATCH", "/connectors/c/offsets"),
        ("PUT", "/connector-plugins/FileStreamSource/config/validate"),
        ("PUT", "/admin/loggers/root"),
    ],
)
async def test_bodies_that_are_no_json_are_refused(
    tmp_path: Path, method: str, path: str, body: bytes
) -> None:
    world = RestWorld(tmp_path)
    headers = {"content-type": "application/json"}
    answer = await world.send(method, path, content=body, headers=headers)
    assert 400 <= answer.status_code <= 500
    assert "JSON" in answer.json()["message"]
    world.close()
