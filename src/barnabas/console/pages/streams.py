"""Streamed answers: lines of JSON from a thread, until it is done or the browser leaves."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from starlette.types import Message, Receive, Scope, Send

LINES_MAX: Final = 64
"""Lines that wait for a client to read."""
_WAIT_S: Final = 0.2

Lines = Callable[[threading.Event], Iterator[Any]]
"""What makes the lines; it ends when the event is set."""


class LineStream:
    """An ASGI response: each item of `lines` is a line of JSON.

    When the client goes, the event of `lines` is set at once. `told` makes a last line of an
    exception. The thread waits while the client does not read.

    `check` is called every `check_s` seconds; an exception of it ends the answer.
    """

    def __init__(
        self,
        lines: Lines,
        told: Callable[[Exception], dict[str, Any]],
        threads: ThreadPoolExecutor,
        check: Callable[[], Awaitable[None]],
        check_s: float,
    ) -> None:
        self._lines, self._told, self._threads = lines, told, threads
        self._check, self._check_s = check, check_s

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer the request."""
        stopping = threading.Event()
        loop = asyncio.get_running_loop()
        waiting: asyncio.Queue[bytes | None] = asyncio.Queue()
        places = threading.Semaphore(LINES_MAX)

        def put(line: bytes | None) -> bool:
            while not places.acquire(timeout=_WAIT_S):
                if stopping.is_set():
                    return False
            if stopping.is_set():
                return False
            loop.call_soon_threadsafe(waiting.put_nowait, line)
            return True

        def work() -> None:
            made = self._lines(stopping)
            try:
                for item in made:
                    if not put(_line(item)):
                        break
            except Exception as error:  # noqa: BLE001  told to the client
                put(_line(self._told(error)))
            finally:
                close = getattr(made, "close", None)
                if close is not None:
                    close()
                put(None)

        gone = asyncio.ensure_future(_gone(receive))
        checking = asyncio.ensure_future(self._checked())
        working = loop.run_in_executor(self._threads, work)
        try:
            await send(_START)
            while True:
                taking = asyncio.ensure_future(waiting.get())
                await asyncio.wait((taking, gone, checking), return_when=asyncio.FIRST_COMPLETED)
                if checking.done() and not gone.done():
                    taking.cancel()
                    last = _line(self._told(checking.result()))
                    await send({"type": "http.response.body", "body": last, "more_body": True})
                    break
                if not taking.done():
                    taking.cancel()
                    return
                line = taking.result()
                places.release()
                if line is None:
                    break
                await send({"type": "http.response.body", "body": line, "more_body": True})
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            stopping.set()
            gone.cancel()
            checking.cancel()
            await asyncio.shield(working)

    async def _checked(self) -> Exception:
        """Return why the answer must end, once it must."""
        while True:
            await asyncio.sleep(self._check_s)
            try:
                await self._check()
            except Exception as error:  # noqa: BLE001  told to the client
                return error


_START: Final[Message] = {
    "type": "http.response.start",
    "status": 200,
    "headers": [
        (b"content-type", b"application/x-ndjson"),
        (b"cache-control", b"no-store"),
        (b"x-accel-buffering", b"no"),
    ],
}


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _line(item: Any) -> bytes:
    return json.dumps(item, separators=(",", ":"), default=str).encode() + b"\n"
