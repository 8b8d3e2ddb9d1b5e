"""When the requests of a connection are received a few at a time, and when no longer."""

import asyncio
import socket
from collections.abc import Sequence
from struct import pack

import pytest

from barnabas.base.network import Part, Transport
from barnabas.net.connection import Connection
from barnabas.net.gathering import (
    FRAMES_LET_IN,
    FRAMES_NEEDED_MIN,
    PAUSE_MAX_MS,
    THRESHOLD_MAX_BYTES,
    WANTED_MAX,
    Gathering,
)
from barnabas.net.tcp import TcpNetwork
from sim.manual_clock import ManualClock

SIZE = 200
TIMEOUT_S = 10


class Bench:
    """A gathering that is fed by hand, and the thresholds that it sets."""

    def __init__(self, *, has_thresholds: bool = True) -> None:
        self.clock = ManualClock()
        self.thresholds: list[int] = []
        self.has_thresholds = has_thresholds
        self.gathering = Gathering(self.clock, self.wake_at)

    def wake_at(self, size_bytes: int) -> bool:
        self.thresholds.append(size_bytes)
        return self.has_thresholds

    def receive(self, count: int = 1, *, times: int = 1, size: int = SIZE) -> None:
        for _ in range(times):
            self.gathering.received(count, count * size)

    def begin(self) -> None:
        """Show what is needed: a client with five in flight."""
        self.receive(times=FRAMES_NEEDED_MIN)
        self.receive(5)
        assert self.gathering.is_on

    def tick(self, times: int = 1, *, with_receive: bool = True) -> None:
        for _ in range(times):
            if with_receive:
                self.receive(3)
            self.clock.advance(1)


def test_three_quarters_of_what_is_in_flight_are_waited_for() -> None:
    bench = Bench()
    bench.begin()
    assert bench.thresholds == [4 * SIZE - SIZE // 2]


@pytest.mark.parametrize(
    ("depth", "size", "wanted"),
    [
        (3, 200, 2),
        (4, 200, 3),
        (5, 200, 4),
        (5, 16_500, 4),
        (7, 200, 5),
        (100, 200, WANTED_MAX),
        (7, THRESHOLD_MAX_BYTES // 2, 2),
        (7, THRESHOLD_MAX_BYTES // 2 + 1, None),
        (7, 2 * THRESHOLD_MAX_BYTES, None),
    ],
)
def test_how_many_are_waited_for(depth: int, size: int, wanted: int | None) -> None:
    bench = Bench()
    bench.receive(times=FRAMES_NEEDED_MIN, size=size)
    bench.receive(depth, size=size)
    assert bench.thresholds == ([] if wanted is None else [wanted * size - size // 2])


def test_a_client_that_waits_for_its_answers_is_received_at_once() -> None:
    bench = Bench()
    bench.receive(2, times=10_000)
    assert not bench.thresholds


def test_a_slow_client_is_received_at_once() -> None:
    bench = Bench()
    for _ in range(200):
        bench.receive(5)
        bench.clock.advance(3)
    assert not bench.thresholds


def test_a_platform_without_thresholds_is_left_in_peace() -> None:
    bench = Bench(has_thresholds=False)
    bench.receive(5, times=100)
    assert not bench.gathering.is_on
    assert not bench.clock.timers


def test_a_tick_without_a_receive_lets_in_what_is_there_and_the_next_few() -> None:
    bench = Bench()
    bench.begin()
    (threshold,) = bench.thresholds
    bench.tick(50)
    assert bench.thresholds == [threshold]
    bench.tick(with_receive=False)
    assert bench.thresholds == [threshold, 1]
    assert not bench.clock.timers  # a silent connection costs nothing
    bench.receive(times=FRAMES_LET_IN - 1)
    assert bench.thresholds == [threshold, 1]
    bench.receive()
    assert bench.thresholds == [threshold, 1, threshold]
    assert len(bench.clock.timers) == 1


def test_requests_that_lie_there_too_often_end_it_and_more_is_to_be_shown() -> None:
    bench = Bench()
    bench.begin()
    for _ in range(2):
        assert bench.gathering.is_on
        bench.tick(with_receive=False)
        bench.receive(times=FRAMES_LET_IN)
    assert not bench.gathering.is_on
    assert bench.thresholds[-1] == 1
    bench.receive(times=FRAMES_NEEDED_MIN)
    bench.receive(5)
    assert not bench.gathering.is_on
    bench.receive(times=FRAMES_NEEDED_MIN)
    bench.receive(5)
    assert bench.gathering.is_on


def test_a_pause_ends_it_without_blame() -> None:
    bench = Bench()
    bench.begin()
    bench.tick(with_receive=False)
    bench.clock.advance(PAUSE_MAX_MS + 1)
    bench.receive()
    assert not bench.gathering.is_on
    bench.begin()


def test_bursts_whose_ends_have_to_be_let_in_are_to_blame_after_the_pause() -> None:
    bench = Bench()
    bench.begin()
    bench.tick(10)
    bench.tick(with_receive=False)
    bench.receive(2)
    bench.clock.advance(PAUSE_MAX_MS + 1)
    bench.receive(FRAMES_LET_IN)
    assert not bench.gathering.is_on
    bench.receive(times=FRAMES_NEEDED_MIN)
    bench.receive(5)
    assert not bench.gathering.is_on


def test_a_producer_that_has_become_slow_is_received_at_once() -> None:
    bench = Bench()
    bench.begin()
    bench.tick(with_receive=False)
    for _ in range(FRAMES_LET_IN):
        bench.clock.advance(PAUSE_MAX_MS // 4)
        bench.receive()
    assert not bench.gathering.is_on
    assert bench.thresholds[-1] == 1


def test_nothing_is_left_of_a_connection_that_has_gone() -> None:
    bench = Bench()
    bench.begin()
    bench.gathering.stop()
    bench.clock.advance(10)
    assert len(bench.thresholds) == 1


class FakeTransport:
    """Notes thresholds; what is sent goes nowhere."""

    peer_host, peer_port = "client", 1

    def __init__(self) -> None:
        self.thresholds: list[int] = []

    def send(self, parts: Sequence[Part]) -> None:
        """Nobody reads it."""

    def unsent_bytes(self) -> int:
        return 0

    def wake_at(self, size_bytes: int) -> bool:
        self.thresholds.append(size_bytes)
        return True

    def pause_reading(self) -> None:
        """Nothing is read here."""

    def resume_reading(self) -> None:
        """Nothing is read here."""

    def close(self) -> None:
        """Nothing is open."""

    close_when_sent = close


@pytest.mark.parametrize("may_gather", [True, False])
def test_the_service_says_for_which_connections_it_is(may_gather: bool) -> None:
    transport = FakeTransport()
    clock = ManualClock()
    connection = Connection(
        transport, lambda _, frame: (), "PLAINTEXT", 1 << 20, lambda _: None, clock=clock
    )
    connection.may_gather = may_gather
    frame = pack(">i", SIZE) + bytes(SIZE)
    for _ in range(FRAMES_NEEDED_MIN):
        connection.get_buffer()[: 5 * len(frame)] = 5 * frame
        connection.received(5 * len(frame))
    assert bool(transport.thresholds) is may_gather
    connection.closed(None)
    assert all(timer.is_cancelled for timer in clock.timers)


class Sink:
    """Notes how many bytes each receive brought."""

    def __init__(self) -> None:
        self.received_bytes: asyncio.Queue[int] = asyncio.Queue()
        self._buffer = memoryview(bytearray(1000))

    def get_buffer(self) -> memoryview:
        return self._buffer

    def received(self, size_bytes: int) -> None:
        self.received_bytes.put_nowait(size_bytes)

    def drained(self) -> None:
        """Nothing is sent."""

    def closed(self, error: OSError | None) -> None:
        self.received_bytes.put_nowait(0)


async def test_a_socket_tells_of_so_many_bytes_or_of_the_end() -> None:
    sink = Sink()
    transports: asyncio.Queue[Transport] = asyncio.Queue()

    def connected(transport: Transport) -> Sink:
        transports.put_nowait(transport)
        return sink

    async def next_size() -> int:
        return await asyncio.wait_for(sink.received_bytes.get(), TIMEOUT_S)

    listener = TcpNetwork().listen("127.0.0.1", 0, connected)
    listener.start()
    with socket.create_connection(("127.0.0.1", listener.port)) as client:
        transport = await asyncio.wait_for(transports.get(), TIMEOUT_S)
        assert transport.wake_at(100)
        for _ in range(2):
            client.sendall(bytes(50))
            for _ in range(10):
                await asyncio.sleep(0)  # turns in which it would be received, if it were to be
        assert await next_size() == 100
        client.sendall(bytes(50))
        assert transport.wake_at(1)
        assert await next_size() == 50
        assert transport.wake_at(100)
        client.sendall(bytes(50))
    assert await next_size() == 50
    assert await next_size() == 0
    assert not transport.wake_at(1)
    listener.close()
