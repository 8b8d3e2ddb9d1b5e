"""Bodies of requests are taken in before anything is done for their clients.

So a request takes a place among those that are answered at once only when it is whole: clients that
send bodies slowly hold up nobody. All bodies together are bounded, and each has a time.
"""

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Final

from barnabas.base.http_crowd import BODY_S

BODY_BYTES_MAX: Final = 16 * 1024 * 1024
"""What is taken in of one body; the application sees the rest come, and may refuse it."""
BODIES_BYTES_MAX: Final = 256 * 1024 * 1024
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]


class SlowBodyError(Exception):
    """A body did not arrive in time."""


class TooManyBodiesError(Exception):
    """The bodies of all requests together are too large."""


class Body:
    """What has been taken in of a request, until `release`."""

    __slots__ = ("_budget", "_receive", "_size", "_whole")

    def __init__(self, budget: "BodyBudget", receive: Receive) -> None:
        self._budget, self._receive = budget, receive
        self._whole: MutableMapping[str, Any] | None = None
        self._size = 0

    async def take(self) -> None:
        """Take the body in. Raises TooManyBodiesError."""
        parts = bytearray()
        while True:
            message = await self._receive()
            if message["type"] != "http.request":
                self._whole = message
                return
            part = message.get("body", b"")
            self._size += len(part)
            self._budget.grow(len(part))
            parts += part
            more = message.get("more_body", False)
            if not more or len(parts) > BODY_BYTES_MAX:
                body = bytes(parts)
                self._whole = {"type": "http.request", "body": body, "more_body": more}
                return

    async def receive(self) -> MutableMapping[str, Any]:
        """Give the body, and then what comes after it."""
        whole, self._whole = self._whole, None
        return await self._receive() if whole is None else whole

    def release(self) -> None:
        """The request is answered."""
        self._budget.grow(-self._size)
        self._size = 0


class BodyBudget:
    """The bodies of a server's requests."""

    def __init__(self, seconds: float = BODY_S, bytes_max: int = BODIES_BYTES_MAX) -> None:
        self._seconds, self._bytes_max = seconds, bytes_max
        self._held_bytes = 0

    async def take(self, receive: Receive) -> Body:
        """Take a body in; `release` it in the end. Raises SlowBodyError, TooManyBodiesError."""
        body = Body(self, receive)
        try:
            async with asyncio.timeout(self._seconds):
                await body.take()
        except TimeoutError:
            body.release()
            raise SlowBodyError("The request did not arrive in time") from None
        except BaseException:
            body.release()
            raise
        return body

    def grow(self, size_bytes: int) -> None:
        self._held_bytes += size_bytes
        if size_bytes > 0 and self._held_bytes > self._bytes_max:
            raise TooManyBodiesError("The server has too many large requests")
