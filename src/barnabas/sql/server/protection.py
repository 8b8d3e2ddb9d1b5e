"""What stands between the network and the REST interface: bounds, and pages of other origins.

A web page may send requests to any address that its reader's machine reaches. So a request that
names another origin than the server's own is refused, unless `access.control.allow.origin` has it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from starlette.middleware.cors import CORSMiddleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from barnabas.sql.server.errors import FORBIDDEN, MEDIA_TYPE, TIMED_OUT, ApiError
from barnabas.web.bodies import BodyBudget, SlowBodyError, TooManyBodiesError
from barnabas.web.crowd import BODY_S
from barnabas.web.guard import is_meant_for_loopback, may_ask

REQUESTS_MAX = 1_000
"""Requests that are answered at once; more are turned away until some are done."""
_ROW_BY_ROW = "/inserts-stream"
"""Its body is sent for as long as the client likes, and answered meanwhile."""
TOO_BUSY = 50302
ORIGINS = "access.control.allow.origin"
METHODS = "access.control.allow.methods"
HEADERS = "access.control.allow.headers"


class Protection:
    """Lets through what is within bounds and of an origin that may ask."""

    def __init__(
        self,
        app: ASGIApp,
        origins: frozenset[str] = frozenset(),
        *,
        is_on_loopback: bool = False,
        requests_max: int = REQUESTS_MAX,
        body_s: float = BODY_S,
    ) -> None:
        self._app = app
        self._origins = origins
        self._is_on_loopback = is_on_loopback
        self._requests_max = requests_max
        self._bodies = BodyBudget(body_s)
        self._running = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        refusal = self._refusal(scope)
        if refusal is not None:
            await refuse(refusal, scope, receive, send)
            return
        if scope["type"] == "websocket" or scope["path"] == _ROW_BY_ROW:
            await self._run(scope, receive, send)
            return
        try:
            body = await self._bodies.take(receive)
        except SlowBodyError as error:
            await refuse(ApiError(TIMED_OUT, str(error)), scope, receive, send)
            return
        except TooManyBodiesError as error:
            await refuse(ApiError(TOO_BUSY, str(error)), scope, receive, send)
            return
        try:
            await self._run(scope, body.receive, send)
        finally:
            body.release()

    async def _run(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._running >= self._requests_max:
            busy = ApiError(TOO_BUSY, "The server has too many requests")
            await refuse(busy, scope, receive, send)
            return
        self._running += 1
        try:
            await self._app(scope, receive, _sealed(send) if scope["type"] == "http" else send)
        finally:
            self._running -= 1

    def _refusal(self, scope: Scope) -> ApiError | None:
        if self._is_on_loopback and not _is_meant_for_us(scope):
            return ApiError(FORBIDDEN, "The request is for another host")
        if not self._may_ask(scope):
            return ApiError(FORBIDDEN, "Requests of other origins are not allowed")
        return None

    def _may_ask(self, scope: Scope) -> bool:
        headers = dict(scope["headers"])
        return may_ask(
            headers.get(b"origin"),
            headers.get(b"sec-fetch-site"),
            headers.get(b"host", b""),
            self._origins,
        )


def _is_meant_for_us(scope: Scope) -> bool:
    hosts = [value for name, value in scope["headers"] if name == b"host"]
    return all(is_meant_for_loopback(host) for host in hosts)


def _sealed(send: Send) -> Send:
    """Answers that browsers do not take for something else."""

    async def send_sealed(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = [*message.get("headers", ()), (b"x-content-type-options", b"nosniff")]
            message = {**message, "headers": headers}
        await send(message)

    return send_sealed


async def refuse(
    error: ApiError,
    scope: Scope,
    receive: Receive,
    send: Send,
    headers: tuple[tuple[bytes, bytes], ...] = (),
) -> None:
    """Answer a request or a web socket's handshake with an error."""
    body = json.dumps(error.body()).encode()
    all_headers = [
        (b"content-type", MEDIA_TYPE.encode()),
        (b"content-length", b"%d" % len(body)),
        *headers,
    ]
    kind = "http.response"
    if scope["type"] == "websocket":
        await receive()
        if "websocket.http.response" not in scope.get("extensions", {}):
            await send({"type": "websocket.close", "code": 1008})
            return
        kind = "websocket.http.response"
    await send({"type": f"{kind}.start", "status": error.status, "headers": all_headers})
    await send({"type": f"{kind}.body", "body": body, "more_body": False})


def protected(app: ASGIApp, values: Mapping[str, Any], *, is_on_loopback: bool = False) -> ASGIApp:
    """The application within bounds, open to the origins that the properties name.

    On loopback it answers to addresses and `localhost` alone: the name that a page was loaded
    under may have been made to lead here meanwhile (DNS rebinding).
    """
    origins = _words(values.get(ORIGINS))
    if origins:
        app = CORSMiddleware(
            app,
            allow_origins=origins,
            allow_methods=_words(values.get(METHODS)) or ["GET", "POST", "HEAD"],
            allow_headers=_words(values.get(HEADERS))
            or ["X-Requested-With", "Content-Type", "Accept", "Origin"],
        )
    return Protection(app, frozenset(origins), is_on_loopback=is_on_loopback)


def _words(value: Any) -> list[str]:
    return [word.strip() for word in str(value or "").split(",") if word.strip()]
