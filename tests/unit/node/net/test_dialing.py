"""Sockets as the configuration asks for them, and limits on opening connections."""

import asyncio
import socket
import struct
import sys
from collections.abc import Awaitable, Callable
from random import Random
from typing import Any

import pytest

from barnabas.base.backoff import ExponentialBackoff
from barnabas.base.clock import SystemClock
from barnabas.base.errors import ConfigError
from barnabas.base.network import ListenerOptions, SocketOptions, StreamHandler, Transport
from barnabas.node.config.node_config import NodeConfig
from barnabas.node.net.client import Peer
from barnabas.node.net.dialing import Dialing, buffer_bytes, dialing_of, listening_options
from barnabas.node.net.tcp import BUFFER_BYTES_COUNTED, TcpListener, TcpNetwork
from barnabas.node.net.tcp_transport import TcpTransport
from barnabas.protocol.messages.metadata import DescribeClusterRequest
from support.patience import PATIENCE_S

TCP_INFO_BACKLOG = 28
"""Position of a listening socket's backlog in struct tcp_info (tcpi_sacked)."""


class Ends:
    """A source of randomness that draws one end of its range."""

    def __init__(self, *, high: bool) -> None:
        self.high = high
        self.draws = 0

    def randrange(self, stop: int, /) -> int:
        self.draws += 1
        return stop - 1 if self.high else 0


# first, max, failures -> shortest and longest time. From Kafka's formula,
# random(0.8, 1.2) * first * 2 ** failures, where the power stops at max.
TIMES = {
    "the defaults, at first": (10_000, 30_000, 0, 8_000, 12_000),
    "once failed": (10_000, 30_000, 1, 16_000, 24_000),
    "the growth ends, and no jitter leads beyond": (10_000, 30_000, 2, 24_000, 30_000),
    "for ever": (10_000, 30_000, 10_000, 24_000, 30_000),
    "small ones grow as well": (100, 1_000, 3, 640, 960),
    "no room to grow": (10_000, 10_000, 5, 10_000, 10_000),
    "a maximum below the first": (10_000, 4_000, 0, 4_000, 4_000),
}


@pytest.mark.parametrize("case", TIMES)
def test_times_grow_with_failures(case: str) -> None:
    first_ms, max_ms, failures, shortest_ms, longest_ms = TIMES[case]
    low, high = Ends(high=False), Ends(high=True)
    shortest = ExponentialBackoff(first_ms, max_ms, low).after(failures)
    longest = ExponentialBackoff(first_ms, max_ms, high).after(failures)
    assert abs(shortest - shortest_ms) <= 1
    assert abs(longest - longest_ms) <= 1
    assert longest <= max_ms
    is_constant = shortest_ms == longest_ms
    assert low.draws == (0 if is_constant else 1)


def test_jitter_lies_between_its_ends() -> None:
    backoff = ExponentialBackoff(1_000, 8_000, Random(1))
    times = [backoff.after(1) for _ in range(500)]
    assert min(times) < 1_700
    assert max(times) > 2_300
    assert all(1_600 <= time_ms <= 2_400 for time_ms in times)


# -- which options come out of the configuration


def config_with(**values: str) -> NodeConfig:
    return NodeConfig.from_properties(
        {
            "process.roles": "broker,controller",
            "node.id": "1",
            "listeners": "PLAINTEXT://localhost:9292,CONTROLLER://localhost:9293",
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.voters": "1@localhost:9293",
            **{name.replace("_", "."): value for name, value in values.items()},
        }
    )


def test_options_are_those_that_were_set() -> None:
    config = config_with(
        socket_receive_buffer_bytes="70000",
        socket_send_buffer_bytes="80000",
        socket_listen_backlog_size="7",
        replica_socket_receive_buffer_bytes="90000",
    )
    assert listening_options(config) == SocketOptions(70_000, 80_000, 7)
    assert dialing_of(config, Random()).options == SocketOptions(70_000)
    assert dialing_of(config, Random(), None).options == SocketOptions()
    replica_key = "replica.socket.receive.buffer.bytes"
    assert dialing_of(config, Random(), replica_key).options == SocketOptions(90_000)


def test_the_system_chooses_where_it_is_told_to_and_where_nothing_is_set() -> None:
    key = "socket.receive.buffer.bytes"
    assert buffer_bytes(config_with(socket_receive_buffer_bytes="-1"), key) is None
    assert listening_options(config_with()) == SocketOptions()


def test_the_limit_of_opening_a_connection_is_configured() -> None:
    config = config_with(
        socket_connection_setup_timeout_ms="300", socket_connection_setup_timeout_max_ms="500"
    )
    limit_ms = dialing_of(config, Ends(high=False)).setup_timeout_ms
    assert [limit_ms(failures) for failures in range(3)] == [240, 400, 400]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("socket_receive_buffer_bytes", "0"),
        ("socket_send_buffer_bytes", "-2"),
        ("replica_socket_receive_buffer_bytes", "0"),
        ("socket_connection_setup_timeout_ms", "0"),
        ("socket_connection_setup_timeout_max_ms", "-1"),
        ("controller_socket_timeout_ms", "0"),
    ],
)
def test_what_no_socket_can_have_is_refused(key: str, value: str) -> None:
    with pytest.raises(ConfigError, match=key.replace("_", ".")):
        config_with(**{key: value})


# -- real sockets


class Silent:
    """Takes what comes."""

    def __init__(self, transport: Transport) -> None:
        self.transport = transport
        self._scratch = memoryview(bytearray(64))

    def get_buffer(self) -> memoryview:
        return self._scratch

    def received(self, size_bytes: int) -> None:
        """Nothing is expected."""

    def drained(self) -> None:
        """Nothing was sent."""

    def closed(self, error: OSError | None) -> None:
        """It was only a look."""


def buffers(transport: Transport) -> tuple[int, int]:
    assert isinstance(transport, TcpTransport)
    sock = transport._sock
    return (
        sock.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF) // BUFFER_BYTES_COUNTED,
        sock.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF) // BUFFER_BYTES_COUNTED,
    )


async def both_ends(
    listening: SocketOptions, connecting: SocketOptions
) -> tuple[tuple[int, int], tuple[int, int]]:
    """Buffers (receive, send) of an accepted connection, and of the one that was opened."""
    accepted: asyncio.Future[Transport] = asyncio.get_running_loop().create_future()

    def accept(transport: Transport) -> StreamHandler:
        accepted.set_result(transport)
        return Silent(transport)

    network = TcpNetwork()
    listener = network.listen("127.0.0.1", 0, accept, ListenerOptions(socket=listening))
    listener.start()
    near = await network.connect("127.0.0.1", listener.port, Silent, connecting)
    far = await asyncio.wait_for(accepted, 10)
    found = buffers(far), buffers(near)
    far.close()
    near.close()
    listener.close()
    return found


async def test_buffers_of_sockets_are_as_asked() -> None:
    (received, sent), (near_received, _) = await both_ends(
        SocketOptions(receive_buffer_bytes=50_000, send_buffer_bytes=60_000),
        SocketOptions(receive_buffer_bytes=40_000),
    )
    assert (received, sent, near_received) == (50_000, 60_000, 40_000)


async def test_buffers_are_the_systems_where_nothing_is_asked() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        plain = socket.create_connection(server.getsockname())
        other, _ = server.accept()
    (received, _), (near_received, _) = await both_ends(SocketOptions(), SocketOptions())
    # On loopback every connection begins with the same buffers.
    assert received * BUFFER_BYTES_COUNTED == other.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF)
    assert near_received * BUFFER_BYTES_COUNTED == plain.getsockopt(
        socket.SOL_SOCKET, socket.SO_RCVBUF
    )
    plain.close()
    other.close()


@pytest.mark.skipif(sys.platform != "linux", reason="other systems refuse it")
async def test_a_buffer_that_the_system_does_not_grant_is_told_of(
    caplog: pytest.LogCaptureFixture,
) -> None:
    options = SocketOptions(receive_buffer_bytes=2**31 - 1, send_buffer_bytes=10_000)
    listener = TcpNetwork().listen("127.0.0.1", 0, Silent, ListenerOptions(socket=options))
    assert "of 2147483647 bytes of buffer the system grants" in caplog.text
    assert "net.core.rmem_max" in caplog.text
    assert "wmem_max" not in caplog.text
    listener.close()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells the backlog")
async def test_the_backlog_is_as_asked() -> None:
    for options, expected in ((SocketOptions(backlog=7), 7), (SocketOptions(), 1024)):
        listener = TcpNetwork().listen("127.0.0.1", 0, Silent, ListenerOptions(socket=options))
        assert isinstance(listener, TcpListener)
        info = listener._sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 104)
        (backlog,) = struct.unpack_from("=I", info, TCP_INFO_BACKLOG)
        assert backlog == min(expected, _backlog_max())
        listener.close()


def _backlog_max() -> int:
    with open("/proc/sys/net/core/somaxconn", encoding="ascii") as file:
        return int(file.read())


# -- a peer that cannot be reached


class Deaf:
    """A network that does with each attempt what the test says."""

    def __init__(self) -> None:
        self.attempts: list[Callable[[], Awaitable[None]]] = []
        self.options: list[SocketOptions] = []

    async def connect(
        self,
        host: str,
        port: int,
        factory: Callable[[Transport], StreamHandler],
        options: SocketOptions,
        _tls: object,
    ) -> Any:
        self.options.append(options)
        await self.attempts.pop(0)()
        return Lost(factory)


class Lost:
    """A connection that stands, and is gone at the first word."""

    peer_host, peer_port = "nowhere", 0
    tls = None

    def __init__(self, factory: Callable[[Transport], StreamHandler]) -> None:
        self.handler = factory(self)  # type: ignore[arg-type]  # only what the peer uses of it

    def send(self, parts: object) -> None:
        asyncio.get_running_loop().call_soon(self.handler.closed, None)

    def close(self) -> None:
        """It is gone already."""


async def hang() -> None:
    await asyncio.get_running_loop().create_future()


async def refuse() -> None:
    raise ConnectionRefusedError


async def stand() -> None:
    """It stands."""


async def test_failures_in_a_row_are_counted_until_a_connection_stands() -> None:
    asked: list[int] = []

    def timeout_ms(failures: int) -> int:
        asked.append(failures)
        return 20

    network = Deaf()
    options = SocketOptions(receive_buffer_bytes=12_345)
    peer = Peer(
        network,  # type: ignore[arg-type]  # it only connects
        SystemClock(),
        "nowhere",
        1,
        client_id="test",
        dialing=Dialing(timeout_ms, options),
    )
    network.attempts = [hang, refuse, stand, refuse, hang]
    failures = (TimeoutError, ConnectionRefusedError, ConnectionResetError)
    seen = []
    while network.attempts:
        with pytest.raises(failures) as raised:
            await peer.send(DescribeClusterRequest())
        seen.append(raised.type)
    expected = [TimeoutError, ConnectionRefusedError, ConnectionResetError]
    assert seen == [*expected, ConnectionRefusedError, TimeoutError]
    # Events after the third connection was made do not count.
    assert asked == [0, 1, 2, 0, 1]
    assert network.options == [options] * 5
    peer.close()


async def test_a_callers_own_limit_wins_where_it_is_shorter() -> None:
    network = Deaf()
    network.attempts = [hang]
    peer = Peer(
        network,  # type: ignore[arg-type]  # it only connects
        SystemClock(),
        "nowhere",
        1,
        client_id="test",
        connect_timeout_ms=1,
        dialing=Dialing(lambda _: 3_600_000),
    )
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(peer.connect(), PATIENCE_S)
    peer.close()


async def test_a_socket_whose_connecting_is_called_off_is_closed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    loop = asyncio.get_running_loop()
    sockets: list[socket.socket] = []
    is_connecting = asyncio.Event()

    async def sock_connect(sock: socket.socket, _: object) -> None:
        sockets.append(sock)
        is_connecting.set()
        await loop.create_future()

    monkeypatch.setattr(loop, "sock_connect", sock_connect)
    connecting = asyncio.ensure_future(
        TcpNetwork().connect("127.0.0.1", 1, lambda _: pytest.fail("it is connected"))
    )
    await is_connecting.wait()
    connecting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await connecting
    assert [sock.fileno() for sock in sockets] == [-1]
