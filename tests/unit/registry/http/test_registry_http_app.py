"""Around the routes: headers, methods, failures, the log of requests, the life of the server."""

import logging
import re
import uuid

import httpx
import pytest
from starlette.types import Message

from barnabas import __version__
from barnabas.base.config.properties import parse_properties
from barnabas.registry import errors
from barnabas.registry.config import RegistryConfig
from barnabas.registry.errors import RegistryError
from barnabas.registry.http.app import RegistryApp
from barnabas.registry.http.config import HttpConfig
from support.registry_format import text
from support.registry_http import ask, run
from support.registry_service import MemoryService

LOGGED = re.compile(
    r"127\.0\.0\.1 - - \[\d\d/\w{3}/\d{4}:\d\d:\d\d:\d\d [+-]\d{4}\] "
    r'"GET /subjects/a%22/versions\?deleted=true HTTP/1\.1" 404 \d+ "-" "x\\"\\x0ay" \d+'
)


@pytest.fixture
def service() -> MemoryService:
    return MemoryService()


@pytest.fixture
def app(service: MemoryService) -> RegistryApp:
    return RegistryApp(service)


def test_headers(app: RegistryApp) -> None:
    reply = run(ask(app, "GET", "/config"))
    assert reply.headers[b"content-type"] == b"application/vnd.schemaregistry.v1+json"
    assert reply.headers[b"content-length"] == b"%d" % len(reply.body)
    assert b"Accept" in reply.headers[b"vary"]
    again = run(ask(app, "GET", "/config"))
    assert len({reply.headers[b"x-request-id"], again.headers[b"x-request-id"]}) == 2
    assert str(uuid.UUID(reply.headers[b"x-request-id"].decode()))


def test_a_request_id_comes_back(app: RegistryApp) -> None:
    for sent, is_kept in ((b"my-id", True), (b"x" * 1000, False), (b"", False)):
        reply = run(ask(app, "GET", "/", headers={b"x-request-id": sent}))
        assert (reply.headers[b"x-request-id"] == sent) == is_kept


def test_head_is_get_without_a_body(app: RegistryApp) -> None:
    run(ask(app, "POST", "/subjects/s/versions", {"schema": text("a")}))
    for target in ("/schemas/ids/1", "/subjects/s/versions/latest", "/config", "/subjects/none"):
        get, head = run(ask(app, "GET", target)), run(ask(app, "HEAD", target))
        assert head.status == get.status
        assert head.headers[b"content-length"] == b"%d" % len(get.body)
        assert head.body == b""


METHODS = [
    ("/subjects", b"GET, HEAD, OPTIONS"),
    ("/subjects/s", b"DELETE, OPTIONS, POST"),
    ("/config", b"DELETE, GET, HEAD, OPTIONS, PUT"),
    ("/schemas/types", b"GET, HEAD, OPTIONS"),
    ("/", b"GET, HEAD, OPTIONS, POST"),
]


@pytest.mark.parametrize(("target", "allowed"), METHODS)
def test_methods_that_a_path_has(app: RegistryApp, target: str, allowed: bytes) -> None:
    options = run(ask(app, "OPTIONS", target))
    assert (options.status, options.headers[b"allow"]) == (204, allowed)
    refused = run(ask(app, "PATCH", target))
    assert refused.code == 405
    assert refused.headers[b"allow"] == allowed
    assert "Method Not Allowed" in refused.json["message"]
    assert run(ask(app, "OPTIONS", "/none")).code == 404


def test_a_defect_shows_nothing_of_itself(
    app: RegistryApp, service: MemoryService, caplog: pytest.LogCaptureFixture
) -> None:
    service.failure = ZeroDivisionError("a secret")
    reply = run(
        ask(
            app,
            "POST",
            "/subjects/s/versions",
            {"schema": text("hidden")},
            headers={b"authorization": b"Basic c2VjcmV0"},
        )
    )
    assert (reply.status, reply.code) == (500, 50001)
    assert b"secret" not in reply.body
    assert b"Traceback" not in reply.body
    [record] = [one for one in caplog.records if one.levelno == logging.ERROR]
    assert record.getMessage() == "POST /subjects/s/versions failed"
    assert "c2VjcmV0" not in caplog.text
    assert "hidden" not in caplog.text


@pytest.mark.parametrize(
    "code", [errors.STORE_ERROR, errors.OPERATION_TIMEOUT, errors.UNKNOWN_LEADER]
)
def test_a_write_that_fails(app: RegistryApp, service: MemoryService, code: int) -> None:
    service.failure = RegistryError(code, "try again")
    for method, target, body in (
        ("POST", "/subjects/s/versions", {"schema": text("a")}),
        ("PUT", "/config", {"compatibility": "FULL"}),
        ("DELETE", "/subjects/s", None),
    ):
        reply = run(ask(app, method, target, body))
        assert (reply.status, reply.json) == (500, {"error_code": code, "message": "try again"})


def test_requests_are_logged_in_apache_s_format(
    app: RegistryApp, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, "barnabas.registry.http.request_log"):
        run(
            ask(
                app,
                "GET",
                "/subjects/a%22/versions?deleted=true",
                headers={b"user-agent": b'x"\ny', b"authorization": b"Bearer token"},
            )
        )
    [record] = caplog.records
    assert LOGGED.fullmatch(record.getMessage())


def test_the_log_of_requests_can_be_switched_off(
    service: MemoryService, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, "barnabas.registry.http.request_log"):
        run(ask(RegistryApp(service, HttpConfig(logs_requests=False)), "GET", "/"))
    assert not caplog.records


async def test_a_client_that_goes_away_gets_nothing(app: RegistryApp) -> None:
    sent: list[Message] = []

    async def receive() -> Message:
        return {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        sent.append(message)

    scope = {
        "type": "http",
        "method": "POST",
        "raw_path": b"/subjects/s/versions",
        "query_string": b"",
        "headers": [],
    }
    await app(scope, receive, send)
    assert sent == []


async def test_an_http_client_finds_its_way(app: RegistryApp) -> None:
    transport = httpx.ASGITransport(app=app)
    async with httpx.AsyncClient(transport=transport, base_url="http://registry") as client:
        assert (await client.get("/subjects")).json() == []
        reply = await client.post("/subjects/a%2Fb/versions", json={"schema": text("a")})
        assert reply.json()["id"] == 1
        latest = await client.get("/subjects/a%2Fb/versions/latest")
        assert latest.json()["subject"] == "a/b"


FILE = parse_properties("""
kafkastore.bootstrap.servers=localhost:9092
schema.registry.group.id=group
inter.instance.headers.whitelist=X-Tenant, X-Own
leader.connect.timeout.ms=5
leader.read.timeout.ms=6
size.limit.filter.max.request.body.size=7
""")


def test_the_server_s_file() -> None:
    found = HttpConfig.of(RegistryConfig(FILE))
    assert found == HttpConfig(
        group_id="group",
        version=__version__,
        forwarded_headers=("X-Tenant", "X-Own"),
        leader_connect_timeout_ms=5,
        leader_read_timeout_ms=6,
    )
    limited = RegistryConfig({**FILE, "size.limit.filter.enabled": "true"})
    assert HttpConfig.of(limited).body_bytes_max == 7
    secret = {"listeners": "https://host:1", "inter.instance.protocol": "https"}
    assert HttpConfig.of(RegistryConfig({**FILE, **secret})).leader_tls is not None


def test_the_server_gets_its_interface(service: MemoryService) -> None:
    app = RegistryApp(service, HttpConfig.of(RegistryConfig(FILE)))
    reply = run(ask(app, "GET", "/v1/metadata/id"))
    assert reply.json["scope"]["clusters"]["schema-registry-cluster"] == "group"
    assert run(ask(app, "GET", "/v1/metadata/version")).json == {"version": __version__}
