"""Frames come out the same however the stream is cut."""

import threading
from struct import pack

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.node.net.frames import SCRATCH_SIZE_BYTES, FrameReader
from barnabas.protocol.errors import DecodeError
from support.effort import examples

LIMIT = 4 << 20


def feed(reader: FrameReader, data: bytes, cuts: list[int]) -> list[bytes]:
    """Receive `data` in pieces of at most the sizes in `cuts`, as a socket would deliver it."""
    frames: list[bytes] = []
    position = 0
    turn = 0
    while position < len(data):
        buffer = reader.buffer()
        size = min(len(buffer), cuts[turn % len(cuts)], len(data) - position)
        turn += 1
        buffer[:size] = data[position : position + size]
        del buffer
        position += size
        frames += map(bytes, reader.advance(size))
    return frames


def framed(payloads: list[bytes]) -> bytes:
    return b"".join(pack(">i", len(payload)) + payload for payload in payloads)


@given(
    payloads=st.lists(st.binary(max_size=300), max_size=12),
    cuts=st.lists(st.integers(1, 400), min_size=1, max_size=8),
)
def test_any_cut_gives_the_same_frames(payloads: list[bytes], cuts: list[int]) -> None:
    assert feed(FrameReader(LIMIT), framed(payloads), cuts) == payloads


@settings(max_examples=examples(7), deadline=None)
@given(
    sizes=st.lists(
        st.sampled_from(
            [0, 1, SCRATCH_SIZE_BYTES - 5, SCRATCH_SIZE_BYTES - 4, SCRATCH_SIZE_BYTES, 900_000]
        ),
        min_size=1,
        max_size=5,
    ),
    cuts=st.lists(st.integers(1000, 200_000), min_size=1, max_size=4),
)
def test_frames_around_the_scratch_size(sizes: list[int], cuts: list[int]) -> None:
    payloads = [bytes([index + 1]) * size for index, size in enumerate(sizes)]
    assert feed(FrameReader(LIMIT), framed(payloads), cuts) == payloads


@pytest.mark.parametrize("size", [-1, -(2**31), LIMIT + 1, 2**31 - 1])
def test_a_length_outside_the_limit_is_refused(size: int) -> None:
    reader = FrameReader(LIMIT)
    with pytest.raises(DecodeError, match="outside"):
        feed(reader, pack(">i", size) + b"abc", [64])


@pytest.mark.parametrize(
    ("head", "said"),
    [
        (bytes.fromhex("1603010206010002"), "a TLS handshake"),
        (bytes.fromhex("16030302"), "a TLS handshake"),
        (bytes.fromhex("15030300020228"), "a TLS alert"),
        (b"GET / HTTP/1.1\r\n", "HTTP"),
        (b"PRI * HTTP/2.0\r\n", "HTTP"),
        (b"HTTP/1.1 400 Bad Request\r\n", "HTTP"),
    ],
)
def test_another_protocol_is_named(head: bytes, said: str) -> None:
    with pytest.raises(DecodeError, match=f"is outside 0..{LIMIT}; this looks like {said}"):
        feed(FrameReader(LIMIT), head, [len(head)])


def test_what_is_like_nothing_known_is_not_guessed_at() -> None:
    with pytest.raises(DecodeError, match=rf"is outside 0..{LIMIT}$"):
        feed(FrameReader(LIMIT), b"\x7fELF", [4])


@pytest.mark.parametrize(
    ("sent_bytes", "held_max_bytes"),
    [
        (0, 200),
        (1, 200),
        (1000, 1300),
        (100_000, 115_000),
        (SCRATCH_SIZE_BYTES - 4, 300_000),
        (SCRATCH_SIZE_BYTES + 1, 300_000),
        (1_000_000, 1_130_000),
        (LIMIT - 1, 4_750_000),
    ],
)
@pytest.mark.parametrize("piece_bytes", [777, 100_000, LIMIT])
def test_memory_grows_by_what_has_arrived(
    sent_bytes: int, held_max_bytes: int, piece_bytes: int
) -> None:
    """For any announced length, even if the last byte arrives alone."""
    reader = FrameReader(LIMIT)
    feed(reader, pack(">i", LIMIT) + bytes(max(0, sent_bytes - 1)), [piece_bytes])
    feed(reader, bytes(min(1, sent_bytes)), [1])
    assert sent_bytes <= reader.held_size_bytes <= held_max_bytes
    reader.clear()
    assert reader.held_size_bytes == 0


def test_frames_are_writable_and_independent() -> None:
    reader = FrameReader(LIMIT)
    data = framed([b"first", b"second"])
    buffer = reader.buffer()
    buffer[: len(data)] = data
    first, second = reader.advance(len(data))
    first[0:5] = b"FIRST"
    assert bytes(second) == b"second"


def test_threads_do_not_share_what_they_receive_into() -> None:
    """Two clusters in one program have a loop and a thread each."""
    mine = FrameReader(1 << 20).buffer()
    theirs: list[memoryview] = []
    thread = threading.Thread(target=lambda: theirs.append(FrameReader(1 << 20).buffer()))
    thread.start()
    thread.join()
    mine[0] = 1
    theirs[0][0] = 2
    assert mine[0] == 1
    assert FrameReader(1 << 20).buffer()[0] == 1, "one thread's readers share theirs"
