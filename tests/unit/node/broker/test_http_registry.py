"""The registry over real HTTP, on loopback."""

from __future__ import annotations

import asyncio
import base64
import contextlib
from collections.abc import Iterator

import pytest

from barnabas.node.broker.schemas import http_registry
from barnabas.node.broker.schemas.http_registry import HttpRegistry
from barnabas.node.broker.schemas.registry import (
    RECORD_NAME_STRATEGY,
    TOPIC_RECORD_NAME_STRATEGY,
    Claim,
    NoAnswerError,
)
from barnabas.node.log.config import TOPIC_NAME_STRATEGY
from support.fake_registry import FakeRegistry
from support.schema_world import id_of

ORDER = '{"type":"record","name":"Order","namespace":"shop","fields":[]}'


@pytest.fixture
def registry() -> Iterator[FakeRegistry]:
    with FakeRegistry() as fake:
        fake.register(1, "t-value", "t-key")
        fake.register(2, "shop.Order", "t-shop.Order", schema=ORDER)
        fake.register(3, "Title", schema='{"title":"Title"}', kind="JSON")
        fake.register(4, "p.M", schema="package p; message M {}", kind="PROTOBUF")
        yield fake


def claim(number: int, strategy: str = TOPIC_NAME_STRATEGY, topic: str = "t") -> Claim:
    return Claim(id_of(number), strategy, topic, is_key=False)


@pytest.mark.parametrize(
    ("asked", "is_true"),
    [
        (claim(1), True),
        (claim(1)._replace(is_key=True), True),
        (claim(1, topic="other"), False),
        (claim(7), False),
        (claim(2, RECORD_NAME_STRATEGY), True),
        (claim(2, TOPIC_RECORD_NAME_STRATEGY), True),
        (claim(2, TOPIC_RECORD_NAME_STRATEGY, "other"), False),
        (claim(1, RECORD_NAME_STRATEGY), False),
        (claim(7, RECORD_NAME_STRATEGY), False),
        (claim(3, RECORD_NAME_STRATEGY), True),
        (claim(4, RECORD_NAME_STRATEGY), True),
    ],
)
async def test_claims(registry: FakeRegistry, asked: Claim, is_true: bool) -> None:
    assert await HttpRegistry([registry.url], None).holds(asked) is is_true


async def test_guids(registry: FakeRegistry) -> None:
    client = HttpRegistry([registry.url + "/"], None)
    identity = b"\x01" + registry.guid(1).bytes
    assert await client.holds(claim(1)._replace(identity=identity))
    assert not await client.holds(claim(1)._replace(identity=b"\x01" + bytes(16)))


async def test_another_instance_is_asked_and_then_first(registry: FakeRegistry) -> None:
    with FakeRegistry() as broken:
        broken.answer = (500, b'{"error_code":50001}')
        client = HttpRegistry([broken.url, registry.url], None)
        assert await client.holds(claim(1))
        assert await client.holds(claim(1))
        assert len(broken.asked) == 1


async def test_credentials_are_sent_and_never_told(registry: FakeRegistry) -> None:
    client = HttpRegistry([registry.url], "user:pass:wörd")
    assert await client.holds(claim(1))
    sent = base64.b64encode("user:pass:wörd".encode()).decode()
    assert registry.authorizations == [f"Basic {sent}"]
    registry.answer = (401, b'{"error_code":401}')
    with pytest.raises(NoAnswerError) as caught:
        await client.holds(claim(1))
    assert "401" in str(caught.value)
    assert "pass" not in str(caught.value)
    assert sent not in str(caught.value)


@pytest.mark.parametrize(
    "answer",
    [
        (200, b"<html/>"),
        (200, b"{}"),
        (200, b"7"),
        (200, b"null"),
        (200, b"[" * 100_000),
        (200, b"\xff"),
        (204, b""),
        (302, b""),
        (404, b"<html/>"),
        (404, b'{"error_code":404}'),
        (404, b"[]"),
        (500, b"{}"),
    ],
)
@pytest.mark.parametrize("strategy", [TOPIC_NAME_STRATEGY, RECORD_NAME_STRATEGY])
async def test_what_is_no_answer(
    registry: FakeRegistry, answer: tuple[int, bytes], strategy: str
) -> None:
    registry.answer = answer
    if strategy == RECORD_NAME_STRATEGY and answer[1] == b"{}" and answer[0] == 200:
        assert not await HttpRegistry([registry.url], None).holds(claim(1, strategy))
        return
    with pytest.raises(NoAnswerError):
        await HttpRegistry([registry.url], None).holds(claim(1, strategy))


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"nonsense\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n[",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 1000 + b"\r\n[]",
        b"HTTP/1.1 200 OK\r\n\r\n" + b" " * 2_000_000,
    ],
)
async def test_what_is_no_http(sent: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_registry, "ANSWER_SIZE_BYTES_MAX", 1_000_000)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):
            await reader.readuntil(b"\r\n\r\n")
            writer.write(sent)
            await writer.drain()
            writer.close()
            await writer.wait_closed()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        with pytest.raises(NoAnswerError):
            await HttpRegistry([f"http://127.0.0.1:{port}"], None).holds(claim(1))


async def test_chunks_are_read() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        writer.write(b'5\r\n["t-v\r\n6\r\nalue"]\r\n0\r\n\r\n')
        writer.close()
        await writer.wait_closed()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        assert await HttpRegistry([f"http://127.0.0.1:{port}"], None).holds(claim(1))


async def test_nobody_listens_and_silence(
    registry: FakeRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_registry, "TIMEOUT_S", 0.05)
    registry.may_answer.clear()
    with pytest.raises(NoAnswerError, match="no answer in"):
        await HttpRegistry([registry.url], None).holds(claim(1))
    registry.may_answer.set()
    monkeypatch.undo()
    with FakeRegistry() as gone:
        pass
    with pytest.raises(NoAnswerError):
        await HttpRegistry([gone.url], None).holds(claim(1))
