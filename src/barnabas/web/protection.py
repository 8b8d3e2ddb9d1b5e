"""Checks before a product's routes: hosts and origins, login, limits.

Web pages may send requests to any address that their reader's machine reaches. So a request that
names another origin than the server's own is refused unless `access.control.allow.origin` has it,
and a server on loopback alone answers to addresses and to `localhost`, not to names that somebody
pointed at this machine (DNS rebinding).

Bodies are read before the product sees a request. The product gives a function that formats
refusals as its own errors.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from barnabas.web.bodies import BodyBudget, SlowBodyError, TooManyBodiesError
from barnabas.web.crowd import BODY_S
from barnabas.web.guard import Refusal, is_meant_for_loopback, may_ask

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from barnabas.web.login import BasicLogin
    from barnabas.web.watch import Watch

ORIGINS: Final = "access.control.allow.origin"
METHODS: Final = "access.control.allow.methods"
HEADERS: Final = "access.control.allow.headers"
_METHODS: Final = ("GET", "POST", "HEAD")
_HEADERS: Final = ("X-Requested-With", "Content-Type", "Accept", "Origin")
_WITHOUT_BODY: Final = frozenset({"GET", "HEAD", "OPTIONS"})
_OF_BODIES: Final = frozenset({b"content-length", b"transfer-encoding"})
_NOSNIFF: Final = (b"x-content-type-options", b"nosniff")


@dataclass(frozen=True, slots=True)
class Refused:
    """A refusal in a product's format."""

    status: int
    body: bytes
    content_type: bytes


Refuse = Callable[[Refusal], Refused]


@dataclass(frozen=True, slots=True)
class Origins:
    """Other web pages that may use an interface."""

    allowed: tuple[str, ...] = ()
    """Their origins, or `*`."""
    methods: tuple[str, ...] = _METHODS
    headers: tuple[str, ...] = _HEADERS

    @classmethod
    def of(
        cls,
        values: Mapping[str, Any],
        methods: tuple[str, ...] = _METHODS,
        headers: tuple[str, ...] = _HEADERS,
    ) -> Origins:
        """Return what a properties file says, with Jetty's defaults or these."""
        return cls(
            tuple(words(values.get(ORIGINS))),
            tuple(words(values.get(METHODS))) or methods,
            tuple(words(values.get(HEADERS))) or headers,
        )


@dataclass(frozen=True, slots=True)
class Rules:
    """A server's requirements of requests."""

    origins: Origins = field(default_factory=Origins)
    own_names: Collection[str] | None = None
    """Further names of a server that listens on loopback alone; None: it listens elsewhere."""
    login: BasicLogin | None = None
    watch: Watch | None = None
    """The endpoints of metrics and health."""
    requests_max: int | None = None
    """Requests that are answered at once; more are turned away until some are done."""
    streamed_paths: Collection[str] = ()
    """Paths whose bodies have no time limit, and are answered while they arrive."""
    linked_paths: Collection[str] = ()
    """Paths that pages of other origins may link to."""
    headers: Sequence[tuple[bytes, bytes]] = ()
    """More headers of each answer."""
    body_s: float = BODY_S


class Protection:
    """Passes requests to `app` that comply with the rules."""

    def __init__(self, app: ASGIApp, refuse: Refuse, rules: Rules | None = None) -> None:
        self._app, self._refused = app, refuse
        self._rules = rules = rules or Rules()
        self._origins = frozenset(rules.origins.allowed)
        self._headers = (_NOSNIFF, *rules.headers)
        self._bodies = BodyBudget(rules.body_s)
        self._running = 0
        self._answers = None if rules.watch is None else rules.watch.answers
        self._login, self._watch = rules.login, rules.watch
        self._run: ASGIApp = app if rules.requests_max is None else self._counted
        self._inner: ASGIApp = self._known_page
        if self._origins:
            from starlette.middleware.cors import CORSMiddleware

            self._inner = CORSMiddleware(
                self._known_page,
                allow_origins=rules.origins.allowed,
                allow_methods=rules.origins.methods,
                allow_headers=rules.origins.headers,
            )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or open a web socket."""
        kind = scope["type"]
        if kind == "http":
            send = self._sealed(send)
        elif kind != "websocket":
            await self._app(scope, receive, send)
            return
        refusal = self._foreign(scope)
        if refusal is not None:
            await self._refuse(refusal, scope, receive, send)
            return
        await self._inner(scope, receive, send)

    def _sealed(self, send: Send) -> Send:
        """Count answers, and add the headers that each has."""
        more, answers = self._headers, self._answers

        async def send_sealed(message: Message) -> None:
            if message["type"] == "http.response.start":
                if answers is not None:
                    status = message["status"]
                    answers[status] = answers.get(status, 0) + 1
                message = {**message, "headers": [*message.get("headers", ()), *more]}
            await send(message)

        return send_sealed

    def _foreign(self, scope: Scope) -> Refusal | None:
        host, origin, site, mode = b"", None, None, None
        own_names = self._rules.own_names
        for name, value in scope["headers"]:
            if name == b"host":
                host = value
                if own_names is not None and not is_meant_for_loopback(host, own_names):
                    return Refusal.OTHER_HOST
            elif name == b"origin":
                origin = value
            elif name == b"sec-fetch-site":
                site = value
            elif name == b"sec-fetch-mode":
                mode = value
        if origin is None and site is None:
            return None
        if mode == b"navigate" and scope["path"] in self._rules.linked_paths:
            return None
        return None if may_ask(origin, site, host, self._origins) else Refusal.OTHER_ORIGIN

    async def _known_page(self, scope: Scope, receive: Receive, send: Send) -> None:
        path, watch, login = scope["path"], self._watch, self._login
        if watch is not None and (path not in watch.paths or scope["type"] != "http"):
            watch = None
        if login is not None and not (watch is not None and path in watch.open_paths):
            refusal = login.refusal(scope)
            if refusal is not None:
                await self._refuse(refusal, scope, receive, send)
                return
        if watch is not None:
            await self._watched(watch, scope, receive, send)
        elif (
            scope["type"] == "websocket"
            or path in self._rules.streamed_paths
            or _has_no_body(scope)
        ):
            await self._run(scope, receive, send)
        else:
            await self._with_body(scope, receive, send)

    async def _watched(self, watch: Watch, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] not in ("GET", "HEAD"):
            allow = ((b"allow", b"GET, HEAD"),)
            await self._refuse(Refusal.NO_METHOD, scope, receive, send, allow)
        elif not await watch.answer(scope, send):
            await self._refuse(Refusal.NOT_READY, scope, receive, send)

    async def _with_body(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            body = await self._bodies.take(receive)
        except SlowBodyError:
            await self._refuse(Refusal.SLOW_BODY, scope, receive, send)
            return
        except TooManyBodiesError:
            await self._refuse(Refusal.LARGE_BODIES, scope, receive, send)
            return
        try:
            await self._run(scope, body.receive, send)
        finally:
            body.release()

    async def _counted(self, scope: Scope, receive: Receive, send: Send) -> None:
        assert self._rules.requests_max is not None
        if self._running >= self._rules.requests_max:
            await self._refuse(Refusal.TOO_MANY_REQUESTS, scope, receive, send)
            return
        self._running += 1
        try:
            await self._app(scope, receive, send)
        finally:
            self._running -= 1

    async def _refuse(
        self,
        refusal: Refusal,
        scope: Scope,
        receive: Receive,
        send: Send,
        headers: Sequence[tuple[bytes, bytes]] = (),
    ) -> None:
        """Answer a request or a web socket's handshake with an error."""
        refused = self._refused(refusal)
        body = refused.body
        headers = [
            (b"content-type", refused.content_type),
            (b"content-length", b"%d" % len(body)),
            *headers,
        ]
        if refusal is Refusal.NO_LOGIN and self._rules.login is not None:
            headers.append((b"www-authenticate", self._rules.login.challenge))
        kind = "http.response"
        if scope["type"] == "websocket":
            await receive()
            if "websocket.http.response" not in scope.get("extensions", {}):
                await send({"type": "websocket.close", "code": 1008})
                return
            kind = "websocket.http.response"
        elif scope["method"] == "HEAD":
            body = b""
        await send({"type": f"{kind}.start", "status": refused.status, "headers": headers})
        await send({"type": f"{kind}.body", "body": body, "more_body": False})


def _has_no_body(scope: Scope) -> bool:
    """Return whether it is known without waiting that no body comes."""
    if scope["method"] not in _WITHOUT_BODY or scope["http_version"][0] != "1":
        return False
    for name, _ in scope["headers"]:  # noqa: SIM110  a generator costs a read of the registry 1 %
        if name in _OF_BODIES:
            return False
    return True


def words(value: Any) -> list[str]:
    """The parts of a list in a properties file."""
    return [word.strip() for word in str(value or "").split(",") if word.strip()]
