"""The simulated network: streams in order, cuts, resets, refusals and back-pressure."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from random import Random
from typing import Any

import pytest

from barnabas.base.disk import FileRange
from barnabas.base.network import ListenerOptions, Part, Transport
from barnabas.node.net.connection import Connection
from barnabas.node.net.server import Server, ServerLimits
from sim.clock import SimClock
from sim.disk import io_error
from sim.fake_disk import FakeDisk
from sim.loop import Process, SimLoop
from sim.wire import SimNetwork, Wire

CONNECTIONS = 50


class Handler:
    """Remembers what came."""

    def __init__(self, transport: Transport) -> None:
        self.transport = transport
        self.data = bytearray()
        self.errors: list[OSError | None] = []
        self.drained_count = 0
        self._buffer = bytearray(4096)

    def get_buffer(self) -> memoryview:
        return memoryview(self._buffer)

    def received(self, size_bytes: int) -> None:
        self.data += self._buffer[:size_bytes]

    def drained(self) -> None:
        self.drained_count += 1

    def closed(self, error: OSError | None) -> None:
        self.errors.append(error)


class World:
    """Two machines, `a` and `b`; `b` listens on port 1."""

    def __init__(self) -> None:
        self.loop = SimLoop()
        self.wire = Wire(self.loop, Random(1))
        self.processes = {name: Process(name, 1) for name in "ab"}
        self.a = SimNetwork(self.wire, "a", self.processes["a"])
        self.b = SimNetwork(self.wire, "b", self.processes["b"])
        self.accepted: list[Handler] = []
        self.listener = self.b.listen("b", 1, self._accept)
        self.listener.start()

    def _accept(self, transport: Transport) -> Handler:
        self.accepted.append(Handler(transport))
        return self.accepted[-1]

    async def connect(self, port: int = 1) -> Handler:
        handlers: list[Handler] = []

        def connected(transport: Transport) -> Handler:
            handlers.append(Handler(transport))
            return handlers[0]

        await self.a.connect("b", port, connected)
        return handlers[0]


def simulated(test: Callable[[World], Coroutine[Any, Any, None]]) -> Callable[[], None]:
    def run() -> None:
        world = World()
        world.loop.run_until_complete(test(world))
        world.loop.close()

    run.__name__ = test.__name__
    return run


@simulated
async def test_bytes_arrive_in_order_in_pieces(world: World) -> None:
    near = await world.connect()
    sent = bytes(range(256)) * 5000
    for start in range(0, len(sent), 100_000):
        near.transport.send([sent[start : start + 50_000], sent[start + 50_000 : start + 100_000]])
    assert near.transport.unsent_bytes() > 0, "a window is finite"
    await asyncio.sleep(1)
    (far,) = world.accepted
    assert far.data == sent
    assert near.drained_count == 1


@simulated
async def test_who_does_not_read_holds_up_who_sends(world: World) -> None:
    near = await world.connect()
    await asyncio.sleep(0.1)
    (far,) = world.accepted
    far.transport.pause_reading()
    near.transport.send([bytes(1 << 20)])
    await asyncio.sleep(1)
    assert near.transport.unsent_bytes() == (1 << 20) - (256 << 10)
    far.transport.resume_reading()
    await asyncio.sleep(1)
    assert len(far.data) == 1 << 20
    assert near.transport.unsent_bytes() == 0


@simulated
async def test_a_file_that_cannot_be_read_ends_the_connection(world: World) -> None:
    disk = FakeDisk()
    disk.make_dirs("/data")
    file = disk.open("/data/log", create=True)
    file.append([b"records"])

    def broken(operation: str, path: str) -> None:
        raise io_error(path)

    disk.fault = broken
    near = await world.connect()
    near.transport.send([FileRange(file, 0, 7)])
    assert isinstance(near.errors[0], OSError)
    await asyncio.sleep(1)
    assert world.accepted[0].errors == [None]


@simulated
async def test_nobody_there_refuses(world: World) -> None:
    with pytest.raises(ConnectionRefusedError):
        await world.connect(port=2)
    world.b.process_ended()
    with pytest.raises(ConnectionRefusedError):
        await world.connect()


@simulated
async def test_a_cut_direction_holds_bytes_until_it_heals(world: World) -> None:
    near = await world.connect()
    world.wire.cut("a", "b")
    near.transport.send([b"request"])
    await asyncio.sleep(20)
    (far,) = world.accepted
    assert not far.data
    far.transport.send([b"the other direction"])
    await asyncio.sleep(1)
    assert near.data == b"the other direction"
    world.wire.heal()
    await asyncio.sleep(1)
    assert far.data == b"request"


@simulated
async def test_a_machine_that_is_cut_off_is_not_reached(world: World) -> None:
    world.wire.cut("b", "a")
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(30):
            await world.connect()
    with pytest.raises(TimeoutError, match="timed out"):
        await world.connect()
    assert world.loop.time() > 127


@simulated
async def test_a_killed_process_leaves_its_peers_with_an_end(world: World) -> None:
    ends = [await world.connect() for _ in range(20)]
    world.loop.kill(world.processes["b"])
    world.b.process_ended()
    await asyncio.sleep(1)
    kinds = {type(end.errors[0]) for end in ends}
    assert kinds == {type(None), ConnectionResetError}


@simulated
async def test_without_power_nobody_answers_and_then_all_is_forgotten(world: World) -> None:
    near = await world.connect()
    world.b.host.is_powered = False
    world.loop.kill(world.processes["b"])
    world.b.process_ended()
    near.transport.send([b"x"])
    await asyncio.sleep(60)
    assert near.errors == []
    world.b.host.is_powered = True
    await asyncio.sleep(1)
    assert [type(error) for error in near.errors] == [ConnectionResetError]


@simulated
async def test_a_stopped_process_is_connected_to_and_says_nothing(world: World) -> None:
    world.loop.stop_process(world.processes["b"])
    near = await world.connect()
    near.transport.send([b"x"])
    await asyncio.sleep(5)
    assert world.accepted == []
    world.loop.continue_process(world.processes["b"])
    await asyncio.sleep(1)
    assert world.accepted[0].data == b"x"
    world.accepted[0].transport.close()
    await asyncio.sleep(1)
    assert near.errors == [None]


@simulated
async def test_a_server_closes_its_connections_in_the_order_in_which_they_came(
    world: World,
) -> None:
    """Each takes a delay of the wire's, so another order would be another run of the seed."""
    order: list[int] = []
    all_closed = asyncio.Event()

    class Numbered(Handler):
        def __init__(self, transport: Transport, number: int) -> None:
            super().__init__(transport)
            self.number = number

        def closed(self, error: OSError | None) -> None:
            order.append(self.number)
            if len(order) == CONNECTIONS:
                all_closed.set()

    def numbered(number: int) -> Callable[[Transport], Handler]:
        return lambda transport: Numbered(transport, number)

    def answer(connection: Connection, frame: bytearray) -> Sequence[Part]:
        return (frame,)

    world.wire.link("b", "a").jitter_ms = 0.0
    server = Server(world.b, SimClock(world.loop), answer, ServerLimits())
    server.listen("b", 2, ListenerOptions("PLAINTEXT"))
    server.start()
    for number in range(CONNECTIONS):
        await world.a.connect("b", 2, numbered(number))
    assert server.connection_count == CONNECTIONS
    server.close()
    await asyncio.wait_for(all_closed.wait(), 1)
    assert order == list(range(CONNECTIONS))
