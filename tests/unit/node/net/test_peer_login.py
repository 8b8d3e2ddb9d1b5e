"""The asking side of logins: repeated before their end, refused without a storm of tries."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest

from barnabas.base.clock import SystemClock
from barnabas.base.network import ListenerOptions, Part
from barnabas.node.broker.context import RequestContext
from barnabas.node.broker.login.gate import ListenerLogins
from barnabas.node.broker.responses import respond
from barnabas.node.net.client import Peer
from barnabas.node.net.connection import Connection, Gate, Reply
from barnabas.node.net.dialing import Dialing
from barnabas.node.net.login import Login, LoginError, PlainLogin, ScramLogin
from barnabas.node.net.server import Server, ServerLimits
from barnabas.node.net.tcp import TcpNetwork
from barnabas.node.security.principal import ANONYMOUS
from barnabas.node.security.sasl.mechanism import Exchange
from barnabas.node.security.sasl.plain import PlainMechanism
from barnabas.protocol.apis import APIS, ApiKey
from barnabas.protocol.frames import decode_request_header
from barnabas.protocol.messages.connections import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
)
from barnabas.protocol.messages.metadata import DescribeClusterRequest, DescribeClusterResponse
from support.eventually import eventually
from support.shifted_clock import ShiftedClock

SERVED = (ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE, ApiKey.DESCRIBE_CLUSTER)


class CountedPlain(PlainMechanism):
    """Counts logins."""

    begun = 0

    def begin(self) -> Exchange:
        self.begun += 1
        return super().begin()


def versions(_: RequestContext, __: ApiVersionsRequest) -> ApiVersionsResponse:
    return ApiVersionsResponse(
        api_keys=[
            ApiVersion(api_key=key, min_version=0, max_version=APIS[key].max_stable_version)
            for key in SERVED
        ]
    )


def context_of(connection: Connection, frame: bytearray) -> RequestContext:
    """Return the context of any request."""
    header, _ = decode_request_header(frame)
    return RequestContext(
        header.request_api_key,
        header.request_api_version,
        header.correlation_id,
        None,
        connection,
        ANONYMOUS,
    )


def answer(connection: Connection, frame: bytearray) -> Sequence[Part] | Reply:
    context = context_of(connection, frame)
    return respond(context, DescribeClusterResponse(cluster_id="known"))


@asynccontextmanager
async def listening(clock: SystemClock, **options: Any) -> AsyncIterator[tuple[CountedPlain, int]]:
    """A listener that wants PLAIN, and its port."""
    plain = CountedPlain({"alice": b"alice-secret"})
    logins = ListenerLogins(
        listener_name="SECURE",
        clock=clock,
        mechanisms={"PLAIN": plain},
        service=answer,
        answer_versions=versions,
        failure_delay_ms=0,
        **options,
    )
    server = Server(TcpNetwork(), clock, answer, ServerLimits())
    port = server.listen("127.0.0.1", 0, ListenerOptions("SECURE"), Gate(logins, 1000))
    server.start()
    try:
        yield plain, port
    finally:
        server.close()


def peer_to(
    port: int,
    clock: SystemClock,
    login: Login | None = None,
    backoff: Callable[[int], int] = lambda _: 0,
) -> Peer:
    login = login or PlainLogin("alice", "alice-secret")
    return Peer(
        TcpNetwork(),
        clock,
        "127.0.0.1",
        port,
        client_id="test",
        dialing=Dialing(login=login, reconnect_backoff_ms=backoff),
    )


async def test_a_login_is_repeated_when_something_is_asked_near_its_end() -> None:
    clock = ShiftedClock()
    lost = []
    async with listening(clock, reauthentication_ms={"PLAIN": 60_000}) as (plain, port):
        peer = peer_to(port, clock)
        peer.on_closed = lambda: lost.append(1)
        await peer.send(DescribeClusterRequest())
        clock.shift_ms = 50_000
        await peer.send(DescribeClusterRequest())
        assert plain.begun == 1
        for times in (2, 3):
            clock.shift_ms += 52_000
            requests = [peer.send(DescribeClusterRequest()) for _ in range(5)]
            answers = await asyncio.gather(*requests)
            assert [each.cluster_id for each in answers] == ["known"] * 5
            assert plain.begun == times
        peer.close()
    assert not lost


async def test_a_second_login_that_fails_ends_the_connection() -> None:
    clock = ShiftedClock()
    async with listening(clock, reauthentication_ms={"PLAIN": 60_000}) as (plain, port):
        peer = peer_to(port, clock)
        await peer.send(DescribeClusterRequest())
        plain._users = {}
        clock.shift_ms = 52_000
        with pytest.raises(LoginError, match="Invalid username or password"):
            await peer.send(DescribeClusterRequest())
        assert not peer.is_connected
        peer.close()


class SlowLogin(PlainLogin):
    """Never has what it shows a second time."""

    def __init__(self) -> None:
        super().__init__("alice", "alice-secret")
        self.times = 0
        self.asked_again = asyncio.Event()

    async def begin(self) -> Any:
        self.times += 1
        if self.times > 1:
            self.asked_again.set()
            await asyncio.Event().wait()
        return await super().begin()


async def test_a_connection_that_closes_leaves_no_second_login_behind() -> None:
    clock, login = ShiftedClock(), SlowLogin()
    async with listening(clock, reauthentication_ms={"PLAIN": 60_000}) as (_, port):
        before = asyncio.all_tasks()
        peer = peer_to(port, clock, login)
        await peer.send(DescribeClusterRequest())
        clock.shift_ms = 52_000
        asked = asyncio.ensure_future(peer.send(DescribeClusterRequest()))
        await login.asked_again.wait()
        peer.close()
        await asyncio.wait((asked,))
        assert isinstance(asked.exception(), ConnectionError)
        for _ in range(3):
            await asyncio.sleep(0)
        assert asyncio.all_tasks() <= before | {asked}


REFUSED: dict[str, tuple[Login, str]] = {
    "password": (
        PlainLogin("alice", "wrong-secret"),
        "by PLAIN failed: Authentication failed: Invalid username or password",
    ),
    "mechanism": (
        ScramLogin("SCRAM-SHA-256", "alice", "wrong-secret", lambda: "nonce"),
        "refused the login by SCRAM-SHA-256; its mechanisms are: PLAIN",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
async def test_who_is_refused_says_so_once_and_rests(
    name: str, caplog: pytest.LogCaptureFixture
) -> None:
    login, text = REFUSED[name]
    rests: list[int] = []

    def rest(failures: int) -> int:
        rests.append(failures)
        return 1

    clock = SystemClock()
    async with listening(clock) as (_, port):
        peer = peer_to(port, clock, login, rest)
        for _ in range(3):
            with pytest.raises(LoginError, match=text):
                await peer.send(DescribeClusterRequest())
        peer.close()
    lines = [
        record.getMessage()
        for record in caplog.records
        if record.name == "barnabas.node.net.client"
    ]
    assert len(lines) == 1
    assert text in lines[0]
    assert "secret" not in caplog.text
    assert len(rests) == 3


async def test_a_listener_without_logins_is_told_apart(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.ERROR)

    def plain(connection: Connection, frame: bytearray) -> Sequence[Part] | Reply:
        context = context_of(connection, frame)
        return respond(context, versions(context, ApiVersionsRequest()))

    clock = SystemClock()
    server = Server(TcpNetwork(), clock, plain, ServerLimits())
    port = server.listen("127.0.0.1", 0, ListenerOptions("OPEN"))
    server.start()
    peer = peer_to(port, clock)
    with pytest.raises(ConnectionError):
        await peer.send(DescribeClusterRequest())
    peer.close()
    server.close()


async def test_who_never_logs_in_is_closed_however_busy_it_is() -> None:
    """Half a frame comes again and again, which is no login."""
    clock = SystemClock()
    limits = ServerLimits(idle_max_ms=100)
    server = Server(TcpNetwork(), clock, answer, limits)
    logins = ListenerLogins(
        listener_name="SECURE",
        clock=clock,
        mechanisms={},
        service=answer,
        answer_versions=versions,
    )
    port = server.listen("127.0.0.1", 0, ListenerOptions("SECURE"), Gate(logins, 1 << 20))
    server.start()
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write((1 << 20).to_bytes(4, "big"))

    def has_ended() -> bool:
        writer.write(b"x")
        return reader.at_eof() or isinstance(reader.exception(), ConnectionResetError)

    try:
        await eventually(has_ended, "the end of the connection")
    finally:
        writer.close()
        server.close()
    assert server.connection_count == 0
