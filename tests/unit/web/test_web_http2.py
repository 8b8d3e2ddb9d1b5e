"""The sockets of the SQL server's listeners, and what it makes of frames of HTTP/2."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator

import h2.config
import h2.connection
import h2.events
import pytest
from starlette.types import Receive, Scope, Send

from barnabas.web.crowd import Crowd
from barnabas.web.frame_budget import (
    IDLE_FRAMES_MAX,
    PREFACE,
    RESETS_MAX,
    WINDOW_S,
    FrameBudget,
    TooManyFramesError,
)
from support.http_server import HTTP2, Client, clients, is_served, serving

PING = b"\0\0\x08\x06\0\0\0\0\0" + b"\0" * 8
SETTINGS = b"\0\0\0\x04\0\0\0\0\0"
PRIORITY = b"\0\0\x05\x02\0\0\0\0\x0b" + b"\0\0\0\0\x10"
UNKNOWN = b"\0\0\0\x42\0\0\0\0\0"
EMPTY_DATA = b"\0\0\0\0\0\0\0\0\x01"


@pytest.fixture
async def port() -> AsyncIterator[int]:
    async with serving(HTTP2, Crowd()) as port:
        yield port


async def test_an_answer_does_not_wait_for_the_client_to_acknowledge_the_one_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[tuple[int, int, int]] = []
    really = socket.socket.setsockopt

    def setsockopt(own: object, *given: int) -> None:
        asked.append(given)  # type: ignore[arg-type]
        really(own, *given)  # type: ignore[call-overload]

    async with serving(HTTP2, Crowd()) as port:
        monkeypatch.setattr(socket.socket, "setsockopt", setsockopt)
        assert await is_served(port)
    wanted = (socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    assert asked.count(wanted) == 2  # once by the client, once by the server


def opened() -> tuple[h2.connection.H2Connection, bytes]:
    connection = h2.connection.H2Connection(h2.config.H2Configuration(header_encoding=None))
    connection.initiate_connection()
    return connection, connection.data_to_send()


GET = [(":method", "GET"), (":path", "/3"), (":scheme", "http"), (":authority", "localhost")]


async def answered(client: Client, connection: h2.connection.H2Connection) -> bool:
    """Return whether an answer comes before the connection ends."""
    while data := await client.reader.read(1 << 16):
        for event in connection.receive_data(data):
            if isinstance(event, h2.events.ResponseReceived):
                return True
    return False


async def test_requests_of_http2_are_answered(port: int) -> None:
    connection, preface = opened()
    async with clients(port) as (client,):
        for stream in (1, 3, 5):
            connection.send_headers(stream, GET, end_stream=True)
            await client.send(preface + connection.data_to_send())
            preface = b""
            assert await answered(client, connection)


@pytest.mark.parametrize(
    "flood",
    [PING, SETTINGS, PRIORITY, EMPTY_DATA, UNKNOWN],
    ids=["ping", "settings", "priority", "empty data", "unknown"],
)
async def test_floods_of_frames_end_their_connection(port: int, flood: bytes) -> None:
    _, preface = opened()
    async with clients(port) as (client,):
        await client.send(preface + flood * (IDLE_FRAMES_MAX + 100))
        await client.ended()
        assert await is_served(port)


async def test_a_flood_ends_its_connection_although_a_request_is_under_way() -> None:
    begun = asyncio.Event()

    async def never(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"] == "/3":
            begun.set()
            await asyncio.Event().wait()
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    connection, preface = opened()
    async with serving(HTTP2, Crowd(), never) as port, clients(port) as (client,):
        connection.send_headers(1, GET, end_stream=True)
        await client.send(preface + connection.data_to_send())
        await begun.wait()
        await client.send(PING * (IDLE_FRAMES_MAX + 100))
        await client.ended()


async def test_many_requests_whose_bodies_end_by_an_empty_frame_are_answered(port: int) -> None:
    connection, preface = opened()
    asked = [(":method", "POST"), *GET[1:]]
    async with clients(port) as (client,):
        for stream in range(1, 2 * IDLE_FRAMES_MAX + 100, 2):
            connection.send_headers(stream, asked)
            connection.send_data(stream, b"a")
            connection.send_data(stream, b"", end_stream=True)
            await client.send(preface + connection.data_to_send())
            preface = b""
            assert await answered(client, connection)


async def test_requests_that_are_reset_at_once_end_their_connection(port: int) -> None:
    connection, preface = opened()
    async with clients(port) as (client,):
        await client.send(preface)
        for stream in range(1, 2 * RESETS_MAX + 20, 2):
            connection.send_headers(stream, GET)
            connection.reset_stream(stream)
        for _ in range(2):
            await client.send(connection.data_to_send())
            for stream in range(stream + 2, stream + 2 * RESETS_MAX, 2):  # noqa: B020  goes on
                connection.send_headers(stream, GET)
                connection.reset_stream(stream)
        await client.ended()
        assert await is_served(port)


async def test_a_body_that_comes_after_its_answer_ends_no_other_request() -> None:
    goes_on = asyncio.Event()

    async def early(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] == "GET":
            await goes_on.wait()
        await send({"type": "http.response.start", "status": 403, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    connection, preface = opened()
    async with serving(HTTP2, Crowd(), early) as port, clients(port) as (client,):
        connection.send_headers(1, GET, end_stream=True)
        connection.send_headers(3, [(":method", "POST"), *GET[1:]])
        await client.send(preface + connection.data_to_send())
        assert await answered(client, connection)
        connection.send_data(3, b"a" * 10_000)
        connection.send_data(3, b"a", end_stream=True)
        await client.send(connection.data_to_send())
        await asyncio.sleep(0.05)
        goes_on.set()
        assert await answered(client, connection)


async def test_a_header_list_that_does_not_end_ends_its_connection(port: int) -> None:
    _, preface = opened()
    async with clients(port) as (client,):
        begun = b"\0\0\x01\x01\0\0\0\0\x01\x82"
        more = b"\0\x40\0\x09\0\0\0\0\x01" + b"\x82" * 0x4000
        await client.send(preface + begun + more * 100)
        await client.ended()
        assert await is_served(port)


async def test_too_many_requests_at_once_end_their_connection(port: int) -> None:
    connection, preface = opened()
    async with clients(port) as (client,):
        heads = b"".join(
            b"\0\0\x04\x01\x04"
            + stream.to_bytes(4)
            + b"\x82\x84\x86\x01\x09localhost"[:3]
            + b"\x84"
            for stream in range(1, 1000, 2)
        )
        await client.send(preface + heads)
        await client.ended()
        assert await is_served(port)
        del connection


async def test_a_path_that_is_no_text_ends_its_connection(port: int) -> None:
    connection, preface = opened()
    async with clients(port) as (client,):
        connection.send_headers(1, [*GET[:1], (b":path", b"/\xff"), *GET[2:]], end_stream=True)
        await client.send(preface + connection.data_to_send())
        await client.ended()
        assert await is_served(port)


async def test_a_web_socket_takes_no_endless_message(port: int) -> None:
    async with clients(port) as (client,):
        await client.send(
            b"GET /ws HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
            b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
        )
        assert (await client.head()).startswith(b"HTTP/1.1 101")
        await client.send(b"\x01\xfe\xff\xff" + bytes(4) + bytes(65535))
        for _ in range(100):
            await client.send(b"\x00\xfe\xff\xff" + bytes(4) + bytes(65535))
        await client.ended()
        assert await is_served(port)


async def test_a_web_socket_of_http2_takes_no_endless_message(port: int) -> None:
    connection, preface = opened()
    async with clients(port) as (client,):
        await client.send(preface)
        asked = [(":method", "CONNECT"), (":protocol", "websocket"), (":path", "/ws"), *GET[2:]]
        connection.send_headers(1, [*asked, ("sec-websocket-version", "13")])
        await client.send(connection.data_to_send())
        assert await answered(client, connection)
        part = b"\x00\xfe\x3f\x00" + bytes(4) + bytes(0x3F00)
        sent = b"\x01" + part[1:]
        for _ in range(100):
            while connection.local_flow_control_window(1) < len(sent):
                data = await client.reader.read(1 << 16)
                if not data:
                    return
                connection.receive_data(data)
            connection.send_data(1, sent)
            sent = part
            await client.send(connection.data_to_send())
        pytest.fail("all of it was taken")


async def test_an_upgrade_with_settings_that_are_none_ends_its_connection(port: int) -> None:
    async with clients(port) as (client,):
        await client.send(
            b"GET /3 HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade, HTTP2-Settings\r\n"
            b"Upgrade: h2c\r\nHTTP2-Settings: AAMAAABkAA!\r\n\r\n"
        )
        await client.ended()
        assert await is_served(port)


# --- counting frames -------------------------------------------------------------------------


class Clock:
    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


@pytest.mark.parametrize("step", [1, 7, 9, 24, 1000])
def test_frames_are_counted_at_every_cut(step: int) -> None:
    frames = PREFACE + (PING + EMPTY_DATA) * (IDLE_FRAMES_MAX // 2)
    budget = FrameBudget(Clock())
    for start in range(0, len(frames), step):
        budget.take(frames[start : start + step], is_http2=start > 0)
    with pytest.raises(TooManyFramesError):
        budget.take(PING, is_http2=True)


def test_frames_may_come_for_ever_if_slowly() -> None:
    clock = Clock()
    budget = FrameBudget(clock)
    budget.take(PREFACE, is_http2=True)
    for _ in range(20 * IDLE_FRAMES_MAX):
        clock.now_s += 2 * WINDOW_S / IDLE_FRAMES_MAX
        budget.take(PING, is_http2=True)


def test_frames_without_a_preface_are_refused() -> None:
    budget = FrameBudget(Clock())
    budget.take(b"GET / HTTP/1.1\r\nUpgrade: h2c\r\n\r\n", is_http2=False)
    with pytest.raises(TooManyFramesError):
        budget.take(PING, is_http2=True)
