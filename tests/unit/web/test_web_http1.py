"""Answers leave in one piece."""

import asyncio

from barnabas.web.http1 import JoinedWrites


class _Transport(asyncio.Transport):
    """What was written, and None where it was closed."""

    def __init__(self) -> None:
        super().__init__()
        self.written: list[bytes | None] = []

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written.append(bytes(data))

    def close(self) -> None:
        self.written.append(None)

    def is_closing(self) -> bool:
        return None in self.written


async def test_what_is_written_in_one_turn_is_sent_together() -> None:
    inner = _Transport()
    joined = JoinedWrites(inner, asyncio.get_running_loop())
    joined.write(b"head ")
    joined.write(b"body")
    assert inner.written == []
    await asyncio.sleep(0)
    assert inner.written == [b"head body"]
    joined.write(b"the next")
    await asyncio.sleep(0)
    assert inner.written == [b"head body", b"the next"]


async def test_a_connection_is_closed_after_what_was_written() -> None:
    inner = _Transport()
    joined = JoinedWrites(inner, asyncio.get_running_loop())
    joined.write(b"the last")
    joined.close()
    assert joined.is_closing()
    await asyncio.sleep(0)
    assert inner.written == [b"the last", None]


async def test_nothing_is_sent_once_the_other_side_is_gone() -> None:
    inner = _Transport()
    joined = JoinedWrites(inner, asyncio.get_running_loop())
    joined.write(b"too late")
    inner.close()
    await asyncio.sleep(0)
    assert inner.written == [None]
