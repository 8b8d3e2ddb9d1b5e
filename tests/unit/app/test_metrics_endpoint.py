"""GET /metrics of a node: names, who may look, and what goes wrong in words."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import http.client
import socket
import ssl
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from barnabas.app.local_nodes import standalone_properties
from barnabas.app.metrics.access import metrics_access
from barnabas.app.metrics.collecting import Show
from barnabas.app.metrics.endpoint import MetricsEndpoint, figure_text
from barnabas.base.errors import ConfigError
from barnabas.node.config.node_config import NodeConfig
from barnabas.node.security.quotas.client_quotas import Figure
from barnabas.web import http1
from barnabas.web.guard import Refusal
from barnabas.web.watch_server import CONNECTIONS_MAX
from support.certificates import Authority
from support.patience import PATIENCE_S

FIGURES = [
    Figure("Produce", {"user": "ann", "client-id": ""}, "byte-rate", 1.5),
    Figure("Request", {"user": "ann", "client-id": ""}, "request-time", 2.0),
    Figure("Request", {"user": "ann", "client-id": ""}, "request-time", 3.0),
    Figure("socket-server-metrics", {"listener": 'A"\\\n'}, "connection-count", 7),
]


def config(tmp_path: Path, **keys: str) -> NodeConfig:
    overrides = {name.replace("_", "."): value for name, value in keys.items()}
    return NodeConfig.from_properties(standalone_properties(str(tmp_path), overrides=overrides))


def basic(text: str) -> str:
    return "Basic " + base64.b64encode(text.encode()).decode()


def get(
    port: int, path: str = "/metrics", authorization: str = "", ca: str | None = None
) -> tuple[int, str]:
    connection: http.client.HTTPConnection
    if ca is None:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    else:
        context = ssl.create_default_context(cafile=ca)
        connection = http.client.HTTPSConnection("127.0.0.1", port, timeout=30, context=context)
    try:
        connection.request("GET", path, headers={"Authorization": authorization})
        response = connection.getresponse()
        return response.status, response.read().decode()
    finally:
        connection.close()


def test_figures_have_the_names_of_the_jmx_exporter() -> None:
    lines = figure_text(FIGURES).decode().splitlines()
    assert [line for line in lines if not line.startswith("#")] == [
        'kafka_server_produce_byte_rate{client_id="",user="ann"} 1.5',
        'kafka_server_request_request_time{client_id="",user="ann"} 5.0',
        'kafka_server_socket_server_metrics_connection_count{listener="A\\"\\\\\\n"} 7.0',
    ]


def test_without_a_listener_nothing_is_shown(tmp_path: Path) -> None:
    assert metrics_access(config(tmp_path)) is None


@pytest.mark.parametrize(
    "listener", ["9404", "ftp://a:1", "http://a", "http://:1", "http://a:1/x", "http://a:b"]
)
def test_a_listener_that_is_none(tmp_path: Path, listener: str) -> None:
    with pytest.raises(ConfigError, match="is not http://host:port"):
        metrics_access(config(tmp_path, barnabas_metrics_listener=listener))


@pytest.mark.parametrize("users", ["ann", "ann:", ":secret", "ann:secret,bob"])
def test_users_that_are_none(tmp_path: Path, users: str) -> None:
    keys = {"barnabas_metrics_listener": "http://a:1", "barnabas_metrics_users": users}
    with pytest.raises(ConfigError, match="user:password") as refusal:
        metrics_access(config(tmp_path, **keys))
    assert "secret" not in str(refusal.value)


@pytest.mark.parametrize(
    ("authorization", "is_admitted"),
    [
        (basic("ann:secret"), True),
        (basic("bob:x:y"), True),
        (basic("ann:x:y"), False),
        (basic("ann:"), False),
        (basic("cleo:"), False),
        (basic("cleo:secret"), False),
        (basic("ann"), False),
        ("Basic ?", False),
        ("Basic " + base64.b64encode(b"\xff:x").decode(), False),
        ("Bearer x", False),
        (None, False),
    ],
)
def test_who_may_look(tmp_path: Path, authorization: str | None, is_admitted: bool) -> None:
    access = metrics_access(
        config(
            tmp_path,
            barnabas_metrics_listener="http://a:1",
            barnabas_metrics_users="ann:secret, bob:x:y",
        )
    )
    assert access is not None
    assert access.login is not None
    headers = [] if authorization is None else [(b"authorization", authorization.encode())]
    refusal = access.login.refusal({"path": "/metrics", "headers": headers})
    assert refusal is (None if is_admitted else Refusal.NO_LOGIN)


class Node:
    """A node that is watched."""

    def __init__(self) -> None:
        self.reason: str | None = None

    def figures(self) -> Iterator[Figure]:
        return iter(FIGURES)

    async def collect(self) -> list[Show]:
        return []

    def not_ready(self) -> str | None:
        return self.reason


def opened(config: NodeConfig, node: Node | None = None) -> MetricsEndpoint:
    access = metrics_access(config)
    assert access is not None
    shown = node or Node()
    return MetricsEndpoint.open(config, access, lambda: shown)


async def test_a_scrape_and_what_is_no_scrape(tmp_path: Path) -> None:
    keys = {"barnabas_metrics_listener": "http://127.0.0.1:0", "barnabas_metrics_users": "a:b"}
    endpoint = opened(config(tmp_path, **keys))
    try:
        status, text = await asyncio.to_thread(get, endpoint.port, "/metrics?x=1", basic("a:b"))
        assert status == 200
        assert text.startswith(figure_text(FIGURES).decode())
        assert "\nhttp_server_connections 1.0\n" in text
        assert (await asyncio.to_thread(get, endpoint.port, "/", basic("a:b")))[0] == 404
        assert (await asyncio.to_thread(get, endpoint.port))[0] == 401
    finally:
        await asyncio.to_thread(endpoint.close)
    with pytest.raises(ConnectionRefusedError):
        await asyncio.to_thread(get, endpoint.port)


async def test_health_is_that_of_the_node(tmp_path: Path) -> None:
    keys = {"barnabas_metrics_listener": "http://127.0.0.1:0", "barnabas_metrics_users": "a:b"}
    node = Node()
    endpoint = opened(config(tmp_path, **keys), node)
    try:
        live = await asyncio.to_thread(get, endpoint.port, "/health/live")
        assert live == (200, '{"status":"live"}')
        ready = await asyncio.to_thread(get, endpoint.port, "/health/ready")
        assert ready == (200, '{"status":"ready"}')
        node.reason = "the broker is fenced"
        status, text = await asyncio.to_thread(get, endpoint.port, "/health/ready")
        assert (status, "the broker is fenced" in text) == (503, True)
    finally:
        await asyncio.to_thread(endpoint.close)


async def test_a_scrape_over_tls_while_another_does_not_begin(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    endpoint = opened(
        config(
            tmp_path,
            barnabas_metrics_listener="https://127.0.0.1:0",
            listener_name_metrics_ssl_keystore_type="PEM",
            listener_name_metrics_ssl_keystore_location=authority.issue("metrics"),
        )
    )
    try:
        with socket.create_connection(("127.0.0.1", endpoint.port)):
            status, _ = await asyncio.to_thread(get, endpoint.port, ca=authority.file)
        assert status == 200
    finally:
        await asyncio.to_thread(endpoint.close)


@contextlib.asynccontextmanager
async def at_loopback(tmp_path: Path, **keys: str) -> AsyncIterator[int]:
    keys = {"barnabas_metrics_listener": "http://127.0.0.1:0", **keys}
    endpoint = opened(config(tmp_path, **keys))
    try:
        yield endpoint.port
    finally:
        await asyncio.to_thread(endpoint.close)


@pytest.mark.parametrize("sent", [b"", b"GET /metrics HTTP/1.1\r\nHost: a\r\n"])
async def test_silent_clients_shut_nobody_out(tmp_path: Path, sent: bytes) -> None:
    async with at_loopback(tmp_path) as port:
        with contextlib.ExitStack() as stack:
            for _ in range(CONNECTIONS_MAX + 1):
                silent = stack.enter_context(socket.create_connection(("127.0.0.1", port)))
                silent.sendall(sent)
            assert (await asyncio.to_thread(get, port))[0] == 200


async def test_silent_handshakes_shut_nobody_out(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    keys = {
        "barnabas_metrics_listener": "https://127.0.0.1:0",
        "listener_name_metrics_ssl_keystore_type": "PEM",
        "listener_name_metrics_ssl_keystore_location": authority.issue("metrics"),
    }
    async with at_loopback(tmp_path, **keys) as port:
        with contextlib.ExitStack() as stack:
            for _ in range(CONNECTIONS_MAX + 1):
                stack.enter_context(socket.create_connection(("127.0.0.1", port)))
            assert (await asyncio.to_thread(get, port, ca=authority.file))[0] == 200


def ended(port: int, sent: bytes, drip: bytes = b"") -> None:
    """Wait until the server ends a connection on which something is sent, then dripped."""
    with socket.create_connection(("127.0.0.1", port)) as connection:
        try:
            connection.settimeout(PATIENCE_S)
            connection.sendall(sent)
            while True:
                connection.settimeout(0.02 if drip else PATIENCE_S)
                try:
                    if not connection.recv(1 << 16):
                        return
                except TimeoutError:
                    connection.sendall(drip)
        except ConnectionError:
            return


@pytest.mark.parametrize(
    "endless",
    [b"GET /" + b"a" * 200_000, b"GET /metrics HTTP/1.1\r\n" + b"A: b\r\n" * 50_000],
)
async def test_a_head_that_does_not_end_ends_the_connection(tmp_path: Path, endless: bytes) -> None:
    async with at_loopback(tmp_path) as port:
        await asyncio.to_thread(ended, port, endless)
        assert (await asyncio.to_thread(get, port))[0] == 200


async def test_a_head_that_drips_ends_the_connection(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http1, "HEAD_S", 0.3)
    async with at_loopback(tmp_path) as port:
        await asyncio.to_thread(ended, port, b"GET /metrics HTTP/1.1\r\n", b"A: b\r\n")


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "evil.example"}, 403),
        ({"Host": "localhost:9404"}, 200),
        ({"Host": "127.0.0.1:9404"}, 200),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Sec-Fetch-Site": "none"}, 200),
        ({"Origin": "http://evil.example"}, 403),
    ],
)
async def test_pages_and_names_of_others_see_nothing(
    tmp_path: Path, headers: dict[str, str], status: int
) -> None:
    def asked(port: int) -> int:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        try:
            connection.request("GET", "/metrics", headers=headers)
            return connection.getresponse().status
        finally:
            connection.close()

    async with at_loopback(tmp_path) as port:
        assert await asyncio.to_thread(asked, port) == status
