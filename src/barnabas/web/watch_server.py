"""An HTTP server for metrics and health only, with its own thread and event loop.

Nodes and Python pipelines have one. Other services serve the same paths on their own listeners.
"""

from __future__ import annotations

import ssl
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final

from barnabas.base.descriptors import DescriptorReserve
from barnabas.web.crowd import Crowd
from barnabas.web.guard import Refusal, only_loopback
from barnabas.web.listening import BoundListener, ListenAddress
from barnabas.web.login import BasicLogin
from barnabas.web.protection import Protection, Refused, Rules
from barnabas.web.server import ServerThread, WebServer
from barnabas.web.watch import Watch

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

CONNECTIONS_MAX: Final = 16
"""At a time: scrapers are few. For one more the oldest is closed."""
_IDLE_S: Final = 60.0
_STOP_S: Final = 0.5
"""Requests that are under way at the end may take this long."""
_TEXT: Final = b"text/plain; charset=utf-8"
_REFUSALS: Final = {
    Refusal.OTHER_HOST: (403, b"Not for this page or host\n"),
    Refusal.OTHER_ORIGIN: (403, b"Not for this page or host\n"),
    Refusal.NO_LOGIN: (401, b"Unauthorized\n"),
    Refusal.NO_METHOD: (405, b"Ask with GET\n"),
}


def serve_watch(
    address: ListenAddress,
    metrics: Callable[[], Awaitable[bytes]],
    ready: Callable[[], Awaitable[str | None]],
    *,
    name: str,
    login: BasicLogin | None = None,
    tls: ssl.SSLContext | Callable[[], ssl.SSLContext] | None = None,
) -> ServerThread:
    """Serve what `Watch` does, until the thread is closed. `name` is the thread's.

    Raises CannotListenError.
    """
    crowd = Crowd(CONNECTIONS_MAX)
    rules = Rules(
        own_names=() if only_loopback([address.host]) else None,
        login=login,
        watch=Watch(metrics, ready, crowd),
    )
    server = WebServer(
        Protection(_not_found, _refused, rules),
        [BoundListener(address)],
        crowd,
        tls=tls,
        idle_s=_IDLE_S,
        stop_s=_STOP_S,
        reserve=_OwnReserve(),
    )
    thread = ServerThread(server, name)
    thread.start()
    return thread


class _OwnReserve(DescriptorReserve):
    """Lets scrapes use reserved descriptors: they matter most when descriptors run short."""

    __slots__ = ()

    def is_short(self, *, is_own: bool = True) -> bool:
        return super().is_short(is_own=is_own)


def _refused(refusal: Refusal) -> Refused:
    status, body = _REFUSALS.get(refusal, (503, b"Try again\n"))
    return Refused(status, body, _TEXT)


async def _not_found(scope: Scope, receive: Receive, send: Send) -> None:
    body = b"Look at /metrics\n"
    headers = [(b"content-type", _TEXT), (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": 404, "headers": headers})
    body = b"" if scope["method"] == "HEAD" else body
    await send({"type": "http.response.body", "body": body})
