"""The same requests to every service: hostile ones, and those of who watches it."""

from __future__ import annotations

import asyncio
import base64
from pathlib import Path

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from barnabas.web import http1
from barnabas.web.crowd import HEAD_BYTES_MAX
from barnabas.web.frame_budget import PREFACE
from support.every_service import ASK_FOR_PASSWORDS, SERVICES, SPEAK_HTTP2, USER
from support.http_server import clients
from support.patience import PATIENCE_S

pytestmark = pytest.mark.parametrize("service", SERVICES)
LIVE = b"GET /health/live HTTP/1.1\r\nHost: localhost\r\n"
OWN_FIGURES = {
    "registry": "kafka_schema_registry_master_slave_role",
    "sql": "ksql_liveness_indicator",
    "connect": "kafka_connect_worker_connector_count",
    "dashboard": "dashboard_changes",
    "node": "kafka_server_socket_server_metrics_connection_count",
}
_ELSEWHERE = "http://elsewhere.example"


async def answer(port: int, path: str, method: str = "GET", **more: object) -> httpx.Response:
    async with httpx.AsyncClient(trust_env=False, timeout=PATIENCE_S) as client:
        return await client.request(method, f"http://127.0.0.1:{port}{path}", **more)  # type: ignore[arg-type]


async def test_metrics_and_health(service: str, tmp_path: Path) -> None:
    async with SERVICES[service](tmp_path, asks=False) as port:
        for path, status in (("live", "live"), ("ready", "ready")):
            found = await answer(port, f"/health/{path}")
            assert (found.status_code, found.json()) == (200, {"status": status})
            assert found.headers["content-type"] == "application/json"
            assert found.headers["x-content-type-options"] == "nosniff"
            head = await answer(port, f"/health/{path}", "HEAD")
            assert (head.status_code, head.content) == (200, b"")
        found = await answer(port, "/metrics")
        assert found.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
        families = {one.name: one for one in text_string_to_metric_families(found.text)}
        assert OWN_FIGURES[service] in families
        assert "process_resident_memory_bytes" in families
        counted = {
            one.labels["code"]: one.value for one in families["http_server_requests"].samples
        }
        assert counted["200"] == 4
        assert "http_server_connections" in families
        for path in ("/metrics", "/health/live", "/health/ready"):
            refused = await answer(port, path, "POST", content=b"{}")
            assert (refused.status_code, refused.headers["allow"]) == (405, "GET, HEAD")


async def test_figures_ask_for_a_password_and_health_does_not(service: str, tmp_path: Path) -> None:
    async with SERVICES[service](tmp_path, asks=True) as port:
        for path in ("/health/live", "/health/ready"):
            assert (await answer(port, path)).status_code == 200
        wanted = 401 if service in ASK_FOR_PASSWORDS else 200
        for user in (None, ("ann", "wrong"), ("bob", "secret")):
            refused = await answer(port, "/metrics", auth=user)
            assert refused.status_code == wanted
            assert ("www-authenticate" in refused.headers) == (wanted == 401)
        twice = [("Authorization", f"Basic {base64.b64encode(b'ann:secret').decode()}")] * 2
        assert (await answer(port, "/metrics", headers=twice)).status_code == wanted
        assert (await answer(port, "/metrics", auth=USER)).status_code == 200


async def test_web_sockets_ask_for_a_password(service: str, tmp_path: Path) -> None:
    async with SERVICES[service](tmp_path, asks=True) as port, clients(port) as (client,):
        await client.send(
            b"GET /ws/query HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\n"
            b"Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
            b"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
        )
        wanted = b"HTTP/1.1 401" if service in ASK_FOR_PASSWORDS else b"HTTP/1.1 404"
        assert (await client.head()).startswith(wanted)


@pytest.mark.parametrize(
    ("headers", "is_served"),
    [
        ({}, True),
        ({"Host": "localhost"}, True),
        ({"Host": "rebound.example"}, False),
        ({"Host": "localhost.rebound.example"}, False),
        ({"Origin": _ELSEWHERE}, False),
        ({"Origin": "null"}, False),
        ({"Sec-Fetch-Site": "cross-site"}, False),
        ({"Sec-Fetch-Site": "same-site"}, False),
        ({"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}, False),
        ({"Sec-Fetch-Site": "none"}, True),
    ],
)
async def test_other_pages_and_hosts(
    service: str, tmp_path: Path, headers: dict[str, str], is_served: bool
) -> None:
    async with SERVICES[service](tmp_path, asks=False) as port:
        for path in ("/metrics", "/health/live", "/elsewhere"):
            status = (await answer(port, path, headers=headers)).status_code
            assert (status not in (403, 421)) is is_served
        asked = {"Access-Control-Request-Method": "POST", **headers}
        found = await answer(port, "/metrics", "OPTIONS", headers=asked)
        assert "access-control-allow-origin" not in found.headers


async def test_a_head_that_is_too_long_is_refused(service: str, tmp_path: Path) -> None:
    async with SERVICES[service](tmp_path, asks=False) as port, clients(port) as (client,):
        await client.send(LIVE + b"X: " + b"a" * HEAD_BYTES_MAX)
        await client.send(b"a" * 20_000)
        assert (await client.head()).startswith(b"HTTP/1.1 431")


async def test_a_head_that_drips_ends_its_connection(
    service: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http1, "HEAD_S", 0.2)
    async with SERVICES[service](tmp_path, asks=False) as port, clients(port) as (client,):
        await client.send(LIVE)
        ended = asyncio.create_task(client.ended())
        while not ended.done():
            await client.send(b"X: a\r\n")
            await asyncio.sleep(0.02)
        monkeypatch.undo()  # the next one's head may be slow, too
        assert (await answer(port, "/health/live")).status_code == 200


@pytest.mark.parametrize(
    "sent",
    [
        b"POST /x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\n"
        b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + LIVE + b"\r\n",
        (
            b"POST /x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\n"
            b"Content-Length: 4\r\n\r\nabcd"
        ),
        b"POST /x HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
        LIVE + b"X: a\r\n folded: b\r\n\r\n",
        LIVE + b"X: a\0b\r\n\r\n",
        b"\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03",
        bytes(range(256)) * 8,
    ],
    ids=["two lengths", "two numbers", "a space", "a fold", "a zero", "a handshake", "no text"],
)
async def test_what_can_be_read_in_two_ways_is_not_served(
    service: str, tmp_path: Path, sent: bytes
) -> None:
    async with SERVICES[service](tmp_path, asks=False) as port, clients(port) as (client,):
        await client.send(sent)
        client.writer.write_eof()
        answers = await client.ended()
        assert answers.count(b"HTTP/1.1 ") <= 1
        assert b"HTTP/1.1 2" not in answers
        assert (await answer(port, "/health/live")).status_code == 200


@pytest.mark.parametrize(
    "path",
    ["/%2e%2e/%2e%2e/etc/passwd", "/\u0000", "/" + "a/" * 5_000, "/%ff", "//", "/metrics/.."],
)
async def test_paths_that_lead_nowhere(service: str, tmp_path: Path, path: str) -> None:
    async with SERVICES[service](tmp_path, asks=False) as port, clients(port) as (client,):
        await client.send(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        head = await client.head()
        assert b"root:" not in head
        assert not head.startswith(b"HTTP/1.1 5")
        assert (await answer(port, "/health/live")).status_code == 200


async def test_http_2_is_spoken_where_it_is_promised(service: str, tmp_path: Path) -> None:
    async with SERVICES[service](tmp_path, asks=False) as port:
        if service in SPEAK_HTTP2:
            async with httpx.AsyncClient(
                http1=False, http2=True, trust_env=False, timeout=PATIENCE_S
            ) as client:
                found = await client.get(f"http://127.0.0.1:{port}/health/live")
                assert (found.status_code, found.http_version) == (200, "HTTP/2")
                for path, headers in (
                    ("/metrics", {"Origin": _ELSEWHERE}),
                    ("/metrics", {"Host": "rebound.example"}),
                ):
                    url = f"http://127.0.0.1:{port}{path}"
                    assert (await client.get(url, headers=headers)).status_code == 403
            return
        async with clients(port) as (one,):
            await one.send(PREFACE)
            assert (await one.ended()).startswith((b"HTTP/1.1 400", b"HTTP/1.1 505"))
