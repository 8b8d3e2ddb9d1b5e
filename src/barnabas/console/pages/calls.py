"""Requests to the console's interface as the pages see them, and the kinds of answers.

`LineStream` sends lines of JSON from a thread, until it is done or the browser leaves. `Answers`
keeps an answer for a moment for users whose roles have the same names, so nobody sees what their
role hides; it runs on the event loop, while threads compute the answers.
"""

from __future__ import annotations

import asyncio
import dataclasses
import json
import threading
import time
from collections.abc import Awaitable, Callable, Hashable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from barnabas.console.access import Audit, User
from barnabas.console.services.topics import Asked

if TYPE_CHECKING:
    from starlette.types import Message, Receive, Scope, Send

    from barnabas.console.services.all import Services

DIGITS_MAX: Final = 18
"""Digits of a number in a path; Python refuses to read thousands."""
LINES_MAX: Final = 64
"""Lines that wait for a client to read."""
_WAIT_S: Final = 0.2

Lines = Callable[[threading.Event], Iterator[Any]]
"""What makes the lines; it ends when the event is set."""
KEPT_S: Final = 1.0
ANSWERS_MAX: Final = 256
ANSWER_BYTES_MAX: Final = 256 * 1024
"""Larger answers go only to the users who wait for them, and are not kept."""


class BadRequestError(Exception):
    """A request lacks something; `position` is where an expression is wrong."""

    def __init__(self, message: str, position: int | None = None) -> None:
        super().__init__(message)
        self.position = position


@dataclass(frozen=True, slots=True)
class Download:
    """A file for the browser to download."""

    name: str
    data: bytes


@dataclass(frozen=True, slots=True)
class Streamed:
    """An answer that is sent as a stream."""

    lines: Lines


@dataclass(frozen=True, slots=True)
class Call:
    """One request."""

    services: Services
    user: User
    address: str
    path: Mapping[str, str]
    query: Mapping[str, str]
    body: Mapping[str, Any] = field(default_factory=dict)
    masked: Sequence[str] = ()
    """Fields that this user does not see."""
    maskable: Sequence[str] = ()
    """Fields that need the right `unmasked`."""

    def text(self, name: str, default: str = "") -> str:
        """A parameter of the query."""
        return self.query.get(name, default)

    def number(self, name: str, default: int) -> int:
        """A whole number of the query. Raises BadRequestError."""
        text = self.query.get(name, "")
        if not text:
            return default
        try:
            return int(text)
        except ValueError:
            raise BadRequestError(f"{name} is not a whole number") from None

    def flag(self, name: str) -> bool:
        """Return whether a parameter of the query is true."""
        return self.query.get(name, "") in ("1", "true")

    def asked(self, size: int = 50) -> Asked:
        """The search and the page of a list that the query asks for. Raises BadRequestError."""
        return Asked(self.text("search"), self.number("page", 0), self.number("size", size))

    def given(self, name: str, kind: type | tuple[type, ...] = str) -> Any:
        """A member of the body. Raises BadRequestError."""
        found = self.body.get(name)
        if not isinstance(found, kind) or (isinstance(found, bool) and kind is int):
            raise BadRequestError(f"{name} is missing, or is not what it should be")
        return found

    def confirm(self, name: str) -> None:
        """Raise BadRequestError if the body does not repeat the name of what is destroyed."""
        if self.body.get("confirm") != name:
            raise BadRequestError(f"write {name!r} to confirm")

    def do(self, action: str, target: str, work: Callable[[], Any], **details: Any) -> Any:
        """Do something, and note it in the audit log whether it succeeds or fails."""
        audit: Audit = self.services.audit
        try:
            found = work()
        except Exception as error:
            outcome = f"failed: {error}"
            audit.note(self.user.name, self.address, action, target, outcome, details)
            raise
        audit.note(self.user.name, self.address, action, target, "done", details)
        return found


def whole(text: str, what: str) -> int:
    """A number in a path. Raises BadRequestError."""
    if not text.isascii() or not text.isdigit() or len(text) > DIGITS_MAX:
        raise BadRequestError(f"{what} is a number")
    return int(text)


def is_unicode(text: str) -> bool:
    """Return whether a text has bytes: JSON may hold halves of surrogate pairs, which have none."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


Handler = Callable[[Call], Any]


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A row of a page's table: the right that it needs, on what its path names.

    Names in the path that rights are about: `{topic}`, `{group}`, `{subject}`, `{connector}`,
    `{query}`. `everywhere`: the right must come from a role without patterns, as for what concerns
    the whole cluster. `is_shared`: the answer depends only on the request and the user's roles,
    so users with the same roles share it for a moment.
    """

    method: str
    path: str
    right: str
    what: str
    handler: Handler
    is_stream: bool = False
    everywhere: bool = False
    is_shared: bool = False


def shared(path: str, what: str, handler: Handler) -> Endpoint:
    """Return an endpoint that pages ask repeatedly, and whose answers users share."""
    return Endpoint("GET", path, "view", what, handler, is_shared=True)


def of_cluster(method: str, path: str, right: str, what: str, handler: Handler) -> Endpoint:
    """Return an endpoint that concerns the whole cluster, or a whole service."""
    return Endpoint(method, path, right, what, handler, everywhere=True)


def destroying(action: str, name: str, work: Callable[[Services, str], Any]) -> Handler:
    """Return a handler that deletes or ends the thing that the path names as `name`.

    The body repeats its name, to confirm. `action` is the audit log's word for it.
    """

    def destroy(call: Call) -> Any:
        target = call.path[name]
        call.confirm(target)
        call.do(action, target, lambda: work(call.services, target))
        return {}

    return destroy


def members(found: Any) -> dict[str, Any]:
    """The fields of a dataclass by name."""
    return {one.name: getattr(found, one.name) for one in dataclasses.fields(found)}


def as_bytes(found: Any) -> bytes:
    """JSON, in which dataclasses are objects."""
    return json.dumps(found, separators=(",", ":"), default=_plain).encode()


def _plain(found: Any) -> Any:
    if dataclasses.is_dataclass(found):
        return members(found)
    return dict(found) if isinstance(found, Mapping) else str(found)


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
    return as_bytes(item) + b"\n"


class Answers:
    """Answers as bytes, by question."""

    def __init__(self, kept_s: float = KEPT_S, now_s: Callable[[], float] = time.monotonic) -> None:
        self._kept_s, self._now_s = kept_s, now_s
        self._kept: dict[Hashable, tuple[float, bytes]] = {}
        self._asked: dict[Hashable, asyncio.Task[bytes]] = {}
        self._forgotten = 0

    async def get(self, question: Hashable, ask: Callable[[], Awaitable[bytes]]) -> bytes:
        """Return the answer. Raises what `ask` does: a failure goes to all that wait, unkept.

        If one of those that wait is cancelled, the others still get the answer.
        """
        kept = self._kept.get(question)
        if kept is not None and self._now_s() - kept[0] <= self._kept_s:
            return kept[1]
        task = self._asked.get(question)
        if task is None:
            task = asyncio.ensure_future(self._ask(question, ask))
            self._asked[question] = task
            task.add_done_callback(lambda done: self._ended(question, done))
        return await asyncio.shield(task)

    def forget(self) -> None:
        """Drop all answers after a change, those on their way included."""
        self._forgotten += 1
        self._kept.clear()
        self._asked.clear()

    async def _ask(self, question: Hashable, ask: Callable[[], Awaitable[bytes]]) -> bytes:
        forgotten = self._forgotten
        found = await ask()
        if forgotten == self._forgotten and len(found) <= ANSWER_BYTES_MAX:
            self._kept.pop(question, None)
            while len(self._kept) >= ANSWERS_MAX:
                del self._kept[next(iter(self._kept))]  # the oldest
            self._kept[question] = self._now_s(), found
        return found

    def _ended(self, question: Hashable, task: asyncio.Task[bytes]) -> None:
        if self._asked.get(question) is task:
            del self._asked[question]
        if not task.cancelled():
            task.exception()  # retrieved, since nobody may wait for it any more
