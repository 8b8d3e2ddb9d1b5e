"""Clients that send half requests, endless ones or none, and how others are served."""

from __future__ import annotations

import asyncio
import ssl
from pathlib import Path

import pytest

from barnabas.web import http1, http2
from barnabas.web.crowd import HEAD_BYTES_MAX, Crowd
from barnabas.web.listening import BoundListener, ListenAddress
from barnabas.web.server import WebServer
from support.certificates import Authority
from support.eventually import eventually
from support.http_server import HTTP2, SERVERS, Client, clients, is_served, serving, sizes

pytestmark = pytest.mark.parametrize("kind", SERVERS)
HOST = b"Host: localhost\r\n"
GET = b"GET /3 HTTP/1.1\r\n" + HOST
POST = b"POST / HTTP/1.1\r\n" + HOST
LIMIT = 8


async def settled(crowd: Crowd, count: int) -> None:
    """Wait until so many connections are there."""
    await eventually(lambda: crowd.count == count, f"{count} connections")


@pytest.mark.parametrize(
    "endless",
    [
        GET + b"X: " + b"a" * (4 * HEAD_BYTES_MAX),
        GET + b"X: a\r\n" * HEAD_BYTES_MAX,
        b"GET /" + b"a" * (4 * HEAD_BYTES_MAX),
        GET + b"a" * (4 * HEAD_BYTES_MAX),
    ],
    ids=["value", "headers", "target", "name"],
)
async def test_a_head_that_does_not_end_is_refused(kind: str, endless: bytes) -> None:
    async with serving(kind, Crowd()) as port, clients(port, 1) as (client,):
        await client.send(endless)
        answer = await client.ended()
        assert answer == b"" or answer.startswith((b"HTTP/1.1 431", b"HTTP/1.1 400"))
        assert await is_served(port)


async def test_a_long_head_is_answered_431(kind: str) -> None:
    async with serving(kind, Crowd()) as port, clients(port, 1) as (client,):
        await client.send(GET + b"X: " + b"a" * HEAD_BYTES_MAX)
        await client.send(b"a" * 20_000)
        assert (await client.head()).startswith(b"HTTP/1.1 431")


async def test_a_head_within_bounds_is_taken(kind: str) -> None:
    async with serving(kind, Crowd()) as port, clients(port, 1) as (client,):
        for _ in range(3):
            await client.send(GET + b"X: " + b"a" * 60_000 + b"\r\n\r\n")
            assert (await client.head()).startswith(b"HTTP/1.1 200")
            assert await client.reader.readexactly(3) == b"xxx"


@pytest.mark.parametrize("half", [b"G", GET + b"X: a", GET + b"\r\n" + GET + b"X"])
async def test_a_head_that_stops_half_way_ends_the_connection(
    kind: str, half: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http1, "HEAD_S", 0.1)
    monkeypatch.setattr(http2, "HEAD_S", 0.1)
    async with serving(kind, Crowd()) as port, clients(port, 1) as (client,):
        await client.send(half)
        await client.ended()
        monkeypatch.undo()  # the next one's head may be slow, too
        assert await is_served(port)


async def test_a_head_that_drips_ends_the_connection(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http1, "HEAD_S", 0.2)
    monkeypatch.setattr(http2, "HEAD_S", 0.2)
    async with serving(kind, Crowd()) as port, clients(port, 1) as (client,):
        await client.send(GET)
        ended = asyncio.create_task(client.ended())
        while not ended.done():
            await client.send(b"X: a\r\n")
            await asyncio.sleep(0.02)


@pytest.mark.parametrize(
    "sent",
    [b"", b"G", GET, POST + b"Content-Length: 9\r\n\r\n", GET + b"\r\n"],
    ids=["nothing", "a letter", "half a head", "half a body", "a request, long ago"],
)
async def test_silent_clients_shut_nobody_out(kind: str, sent: bytes) -> None:
    crowd = Crowd(LIMIT)
    async with serving(kind, crowd) as port, clients(port, LIMIT) as silent:
        for client in silent:
            await client.send(sent)
            if sent == GET + b"\r\n":
                await client.head()
        await settled(crowd, LIMIT)
        for _ in range(2 * LIMIT):
            assert await is_served(port)
        assert crowd.count <= LIMIT


async def test_handshakes_that_do_not_begin_shut_nobody_out(kind: str, tmp_path: Path) -> None:
    authority, crowd = Authority(tmp_path), Crowd(LIMIT)
    own = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    own.load_cert_chain(authority.issue("server"))
    trusting = ssl.create_default_context(cafile=authority.file)
    trusting.check_hostname = False
    async with serving(kind, crowd, tls=own) as port, clients(port, LIMIT):
        await settled(crowd, LIMIT)
        for _ in range(LIMIT):
            client = Client(*await asyncio.open_connection("127.0.0.1", port, ssl=trusting))
            await client.send(GET + b"\r\n")
            assert (await client.head()).startswith(b"HTTP/1.1 200")
            client.close()


async def test_a_connection_without_usable_tls_is_closed(
    kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    def unusable() -> ssl.SSLContext:
        raise ValueError("no key")

    crowd = Crowd(LIMIT)
    bound = BoundListener(ListenAddress("127.0.0.1", 0, is_tls=True))
    server = WebServer(sizes, [bound], crowd, tls=unusable, speaks_http2=kind == HTTP2)
    await server.start()
    async with clients(bound.listener.port, LIMIT) as found:
        for client in found:
            assert await client.ended() == b""
    await settled(crowd, 0)
    assert "cannot be served" in caplog.text
    await server.stop()


async def test_who_is_served_stays_and_more_are_refused(kind: str) -> None:
    crowd, goes_on = Crowd(2), asyncio.Event()

    async def slow(scope, receive, send):  # type: ignore[no-untyped-def]
        await receive()
        if scope["path"] == "/slow":
            await goes_on.wait()
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    async with serving(kind, crowd, slow) as port, clients(port, 2) as busy:
        for client in busy:
            await client.send(GET.replace(b"/3", b"/slow") + b"\r\n")
        await eventually(lambda: crowd.count == 2 and not crowd._waiting, "both are served")
        assert not await is_served(port)
        goes_on.set()
        for client in busy:
            assert (await client.head()).startswith(b"HTTP/1.1 200")
        assert await is_served(port)


async def test_answers_that_nobody_reads_are_bounded(kind: str) -> None:
    size = 30_000_000
    crowd = Crowd(unread_bytes_max=2 * size)
    async with serving(kind, crowd) as port, clients(port, 4) as lazy:
        for client in lazy:
            client.writer.transport.pause_reading()  # type: ignore[attr-defined]
            await client.send(b"GET /%d HTTP/1.1\r\nHost: localhost\r\n\r\n" % size)
        await eventually(lambda: crowd.count == 2, "two are cut off")
        assert await is_served(port)


async def test_a_client_that_never_reads_is_cut_off(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http1, "UNREAD_S", 0.1)
    monkeypatch.setattr(http2, "UNREAD_S", 0.1)
    crowd = Crowd()
    async with serving(kind, crowd) as port, clients(port, 1) as (client,):
        client.writer.transport.pause_reading()  # type: ignore[attr-defined]
        await settled(crowd, 1)
        await client.send(b"GET /20000000 HTTP/1.1\r\nHost: localhost\r\n\r\n")
        await settled(crowd, 0)


@pytest.mark.parametrize(
    "smuggled",
    [
        POST + b"Content-Length: 3\r\nContent-Length: 4\r\n\r\nabcd",
        POST + b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + GET + b"\r\n",
        POST + b"Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
        POST + b"Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
        POST + b"Content-Length: +3\r\n\r\nabc",
        POST + b"Content-Length: 3, 4\r\n\r\nabcd",
        POST + b"X: a\r\n Content-Length: 3\r\n\r\nabc",
        POST + b"Content-Length: " + b"9" * 5000 + b"\r\n\r\n",
        GET + b"X: a\0b\r\n\r\n",
        b"GET /\xff\xfe HTTP/1.1\r\n" + HOST + b"\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\nno frames at all, but something else",
    ],
)
async def test_requests_of_two_readings_end_their_connection(kind: str, smuggled: bytes) -> None:
    """Requests that a proxy may parse differently get at most one answer."""
    async with serving(kind, Crowd()) as port, clients(port, 1) as (client,):
        await client.send(smuggled)
        client.writer.write_eof()
        answers = await client.ended()
        assert answers.count(b"HTTP/1.1 ") <= 1
        assert await is_served(port)


async def test_trailers_that_do_not_end_are_refused(kind: str) -> None:
    async with serving(kind, Crowd()) as port, clients(port, 1) as (client,):
        await client.send(POST + b"Transfer-Encoding: chunked\r\n\r\n0\r\n")
        for _ in range(16):
            await client.send(b"X: " + b"a" * HEAD_BYTES_MAX)
        await client.ended()
        assert await is_served(port)
