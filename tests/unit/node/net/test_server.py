"""The server over real sockets: limits, idle connections, files sent as they lie on disk."""

import asyncio
import gc
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, closing, contextmanager, suppress
from pathlib import Path
from struct import pack, unpack
from typing import Any

import pytest

from barnabas.app.cluster import Cluster
from barnabas.base.clock import Clock, SystemClock
from barnabas.base.descriptors import DescriptorReserve
from barnabas.base.disk import FileRange
from barnabas.base.local_disk import LocalDisk
from barnabas.base.network import ListenerOptions, Part
from barnabas.base.peer_lines import LINES_MAX
from barnabas.node.net.connection import Connection, Reply
from barnabas.node.net.connection_quotas import ConnectionLimits, IpRates, ListenerLimits
from barnabas.node.net.frames import FrameReader
from barnabas.node.net.server import SILENT_MAX_MS, Server, ServerLimits
from barnabas.node.net.tcp import TcpNetwork
from barnabas.node.net.tcp_transport import TcpTransport
from sim.manual_clock import ManualClock
from support.patience import PATIENCE_S

TIMEOUT_S = PATIENCE_S
API_VERSIONS = bytes.fromhex("0012 0000 00000001 ffff")


def echo(connection: Connection, frame: bytearray) -> Sequence[Part]:
    return (pack(">i", len(frame)), frame)


def limited(**limits: Any) -> ServerLimits:
    return ServerLimits(connections=ConnectionLimits(**limits))


async def serving(
    limits: ServerLimits, service: object = echo, clock: Clock | None = None
) -> tuple[Server, int]:
    server = Server(TcpNetwork(), clock or SystemClock(), service, limits)  # type: ignore[arg-type]
    port = server.listen("127.0.0.1", 0, ListenerOptions("PLAINTEXT"))
    server.start()
    return server, port


async def ask(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, payload: bytes) -> bytes:
    writer.write(pack(">i", len(payload)) + payload)
    (size,) = unpack(">i", await asyncio.wait_for(reader.readexactly(4), TIMEOUT_S))
    return await reader.readexactly(size)


async def until(condition: Callable[[], bool]) -> None:
    loop = asyncio.get_running_loop()
    deadline = loop.time() + TIMEOUT_S
    while not condition():
        assert loop.time() < deadline
        await asyncio.sleep(0)  # nobody signals it


@asynccontextmanager
async def connected(
    port: int, limit: int = 1 << 16
) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=limit)
    try:
        yield reader, writer
    finally:
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()


async def is_closed(reader: asyncio.StreamReader) -> bool:
    try:
        return await asyncio.wait_for(reader.read(1), TIMEOUT_S) == b""
    except ConnectionResetError:
        return True


async def test_frames_of_every_size_are_answered() -> None:
    server, port = await serving(ServerLimits())
    async with connected(port) as (reader, writer):
        for size in (0, 1, 65_531, 65_532, 65_533, 3_000_000):
            assert await ask(reader, writer, b"x" * size) == b"x" * size
    server.close()


async def test_a_reader_that_is_slow_gets_everything() -> None:
    server, port = await serving(ServerLimits())
    payload = bytes(range(256)) * 40_000
    async with connected(port) as (reader, writer):
        for _ in range(8):
            writer.write(pack(">i", len(payload)) + payload)
        for _ in range(8):
            (size,) = unpack(">i", await asyncio.wait_for(reader.readexactly(4), TIMEOUT_S))
            assert await reader.readexactly(size) == payload
    server.close()


async def test_ranges_of_files_leave_as_they_lie_on_disk(tmp_path: Path) -> None:
    disk = LocalDisk()
    file = disk.open(str(tmp_path / "data"), create=True)
    data = bytes(range(256)) * 20_000
    file.append([data])

    def send_file(connection: Connection, frame: bytearray) -> Sequence[Part]:
        position, size = unpack(">ii", frame)
        head = pack(">i", size + 6)
        return (head, b"<<<", FileRange(file, position, size), memoryview(b">>>"))

    server, port = await serving(ServerLimits(), send_file)
    async with connected(port) as (reader, writer):
        for position, size in ((0, len(data)), (7, 1), (300_000, 4_000_000), (len(data) - 5, 5)):
            answer = await ask(reader, writer, pack(">ii", position, size))
            assert answer == b"<<<" + data[position : position + size] + b">>>"
        writer.write(pack(">iii", 8, len(data) - 5, 10))
        with pytest.raises((asyncio.IncompleteReadError, ConnectionResetError)):
            await asyncio.wait_for(reader.readexactly(4 + 16), TIMEOUT_S)
    server.close()
    file.close()
    disk.close()


async def test_connections_that_ask_nothing_make_room_when_descriptors_are_short() -> None:
    open_now = 0
    reserve = DescriptorReserve(limit_of_process=400, count=lambda: open_now)
    clock = ManualClock()

    def asked(connection: Connection, frame: bytearray) -> Sequence[Part]:
        connection.state = "known"
        return echo(connection, frame)

    server = Server(TcpNetwork(reserve), clock, asked, ServerLimits())
    port = server.listen("127.0.0.1", 0, ListenerOptions("PLAINTEXT"))
    server.start()
    async with connected(port) as first, connected(port) as silent:
        assert await ask(*first, b"hello") == b"hello"
        await until(lambda: server.connection_count == 2)
        open_now = 360
        clock.advance(SILENT_MAX_MS)
        async with connected(port) as waiting:
            assert await is_closed(silent[0])
            assert server.connection_count == 1
            assert await ask(*first, b"again") == b"again"
            open_now = 300
            assert await ask(*waiting, b"at last") == b"at last"
    server.close()


async def test_the_longest_idle_make_room_when_all_have_asked() -> None:
    open_now = 0
    reserve = DescriptorReserve(limit_of_process=400, count=lambda: open_now)
    clock = ManualClock()

    def asked(connection: Connection, frame: bytearray) -> Sequence[Part]:
        connection.state = "known"
        return echo(connection, frame)

    limits = ServerLimits(idle_max_ms=10_000)
    server = Server(TcpNetwork(reserve), clock, asked, limits)
    port = server.listen("127.0.0.1", 0, ListenerOptions("PLAINTEXT"))
    server.start()
    async with connected(port) as idle, connected(port) as busy:
        assert await ask(*idle, b"hello") == b"hello"
        for _ in range(3):
            assert await ask(*busy, b"hello") == b"hello"
            clock.advance(1000)
        assert await ask(*busy, b"hello") == b"hello"
        open_now = 360
        async with connected(port):
            assert await is_closed(idle[0])
            assert await ask(*busy, b"hello") == b"hello"
    server.close()


async def test_one_address_may_have_only_so_many_connections() -> None:
    server, port = await serving(limited(connections_per_ip_max=2))
    async with connected(port) as first:
        async with connected(port) as second:
            assert await ask(*first, b"hello") == b"hello"
            assert await ask(*second, b"hello") == b"hello"
            async with connected(port) as third:
                assert await is_closed(third[0])
            assert await ask(*second, b"hello") == b"hello"
        await until(lambda: server.connection_count == 1)
        async with connected(port) as again:
            assert await ask(*again, b"again") == b"again"
    server.close()


async def test_an_address_may_have_a_limit_of_its_own() -> None:
    server, port = await serving(
        limited(connections_per_ip_max=0, connections_per_ip_overrides={"127.0.0.1": 1})
    )
    async with connected(port) as streams:
        assert await ask(*streams, b"hello") == b"hello"
    server.close()


async def test_a_connection_above_the_limit_waits_for_a_place() -> None:
    server, port = await serving(limited(connections_max=1))
    async with connected(port) as first:
        assert await ask(*first, b"first") == b"first"
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        waiting: Awaitable[bytes] = asyncio.ensure_future(ask(reader, writer, b"second"))
        assert await ask(*first, b"first again") == b"first again"
        assert server.connection_count == 1
    assert await waiting == b"second"
    writer.close()
    await writer.wait_closed()
    server.close()


Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def accepted(server: Server, first: Streams) -> int:
    """Return the number of connections once the server has accepted all that it will.

    It accepts waiting connections in the same turn of the event loop in which it sees them, and
    the answer to a request comes some turns later.
    """
    for _ in range(3):
        assert await ask(*first, b"hello") == b"hello"
    return server.connection_count


async def test_connections_that_come_too_fast_wait_and_are_not_refused() -> None:
    clock = ManualClock()
    server, port = await serving(limited(creation_rate_max=2), clock=clock)
    async with AsyncExitStack() as stack:
        streams = [await stack.enter_async_context(connected(port)) for _ in range(25)]
        first = streams[0]
        # Ten seconds' worth at once, and the one that goes beyond.
        assert await accepted(server, first) == 21
        waiting = [asyncio.ensure_future(ask(*each, b"late")) for each in streams[21:]]
        clock.advance(499)
        assert await accepted(server, first) == 21
        clock.advance(1)
        assert await waiting[0] == b"late"
        assert await accepted(server, first) == 22
        # With a second sample the burst counts fully again; a wait is never above a second.
        for count, wait_ms in ((23, 500), (24, 1000), (25, 1000)):
            clock.advance(wait_ms - 1)
            assert await accepted(server, first) == count - 1
            clock.advance(1)
            assert await waiting[count - 22] == b"late"
            assert await accepted(server, first) == count
        assert await asyncio.gather(*waiting) == [b"late"] * 4
        server.close()
        assert not [timer for timer in clock.timers if not timer.is_cancelled]


async def test_a_rate_that_is_set_later_holds_from_then_on() -> None:
    clock = ManualClock()
    server, port = await serving(ServerLimits(), clock=clock)
    async with AsyncExitStack() as stack:
        first = await stack.enter_async_context(connected(port))
        for _ in range(14):
            await stack.enter_async_context(connected(port))
        assert await accepted(server, first) == 15
        server.set_limits(ConnectionLimits(creation_rate_max=1))
        for _ in range(3):
            await stack.enter_async_context(connected(port))
        assert await accepted(server, first) == 16
        server.set_limits(ConnectionLimits())
        assert await accepted(server, first) == 16  # it waits as long as it was told to
        clock.advance(1000)
        await until(lambda: server.connection_count == 18)
        server.close()


async def test_of_an_address_that_comes_too_fast_nothing_is_read() -> None:
    connections: list[Connection] = []

    class Watched(Server):
        def _connected(self, *arguments: Any) -> Connection:
            connections.append(super()._connected(*arguments))
            return connections[-1]

    server = Watched(TcpNetwork(), ManualClock(), echo, limited())
    port = server.listen("127.0.0.1", 0, ListenerOptions("PLAINTEXT"))
    server.set_ip_rates(IpRates(1, {}))
    server.start()
    try:
        async with AsyncExitStack() as stack:
            first = await stack.enter_async_context(connected(port))
            assert await ask(*first, b"served") == b"served"
            for _ in range(20):
                _, writer = await stack.enter_async_context(connected(port))
                writer.write((pack(">i", 1000) + bytes(1000)) * 100)
            await until(lambda: len(connections) == 21)
            for _ in range(100):
                await asyncio.sleep(0)
            assert connections[-1].is_waiting  # it is held
            assert not connections[-1].frames
    finally:
        server.close()


async def test_listeners_have_rates_and_numbers_of_their_own() -> None:
    limits = ConnectionLimits(
        listeners={
            "SLOW": ListenerLimits(creation_rate_max=1),
            "SMALL": ListenerLimits(connections_max=2),
        }
    )
    server = Server(TcpNetwork(), ManualClock(), echo, ServerLimits(connections=limits))
    ports = [
        server.listen("127.0.0.1", 0, ListenerOptions(name)) for name in ("SLOW", "SMALL", "FREE")
    ]
    server.start()
    async with AsyncExitStack() as stack:
        for port, expected in zip(ports, (11, 13, 33), strict=True):
            streams = [await stack.enter_async_context(connected(port)) for _ in range(20)]
            assert await accepted(server, streams[0]) == expected
        server.close()


async def test_brokers_find_a_place_where_clients_have_taken_all(
    caplog: pytest.LogCaptureFixture,
) -> None:
    limits = ConnectionLimits(connections_max=3, protected_listener="BROKERS")
    server = Server(TcpNetwork(), ManualClock(), echo, ServerLimits(connections=limits))
    client_port = server.listen("127.0.0.1", 0, ListenerOptions("CLIENTS"))
    broker_port = server.listen("127.0.0.1", 0, ListenerOptions("BROKERS"))
    server.start()
    async with AsyncExitStack() as stack:
        idle = await stack.enter_async_context(connected(client_port))
        assert await ask(*idle, b"once") == b"once"
        for connection in server._connections:
            connection.last_active_tick = 0  # as after some looks for idle ones
        busy = [await stack.enter_async_context(connected(client_port)) for _ in range(3)]
        assert await accepted(server, busy[0]) == 3
        broker = await stack.enter_async_context(connected(broker_port))
        assert await accepted(server, broker) == 3
        assert await is_closed(idle[0])
        assert await ask(*busy[0], b"busy") == b"busy"
        assert "max.connections=3 is exceeded" in caplog.text
        server.set_limits(ConnectionLimits(connections_max=1, protected_listener="BROKERS"))
        assert await accepted(server, broker) == 1
        server.close()


async def test_idle_connections_are_closed_and_busy_ones_are_not() -> None:
    server, port = await serving(ServerLimits(idle_max_ms=300))
    async with connected(port) as idle, connected(port) as busy:
        closing = asyncio.ensure_future(is_closed(idle[0]))
        while not closing.done():
            assert await ask(*busy, b"busy") == b"busy"
        assert closing.result()
        assert await ask(*busy, b"still here") == b"still here"
    server.close()


async def test_nobody_is_closed_for_being_idle_where_that_has_no_limit() -> None:
    clock = ManualClock()
    server = Server(TcpNetwork(), clock, echo, ServerLimits(idle_max_ms=-1))
    port = server.listen("127.0.0.1", 0, ListenerOptions("PLAINTEXT"))
    server.start()
    async with connected(port) as (reader, writer):
        assert await ask(reader, writer, b"hello") == b"hello"
        clock.advance(1_000_000)
        assert await ask(reader, writer, b"still here") == b"still here"
    server.close()


async def test_closing_ends_every_connection() -> None:
    server, port = await serving(ServerLimits())
    async with connected(port) as (reader, writer):
        assert await ask(reader, writer, b"hello") == b"hello"
        server.close()
        assert await is_closed(reader)
    assert server.connection_count == 0
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection("127.0.0.1", port)


async def test_broken_frames_cannot_fill_the_log(caplog: pytest.LogCaptureFixture) -> None:
    server, port = await serving(ServerLimits())
    with closing(server):
        for _ in range(LINES_MAX + 10):
            async with connected(port) as (reader, writer):
                writer.write(pack(">i", -1))
                assert await is_closed(reader)
    assert len(caplog.records) == LINES_MAX


class Unanswered(Reply):
    """A reply that this module made."""


def of_connections_here() -> list[str]:
    """Return the types of objects that this loop's connections leave alive, without collections.

    Without a collection, new objects are in the youngest generation; a look at all objects takes
    very long. Clusters of other tests run in threads of the same process, and have clients too.
    """
    loop = asyncio.get_running_loop()
    scratch = FrameReader(0).buffer()

    def is_here(each: Any) -> bool:
        kind = type(each)  # an object that claims another class is not asked
        if kind is TcpTransport:
            return each._loop is loop
        if kind is Connection:
            return is_here(each._transport)
        if kind is FrameReader:
            return each._scratch is scratch
        return kind is Unanswered

    return sorted(type(each).__name__ for each in gc.get_objects(0) if is_here(each))


@contextmanager
def no_collections() -> Iterator[None]:
    """Switch the collector off: objects are freed only when nothing refers to them."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def never(connection: Connection, frame: bytearray) -> Reply:
    return Unanswered()


def watching(connection: Connection, frame: bytearray) -> Sequence[Part]:
    connection.when_closed(told)
    return echo(connection, frame)


def told(connection: Connection) -> None:
    """The end of a connection."""


@pytest.mark.parametrize("service", [echo, never, watching])
@pytest.mark.parametrize("is_reset", [False, True])
@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"\0\0",
        pack(">i", 8 << 20) + bytes(1 << 20),
        (pack(">i", 8) + bytes(8)) * 3 + pack(">i", 8),
        pack(">i", -1),
    ],
    ids=["nothing", "half a length", "half a frame", "frames and a length", "a bad length"],
)
@pytest.mark.parametrize("queued_bytes_max", [-1, 1 << 20], ids=["", "shared memory"])
async def test_a_closed_connection_leaves_no_cycle(
    service: object,
    sent: bytes,
    is_reset: bool,
    queued_bytes_max: int,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("CRITICAL")  # pytest keeps what is logged, with all that it refers to
    server, port = await serving(ServerLimits(queued_bytes_max=queued_bytes_max), service)
    with no_collections(), closing(server):
        assert of_connections_here() == []
        async with AsyncExitStack() as stack:
            for _ in range(3):
                reader, writer = await stack.enter_async_context(connected(port))
                writer.write(sent)
                await writer.drain()
                if sent == pack(">i", -1):
                    assert await is_closed(reader)
            await until(lambda: server.connection_count == 3 or sent == pack(">i", -1))
            if is_reset:
                while server._connections:
                    next(iter(server._connections)).close()
        await until(lambda: server.connection_count == 0)
        await until(lambda: of_connections_here() == [])


async def test_only_connections_of_the_same_loop_are_counted() -> None:
    """One of a cluster in another thread, which other tests use, is not one left by a server."""
    server, port = await serving(ServerLimits())
    with no_collections(), closing(server), Cluster() as cluster:
        _, _, elsewhere = cluster.bootstrap_servers.partition(":")
        async with connected(int(elsewhere)) as (reader, writer):
            assert await ask(reader, writer, API_VERSIONS)
            assert of_connections_here() == []
            async with connected(port) as (reader, writer):
                assert await ask(reader, writer, b"hello") == b"hello"
                kept = ["Connection", "FrameReader", "TcpTransport"]
                assert of_connections_here() == kept
            await until(lambda: of_connections_here() == [])


async def test_connections_of_a_node_leave_no_cycles() -> None:
    """With what the broker keeps of each: requests begun, state, fetches that wait."""
    async with Cluster() as cluster:
        _, _, port = cluster.bootstrap_servers.partition(":")
        with no_collections():
            before = of_connections_here()
            for _ in range(4):
                await _ask_and_leave(int(port), API_VERSIONS)
            await until(lambda: of_connections_here() == before)


async def _ask_and_leave(port: int, request: bytes) -> None:
    async with connected(port) as (reader, writer):
        assert (await ask(reader, writer, request))[:4] == request[4:8]
        writer.write(pack(">i", 1 << 20) + bytes(300_000))
        await writer.drain()


async def test_each_listener_has_options_of_its_own() -> None:
    """A connection knows them, and takes frames as large as its listener lets it."""
    server = Server(TcpNetwork(), SystemClock(), echo, ServerLimits())
    small = ListenerOptions("SMALL", frame_size_max_bytes=8)
    large = ListenerOptions("LARGE", security_protocol="SSL", frame_size_max_bytes=1000)
    ports = [server.listen("127.0.0.1", 0, options) for options in (small, large)]
    assert server.ports == dict(zip(("SMALL", "LARGE"), ports, strict=True))
    server.start()
    async with connected(ports[0]) as near_small, connected(ports[1]) as near_large:
        assert await ask(*near_large, b"x" * 100) == b"x" * 100
        assert await ask(*near_small, b"x" * 8) == b"x" * 8
        assert {connection.listener for connection in server._connections} == {small, large}
        near_small[1].write(pack(">i", 9))
        assert await asyncio.wait_for(near_small[0].read(), TIMEOUT_S) == b""
    server.close()
