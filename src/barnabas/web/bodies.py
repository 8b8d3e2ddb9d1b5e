"""Bodies of requests, and JSON in them.

A body is read in full before the application sees the request. So a request counts towards the
number answered at once only when it has arrived: clients that send bodies slowly delay nobody else.
The total size of all bodies is bounded, and each has a time limit. Above the bound, the largest
body that is still arriving is dropped.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Final

from barnabas.web.crowd import BODY_S

BODY_BYTES_MAX: Final = 16 * 1024 * 1024
"""Read ahead of one body; the application receives the rest in parts, and may refuse it."""
BODIES_BYTES_MAX: Final = 256 * 1024 * 1024
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]


class SlowBodyError(Exception):
    """A body did not arrive in time."""


class TooManyBodiesError(Exception):
    """The bodies of all requests together are too large, and this is the largest under way."""


class Body:
    """The part of a request's body that has been read, until `release`."""

    __slots__ = ("_budget", "_receive", "_whole", "is_given_up", "size_bytes")

    def __init__(self, budget: "BodyBudget", receive: Receive) -> None:
        self._budget, self._receive = budget, receive
        self._whole: MutableMapping[str, Any] | None = None
        self.size_bytes = 0
        self.is_given_up = False

    async def take(self) -> None:
        """Read the body."""
        parts = bytearray()
        while True:
            message = await self._receive()
            if message["type"] != "http.request":
                self._whole = message
                return
            part = message.get("body", b"")
            self._budget.grow(self, len(part))
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
        self._budget.leave(self)


class BodyBudget:
    """The bodies of a server's requests."""

    def __init__(self, seconds: float = BODY_S, bytes_max: int = BODIES_BYTES_MAX) -> None:
        self._seconds, self._bytes_max = seconds, bytes_max
        self._held_bytes = 0
        self._under_way: dict[Body, asyncio.Timeout] = {}

    async def take(self, receive: Receive) -> Body:
        """Read a body; the caller must `release` it. Raises SlowBodyError, TooManyBodiesError."""
        body = Body(self, receive)
        try:
            async with asyncio.timeout(self._seconds) as limit:
                self._under_way[body] = limit
                await body.take()
                if body.is_given_up:  # with its last part
                    raise TimeoutError
        except TimeoutError:
            body.release()
            if body.is_given_up:
                raise TooManyBodiesError("The server has too many large requests") from None
            raise SlowBodyError("The request did not arrive in time") from None
        except BaseException:
            body.release()
            raise
        finally:
            self._under_way.pop(body, None)
        return body

    def grow(self, body: Body, size_bytes: int) -> None:
        """Count bytes of a body that have arrived; this may drop the largest body under way."""
        if body.is_given_up:
            return
        body.size_bytes += size_bytes
        self._held_bytes += size_bytes
        if self._held_bytes > self._bytes_max:
            largest = max(self._under_way, key=lambda one: one.size_bytes)
            largest.is_given_up = True
            limit = self._under_way.pop(largest)
            if not limit.expired():  # expired, and its task has not run since
                limit.reschedule(asyncio.get_running_loop().time())
            self.leave(largest)

    def leave(self, body: Body) -> None:
        """Stop counting a body."""
        self._held_bytes -= body.size_bytes
        body.size_bytes = 0


DEPTH_MAX: Final = 200
"""Objects and arrays within each other; code that walks them may recurse."""


def parse_json(data: bytes | bytearray | str, **hooks: Any) -> Any:
    """Return what a text of JSON says; `hooks` are those of `json.loads`.

    Raises ValueError for anything but JSON: also NaN and Infinity, bytes that are not text, numbers
    of thousands of digits, values nested too deeply.
    """
    try:
        found = json.loads(data, parse_constant=_refuse, **hooks)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    _check_depth(found)
    return found


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is not a value of JSON")


def _check_depth(value: Any) -> None:
    level = [value]
    for _ in range(DEPTH_MAX + 1):
        inner = [one for one in level if isinstance(one, dict | list)]
        if not inner:
            return
        level = [part for one in inner for part in (one.values() if isinstance(one, dict) else one)]
    raise ValueError(f"nested deeper than {DEPTH_MAX} levels")
