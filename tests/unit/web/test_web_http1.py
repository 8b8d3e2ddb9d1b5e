"""Connections of HTTP/1.1: joined writes, upgrades, requests sent ahead, and how they end."""

import asyncio
import json
import logging
from typing import Any

import pytest
from starlette.types import Receive, Scope, Send

from barnabas.web.crowd import Crowd
from barnabas.web.http1 import PIPELINED_MAX, JoinedWrites
from barnabas.web.listening import BoundListener, CannotListenError, ListenAddress
from barnabas.web.server import ServerThread, WebServer
from support.eventually import eventually
from support.http_server import HTTP2, SERVERS, clients, serving, sizes
from support.patience import PATIENCE_S

HOST = b" HTTP/1.1\r\nHost: localhost\r\n"


class _Transport(asyncio.Transport):
    """Records what is written, and None when it is closed."""

    def __init__(self) -> None:
        super().__init__()
        self.written: list[bytes | None] = []

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written.append(bytes(data))

    def close(self) -> None:
        self.written.append(None)

    def is_closing(self) -> bool:
        return None in self.written


async def test_what_is_written_in_one_turn_is_sent_together() -> None:
    inner = _Transport()
    joined = JoinedWrites(inner, asyncio.get_running_loop())
    joined.write(b"head ")
    joined.write(b"body")
    assert inner.written == []
    await asyncio.sleep(0)
    assert inner.written == [b"head body"]
    joined.write(b"the next")
    await asyncio.sleep(0)
    assert inner.written == [b"head body", b"the next"]


async def test_a_connection_is_closed_after_what_was_written() -> None:
    inner = _Transport()
    joined = JoinedWrites(inner, asyncio.get_running_loop())
    joined.write(b"the last")
    joined.close()
    assert joined.is_closing()
    await asyncio.sleep(0)
    assert inner.written == [b"the last", None]


async def test_nothing_is_sent_once_the_other_side_is_gone() -> None:
    inner = _Transport()
    joined = JoinedWrites(inner, asyncio.get_running_loop())
    joined.write(b"too late")
    inner.close()
    await asyncio.sleep(0)
    assert inner.written == [None]


# --- upgrades that are not made --------------------------------------------------------------


@pytest.mark.parametrize("kind", SERVERS)
@pytest.mark.parametrize("protocol", [b"h2c", b"websocket", b"other"])
@pytest.mark.parametrize(
    ("length", "body"),
    [
        (b"Content-Length: 4\r\n", b"GET "),
        (b"Transfer-Encoding: chunked\r\n", b"4\r\nGET \r\n0\r\n\r\n"),
    ],
    ids=["length", "chunks"],
)
@pytest.mark.parametrize("is_in_one_piece", [True, False])
async def test_a_body_is_read_whatever_upgrade_is_asked_for(
    kind: str, protocol: bytes, length: bytes, body: bytes, is_in_one_piece: bool
) -> None:
    head = b"POST /" + HOST + b"Connection: Upgrade\r\nUpgrade: " + protocol + b"\r\n" + length
    async with serving(kind, Crowd()) as port, clients(port) as (client,):
        await client.send(head + b"\r\n" + (body if is_in_one_piece else b""))
        if not is_in_one_piece:
            await asyncio.sleep(0.02)
            await client.send(body)
        assert (await client.head()).startswith(b"HTTP/1.1 200")
        assert await client.reader.readexactly(1) == b"4"
        await client.send(b"GET /3" + HOST + b"\r\n")
        assert (await client.head()).startswith(b"HTTP/1.1 200")
        assert await client.reader.readexactly(3) == b"xxx"


@pytest.mark.parametrize("kind", SERVERS)
async def test_the_request_behind_an_upgrade_that_is_not_made_is_answered(kind: str) -> None:
    async with serving(kind, Crowd()) as port, clients(port) as (client,):
        await client.send(
            b"GET /3" + HOST + b"Connection: Upgrade\r\nUpgrade: other\r\n\r\n"
            b"GET /4" + HOST + b"\r\n"
        )
        for body in (b"xxx", b"xxxx"):
            assert (await client.head()).startswith(b"HTTP/1.1 200")
            assert await client.reader.readexactly(len(body)) == body


@pytest.mark.parametrize("kind", SERVERS)
async def test_tunnels_are_refused(kind: str) -> None:
    async with serving(kind, Crowd()) as port, clients(port) as (client,):
        await client.send(b"CONNECT localhost:80" + HOST + b"\r\nGET /3" + HOST + b"\r\n")
        answers = await client.ended()
        assert answers.startswith(b"HTTP/1.1 400")
        assert answers.count(b"HTTP/1.1") == 1


# --- requests sent ahead ---------------------------------------------------------------------


class _Endless:
    """Answers for as long as its client is there; `count` are being answered."""

    def __init__(self) -> None:
        self.count = 0

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self.count += 1
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"x", "more_body": True})
        while (await receive())["type"] != "http.disconnect":
            pass
        self.count -= 1


@pytest.mark.parametrize("kind", SERVERS)
async def test_an_endless_answer_ends_with_its_client_though_more_was_asked(kind: str) -> None:
    app = _Endless()
    async with serving(kind, Crowd(), app) as port:
        async with clients(port) as (client,):
            await client.send((b"GET /" + HOST + b"\r\n") * 3)
            await client.head()
            assert app.count == 1
        await eventually(lambda: app.count == 0, "the answer has ended")


@pytest.mark.parametrize("kind", SERVERS)
async def test_requests_sent_ahead_are_bounded(kind: str) -> None:
    one = b"GET /3" + HOST + b"\r\n"
    async with serving(kind, Crowd()) as port, clients(port, 2) as (modest, greedy):
        await modest.send(one * PIPELINED_MAX)
        for _ in range(PIPELINED_MAX):
            assert (await modest.head()).startswith(b"HTTP/1.1 200")
            await modest.reader.readexactly(3)
        await greedy.send(one * 10 * PIPELINED_MAX)
        assert (await greedy.ended()).count(b"HTTP/1.1 200") < 10 * PIPELINED_MAX


@pytest.mark.parametrize("kind", SERVERS)
@pytest.mark.parametrize("more", [b"\x16\x03\x01", b"GET /" + b"a" * 100_000])
async def test_no_refusal_stands_in_the_middle_of_an_answer(kind: str, more: bytes) -> None:
    async with serving(kind, Crowd(), _Endless()) as port, clients(port) as (client,):
        await client.send(b"GET /" + HOST + b"\r\n")
        await client.head()
        await client.send(more)
        assert await client.ended() == b"1\r\nx\r\n"


@pytest.mark.parametrize("kind", SERVERS)
async def test_a_client_refused_before_it_sent_its_body_is_asked_to_come_again(kind: str) -> None:
    async def refusing(scope: Any, receive: Any, send: Any) -> None:
        if scope["path"] != "/no":
            await sizes(scope, receive, send)
            return
        length = (b"content-length", b"0")
        await send({"type": "http.response.start", "status": 401, "headers": [length]})
        await send({"type": "http.response.body", "body": b""})

    expecting = HOST + b"Expect: 100-continue\r\nContent-Length: 3\r\n\r\n"
    async with serving(kind, Crowd(), refusing) as port, clients(port) as (client,):
        for _ in range(2):
            await client.send(b"POST /" + expecting)
            assert (await client.head()).startswith(b"HTTP/1.1 100")
            await client.send(b"abc")
            assert b"connection: close" not in await client.head()
            assert await client.reader.readexactly(1) == b"3"
        await client.send(b"POST /no" + expecting)
        assert b"\r\nconnection: close" in await client.head()
        assert await client.ended() == b""


# --- the beginning ---------------------------------------------------------------------------


def test_an_address_that_another_process_took_first_is_named() -> None:
    """Linux lets two sockets have an address until one of them listens."""
    first = BoundListener(ListenAddress("127.0.0.1", 0))
    second = BoundListener(first.listener)
    first.socket.listen()
    thread = ServerThread(WebServer(sizes, [second], Crowd()), "test-web")
    try:
        with pytest.raises(CannotListenError, match=f"127.0.0.1:{first.listener.port}"):
            thread.start()
        assert not thread._thread.is_alive()
        assert second.socket.fileno() == -1
    finally:
        first.close()


# --- the end ---------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", SERVERS)
@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("speaks_http2", [False, True])
async def test_a_client_that_does_not_read_keeps_no_server_from_its_end(
    kind: str, count: int, speaks_http2: bool
) -> None:
    bound = BoundListener(ListenAddress("127.0.0.1", 0))
    server = WebServer(sizes, [bound], Crowd(), speaks_http2=kind == HTTP2, stop_s=0.1)
    await server.start()
    async with clients(bound.listener.port) as (client,):
        client.writer.transport.pause_reading()  # type: ignore[attr-defined]
        upgrade = b"Connection: Upgrade\r\nUpgrade: h2c\r\nHTTP2-Settings: AAQ_____\r\n"
        head = b"GET /20000000" + HOST + (upgrade if speaks_http2 else b"") + b"\r\n"
        await client.send(head * count)
        await eventually(lambda: bool(server._crowd._unread) or speaks_http2, "it does not read")
        await asyncio.sleep(0.05)
        async with asyncio.timeout(PATIENCE_S):
            await server.stop()
        assert server.connections == 0


@pytest.mark.parametrize("kind", SERVERS)
async def test_a_request_that_outlasts_the_server_is_answered(
    kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    asked = asyncio.Event()

    async def slow(scope: Scope, receive: Receive, send: Send) -> None:
        asked.set()
        await asyncio.Event().wait()

    bound = BoundListener(ListenAddress("127.0.0.1", 0))
    server = WebServer(slow, [bound], Crowd(), speaks_http2=kind == HTTP2, stop_s=0.1)
    await server.start()
    async with clients(bound.listener.port) as (client,), asyncio.timeout(PATIENCE_S):
        await client.send(b"GET /slow" + HOST + b"\r\n")
        await asked.wait()
        await server.stop()
        head, _, body = (await client.reader.read()).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 503 ")
    assert json.loads(body) == {"error_code": 503, "message": "the server is shutting down"}
    assert [record.getMessage() for record in caplog.records if record.levelno > logging.INFO] == [
        "GET /slow: not answered before the server stopped"
    ]
    assert not any(record.exc_info for record in caplog.records)
