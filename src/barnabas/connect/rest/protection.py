"""What stands between the network and the REST interface: login, other origins, headers, bounds.

On loopback it answers to addresses and `localhost` alone, and to pages of other origins only where
`access.control.allow.origin` names them: connectors read files and databases of their machine.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from starlette.middleware.cors import CORSMiddleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from barnabas.connect.rest.app import json_bytes
from barnabas.web.bodies import BodyBudget, SlowBodyError, TooManyBodiesError
from barnabas.web.guard import basic_credentials, is_meant_for_loopback, may_ask
from barnabas.web.passwords import Passwords

ORIGINS: Final = "access.control.allow.origin"
METHODS: Final = "access.control.allow.methods"
REQUESTS_MAX: Final = 200
"""Requests that are answered at once; more are turned away until some are done."""
_INTERNAL: Final = (
    ("POST", re.compile(r"/?connectors/[^/]+/tasks/?")),
    ("PUT", re.compile(r"/?connectors/[^/]+/fence/?")),
)
"""Between workers, signed with their session key: no login."""


class Protection:
    """Lets through what may ask."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        origins: Sequence[str] = (),
        headers: Sequence[tuple[bytes, bytes]] = (),
        passwords: Passwords | None = None,
        is_on_loopback: bool = False,
    ) -> None:
        self._app, self._origins, self._headers = app, frozenset(origins), headers
        self._passwords, self._is_on_loopback = passwords, is_on_loopback
        self._running = 0
        self._bodies = BodyBudget()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        refusal = self._refusal(scope)
        if refusal is not None:
            await _refuse(*refusal, send)
            return
        try:
            body = await self._bodies.take(receive)
        except SlowBodyError as error:
            await _refuse(408, str(error), send)
            return
        except TooManyBodiesError as error:
            await _refuse(503, str(error), send)
            return
        try:
            if self._running >= REQUESTS_MAX:
                await _refuse(503, "The worker has too many requests", send)
                return
            self._running += 1
            try:
                await self._app(scope, body.receive, self._with_headers(send))
            finally:
                self._running -= 1
        finally:
            body.release()

    def _refusal(self, scope: Scope) -> tuple[int, str] | None:
        given = dict(scope["headers"])
        host, origin = given.get(b"host", b""), given.get(b"origin")
        if self._is_on_loopback and not is_meant_for_loopback(host):
            return 403, "The request is for another host"
        if not may_ask(origin, given.get(b"sec-fetch-site"), host, self._origins):
            return 403, "Requests of other origins are not allowed"
        if self._passwords is not None and not self._may_log_in(scope):
            return 401, "User cannot access the resource."
        return None

    def _may_log_in(self, scope: Scope) -> bool:
        path = scope["path"]
        if any(scope["method"] == method and form.fullmatch(path) for method, form in _INTERNAL):
            return True
        values = [value for name, value in scope["headers"] if name == b"authorization"]
        user = basic_credentials(values)
        assert self._passwords is not None
        return user is not None and self._passwords.roles(*user) is not None

    def _with_headers(self, send: Send) -> Send:
        async def send_more(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = [
                    *message.get("headers", ()),
                    (b"x-content-type-options", b"nosniff"),
                    *self._headers,
                ]
                message = {**message, "headers": headers}
            await send(message)

        return send_more


async def _refuse(status: int, text: str, send: Send) -> None:
    headers = []
    if status == 401:
        body, kind = text.encode(), b"text/plain"
        headers.append((b"www-authenticate", b'Basic realm="KafkaConnect"'))
    else:
        body, kind = json_bytes({"error_code": status, "message": text}), b"application/json"
    headers += [(b"content-type", kind), (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def protected(
    app: ASGIApp,
    settings: Mapping[str, str],
    *,
    headers: Sequence[tuple[bytes, bytes]] = (),
    passwords: Passwords | None = None,
    is_on_loopback: bool = False,
) -> ASGIApp:
    """Return the application behind what the worker's settings ask for."""
    origins = words(settings.get(ORIGINS))
    if origins:
        app = CORSMiddleware(
            app,
            allow_origins=origins,
            allow_methods=words(settings.get(METHODS)) or ["GET", "POST", "HEAD"],
            allow_headers=["X-Requested-With", "Content-Type", "Accept", "Origin"],
        )
    return Protection(
        app,
        origins=origins,
        headers=headers,
        passwords=passwords,
        is_on_loopback=is_on_loopback,
    )


def words(value: str | None) -> list[str]:
    """Return the parts of a list."""
    return [word.strip() for word in (value or "").split(",") if word.strip()]
