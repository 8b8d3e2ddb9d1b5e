"""The HTTP server that the services stand on, and clients that send what they like."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

from starlette.types import ASGIApp, Receive, Scope, Send

from barnabas.web.crowd import Crowd
from barnabas.web.listening import BoundListener, ListenAddress
from barnabas.web.server import ServerThread, WebServer
from support.patience import PATIENCE_S

HTTP2 = "HTTP/1.1 and HTTP/2"
SERVERS = ("HTTP/1.1", HTTP2)


async def sizes(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer `/n` with n bytes, or how long the body was."""
    if scope["type"] == "websocket":
        await receive()
        await send({"type": "websocket.accept"})
        while (await receive())["type"] != "websocket.disconnect":
            pass
        return
    size, more = 0, True
    while more:
        message = await receive()
        if message["type"] != "http.request":
            return
        size += len(message.get("body", b""))
        more = message.get("more_body", False)
    wanted = scope["path"].strip("/")
    body = b"x" * int(wanted) if wanted.isdigit() else b"%d" % size
    length = (b"content-length", b"%d" % len(body))
    await send({"type": "http.response.start", "status": 200, "headers": [length]})
    await send({"type": "http.response.body", "body": body})


@asynccontextmanager
async def serving(
    kind: str, crowd: Crowd, app: ASGIApp = sizes, tls: ssl.SSLContext | None = None
) -> AsyncIterator[int]:
    """Serve on loopback; gives the port."""
    listener = BoundListener(ListenAddress("127.0.0.1", 0, tls is not None))
    server = WebServer(app, [listener], crowd, tls=tls, speaks_http2=kind == HTTP2)
    await server.start()
    try:
        yield listener.listener.port
    finally:
        await server.stop()


@contextmanager
def served(app: ASGIApp) -> Iterator[str]:
    """Serve on loopback in a separate thread; yields the URL."""
    listener = BoundListener(ListenAddress("127.0.0.1", 0))
    thread = ServerThread(WebServer(app, [listener]), "served")
    thread.start()
    try:
        yield str(listener.listener)
    finally:
        thread.close()


class Client:
    """A connection that sends what it likes."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    @classmethod
    async def of(cls, port: int) -> Client:
        return cls(*await asyncio.open_connection("127.0.0.1", port))

    async def send(self, data: bytes) -> None:
        """Send; the server may have closed the connection in between."""
        try:
            self.writer.write(data)
            await self.writer.drain()
        except ConnectionError:
            pass

    async def head(self) -> bytes:
        """The head of an answer; empty if the connection ends first."""
        async with asyncio.timeout(PATIENCE_S):
            try:
                return await self.reader.readuntil(b"\r\n\r\n")
            except (asyncio.IncompleteReadError, ConnectionError):
                return b""

    async def ended(self) -> bytes:
        """All that comes until the server ends the connection."""
        async with asyncio.timeout(PATIENCE_S):
            found = b""
            try:
                while data := await self.reader.read(1 << 16):
                    found += data
            except ConnectionError:
                pass
            return found

    def close(self) -> None:
        self.writer.transport.abort()


@asynccontextmanager
async def clients(port: int, count: int = 1) -> AsyncIterator[list[Client]]:
    """So many connections."""
    found = [await Client.of(port) for _ in range(count)]
    try:
        yield found
    finally:
        for client in found:
            client.close()


async def is_served(port: int) -> bool:
    """Return whether a client that comes now gets its answer."""
    client = await Client.of(port)
    try:
        await client.send(b"GET /3 HTTP/1.1\r\nHost: localhost\r\n\r\n")
        return (await client.head()).startswith(b"HTTP/1.1 200")
    finally:
        client.close()
