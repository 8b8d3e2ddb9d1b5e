"""The bytes of requests that wait are bounded for all connections together, and nobody starves."""

import random
from collections.abc import Sequence
from struct import pack
from types import SimpleNamespace
from typing import Any

import pytest

from barnabas.base.network import ListenerOptions, Part
from barnabas.node.net.connection import Connection, Gate, Reply
from barnabas.node.net.request_memory import RequestMemory

FETCH = b"\x00\x01"


class Client:
    """One connection whose transport is only remembered."""

    def __init__(self, memory: RequestMemory, *, is_outside: bool = False) -> None:
        self.is_reading = True
        self.handled: list[int] = []
        self.replies: list[Reply] = []
        self.waits = False
        transport: Any = SimpleNamespace(
            peer_host="client",
            tls=None,
            send=lambda parts: None,
            unsent_bytes=lambda: 0,
            pause_reading=lambda: setattr(self, "is_reading", False),
            resume_reading=lambda: setattr(self, "is_reading", True),
            close=self.close,
        )
        self.connection = Connection(
            transport,
            self._serve,
            ListenerOptions("PLAINTEXT", frame_size_max_bytes=100_000),
            lambda _: None,
            memory=memory,
            gate=Gate(self._admit, 1000) if is_outside else None,
        )

    def _serve(self, connection: Connection, frame: bytearray) -> Sequence[Part] | Reply:
        self.handled.append(len(frame))
        if self.waits:
            self.replies.append(Reply())
            return self.replies[-1]
        return ()

    def _admit(self, connection: Connection, frame: bytearray) -> Sequence[Part] | Reply:
        connection.admit(self._serve)
        return self._serve(connection, frame)

    def send(self, data: bytes) -> None:
        assert self.is_reading
        self.connection.get_buffer()[: len(data)] = data
        self.connection.received(len(data))

    def close(self) -> None:
        self.connection.closed(None)


def frame(size_bytes: int) -> bytes:
    return pack(">i", size_bytes) + FETCH.ljust(size_bytes, b"x")


def test_a_frame_counts_as_a_whole_from_its_first_byte_on() -> None:
    memory = RequestMemory(1000)
    one = Client(memory)
    one.send(frame(600)[:10])
    assert memory.used_bytes == 600
    one.send(frame(600)[10:])
    assert one.handled == [600]
    assert memory.used_bytes == 0


def test_without_room_nothing_more_is_read_until_there_is() -> None:
    memory = RequestMemory(1000)
    large, small, other = (Client(memory) for _ in range(3))
    large.send(frame(5000)[:10])  # there was room for its first byte: it may pass
    assert large.is_reading
    small.send(frame(500)[:20])
    other.send(frame(10))  # what has arrived is handled all the same
    assert (small.is_reading, other.is_reading) == (False, False)
    assert other.handled == [10]
    assert memory.used_bytes == 5000
    large.send(frame(5000)[10:])
    assert large.handled == [5000]
    assert (small.is_reading, other.is_reading) == (True, True)
    small.send(frame(500)[20:])
    assert small.handled == [500]
    assert memory.used_bytes == 0


def test_requests_behind_one_that_waits_count() -> None:
    memory = RequestMemory(100)
    one, two = Client(memory), Client(memory)
    one.waits = True
    one.send(frame(90) + frame(120))
    assert one.handled == [90]
    assert memory.used_bytes == 120
    two.send(frame(5))
    assert not two.is_reading
    one.replies[0].complete(())
    assert one.handled == [90, 120]
    assert two.is_reading
    assert memory.used_bytes == 0


def test_a_connection_that_goes_leaves_nothing_behind() -> None:
    memory = RequestMemory(100)
    one, two, three = (Client(memory) for _ in range(3))
    one.send(frame(200)[:50])
    two.send(frame(200)[:50])
    three.send(frame(200)[:50])
    assert (one.is_reading, two.is_reading, three.is_reading) == (True, False, False)
    two.close()
    one.close()
    assert three.is_reading
    assert memory.used_bytes == 200
    three.close()
    assert memory.used_bytes == 0
    assert not memory.waiting


def test_who_has_not_logged_in_takes_no_room_from_others() -> None:
    memory = RequestMemory(1000)
    outside = [Client(memory, is_outside=True) for _ in range(3)]
    for client in outside:
        client.send(frame(999)[:10])
    inside = Client(memory)
    inside.send(frame(500)[:20])
    assert inside.is_reading
    assert memory.used_bytes == 500


def test_who_has_logged_in_shares_the_room() -> None:
    memory = RequestMemory(1000)
    client = Client(memory, is_outside=True)
    client.waits = True
    client.send(frame(10) + frame(700) + frame(300)[:50])
    assert client.handled == [10]
    assert memory.used_bytes == 1000
    client.replies[0].complete(())
    assert client.handled == [10, 700]
    client.close()
    assert memory.used_bytes == 0


@pytest.mark.parametrize("seed", range(20))
def test_every_request_is_handled_in_the_end(seed: int) -> None:
    source = random.Random(seed)
    memory = RequestMemory(source.choice([1, 300, 3000]))
    clients = [Client(memory) for _ in range(6)]
    sizes = {client: [source.randrange(2, 1500) for _ in range(8)] for client in clients}
    left = {client: b"".join(map(frame, sizes[client])) for client in clients}
    most_bytes = 0
    while any(left.values()):
        ready = [client for client in clients if left[client] and client.is_reading]
        assert ready, "all wait for each other"
        client = source.choice(ready)
        piece = left[client][: source.randrange(1, 800)]
        left[client] = left[client][len(piece) :]
        client.send(piece)
        most_bytes = max(most_bytes, memory.used_bytes)
        if source.random() < 0.03:
            left[client] = b""
            client.close()
    assert most_bytes <= memory.max_bytes + 1500  # a frame may begin when there is a byte of room
    for client in clients:
        if not client.connection.is_closed:
            assert client.handled == sizes[client]
            client.close()
    assert memory.used_bytes == 0
