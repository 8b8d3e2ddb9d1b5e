"""The console as an ASGI application: the page's files, login, and the interface behind it.

The interface takes changes as JSON with the header `x-console` only, which forms of other sites
cannot send; `web/protection.py` refuses requests that a browser says come from elsewhere. The page
itself has a policy under which no script runs but its own files.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, unquote

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from barnabas import __version__
from barnabas.base.errors import ConfigError
from barnabas.console.access import (
    ANONYMOUS,
    RIGHTS,
    ForbiddenError,
    Guesses,
    Role,
    Sessions,
    User,
    Vouched,
    named,
)
from barnabas.console.config import ConsoleConfig
from barnabas.console.oidc.logins import Logins
from barnabas.console.oidc.settings import CALLBACK
from barnabas.console.pages import cluster, connectors, messages, schemas, security, sql
from barnabas.console.pages.calls import (
    Answers,
    BadRequestError,
    Call,
    Download,
    Endpoint,
    LineStream,
    Streamed,
    as_bytes,
    is_unicode,
)
from barnabas.console.pages.single_sign_on import BEGIN, SingleSignOn
from barnabas.console.services.asking import AbsentError, AwayError, RefusedError
from barnabas.console.services.connectors import ChangedError
from barnabas.console.services.messages import TooManyError
from barnabas.web.bodies import parse_json
from barnabas.web.metrics import Families, metrics_text
from barnabas.web.passwords import Passwords
from barnabas.web.routing import Routes, segments

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

    from barnabas.console.services.all import Services

STATIC: Final = os.path.join(os.path.dirname(__file__), "static")
COOKIE: Final = "console_session"
MARK: Final = "x-console"
"""A header that pages of other origins cannot send without being asked for."""
BODY_BYTES_MAX: Final = 4 << 20
LOGIN_SIZE_MAX: Final = 1_000
"""Characters of a name or password: names of failed logins are kept."""
THREADS: Final = 48
STREAMS_MAX: Final = 64
STREAM_CHECK_S: Final = 5.0
"""A streamed answer checks this often whether its user still has the session and the rights."""
POLICY: Final = (
    b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    b"connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS: Final = (
    (b"content-security-policy", POLICY),
    (b"referrer-policy", b"no-referrer"),
    (b"x-frame-options", b"DENY"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
)
_NOT_KEPT: Final = {"cache-control": "no-store"}
_Answering = Callable[[Request], Awaitable["ASGIApp"]]
_Route = tuple[tuple[str, ...], _Answering]
"""The names of a path's parameters, and what answers."""
_log = logging.getLogger(__name__)


class _NoLoginError(Exception):
    """Nobody is logged in."""


class Application:
    """The console's requests."""

    def __init__(
        self,
        config: ConsoleConfig,
        services: Services,
        accounts: Passwords | None = None,
        logins: Logins | None = None,
    ) -> None:
        """`accounts` and `logins` say who may log in; with neither nobody has to."""
        self._config, self._services, self._accounts = config, services, accounts
        self._roles, self._proxies = config.roles, config.proxies
        self._sessions = Sessions(config.session_s)
        self._guesses = Guesses()
        self._threads = ThreadPoolExecutor(THREADS, "console")
        self._stream_threads = ThreadPoolExecutor(STREAMS_MAX, "console-streams")
        self._streams = 0
        self._answers = Answers()
        self._sign_on: SingleSignOn | None = None
        if logins is not None:
            self._sign_on = SingleSignOn(
                logins, self._sessions, services.audit, _set_session, self._proxies.address
            )
        self.endpoints: Sequence[Endpoint] = (
            *cluster.ENDPOINTS,
            *messages.ENDPOINTS,
            *security.ENDPOINTS,
            *schemas.ENDPOINTS,
            *connectors.ENDPOINTS,
            *sql.ENDPOINTS,
        )
        self._routes = self._table()
        static = Mount("/", StaticFiles(directory=STATIC))
        self._files = Starlette(routes=[Route("/", self._page), static])

    def close(self) -> None:
        """End the threads."""
        if self._sign_on is not None:
            self._sign_on.close()
        self._threads.shutdown(wait=False, cancel_futures=True)
        self._stream_threads.shutdown(wait=False, cancel_futures=True)

    async def metrics(self) -> bytes:
        """Figures of the console."""
        families = Families()
        what = "Searches, tails and other answers that go on."
        families.gauge("console_streams", what, self._streams)
        return metrics_text(families.all())

    async def not_ready(self) -> str | None:
        """The console serves its page even if other services are away: cards say what."""
        return None

    async def app(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request. Names in paths may have slashes: the raw path says where they end."""
        if scope["type"] != "http" or not scope["raw_path"].startswith(b"/api/"):
            await self._files(scope, receive, send)
            return
        node, found = self._routes.find(segments(scope["raw_path"]))
        route = None if node is None else node.handler(scope["method"])
        if route is None:
            status = 404 if node is None else 405
            answer: ASGIApp = _json({"error": "there is no such request", "kind": "absent"}, status)
        else:
            names, handler = route
            values = [unquote(part.decode("latin-1"), errors="replace") for part in found]
            scope["path_params"] = dict(zip(names, values, strict=True))
            answer = await handler(Request(scope, receive))
        await answer(scope, receive, send)

    def _table(self) -> Routes[_Route]:
        rows: list[tuple[str, str, _Route]] = [
            ("GET", "/api/me", ((), self._me)),
            ("POST", "/api/login", ((), self._log_in)),
            ("POST", "/api/logout", ((), self._log_out)),
        ]
        if self._sign_on is not None:
            rows.append(("GET", BEGIN, ((), self._sign_on.begin)))
            rows.append(("GET", CALLBACK, ((), self._sign_on.finish)))
        for one in self.endpoints:
            names = tuple(part[1:-1] for part in one.path.split("/") if part.startswith("{"))
            rows.append((one.method, one.path, (names, self._endpoint(one))))
        return Routes(rows)

    async def _page(self, _: Request) -> Response:
        headers = {"cache-control": "no-cache"}
        return FileResponse(os.path.join(STATIC, "index.html"), headers=headers)

    # -- who asks

    async def _user(self, request: Request) -> User:
        if not self._needs_login:
            return User(ANONYMOUS, (self._roles["admin"],), self._config.is_read_only)
        token = request.cookies.get(COOKIE, "")
        if self._sign_on is not None:
            await self._sign_on.renew(token)
        found = self._sessions.find(token)
        if found is None:
            raise _NoLoginError
        name, account = found
        if isinstance(account, Vouched):
            return User(name, self._of_names(account.roles), self._config.is_read_only)
        assert self._accounts is not None, "it has the account"
        try:
            now = self._accounts.account(name)
        except ConfigError as error:
            _log.error("nobody is logged in: %s", error)
            raise _NoLoginError from error
        if now != account:  # other roles, another password, or no account
            self._sessions.end(token)
            raise _NoLoginError
        return User(name, self._of_names(account.roles | {name}), self._config.is_read_only)

    @property
    def _needs_login(self) -> bool:
        return self._accounts is not None or self._sign_on is not None

    def _of_names(self, names: frozenset[str]) -> tuple[Role, ...]:
        return tuple(role for name, role in self._roles.items() if name in names)

    async def _me(self, request: Request) -> Response:
        """Return who is logged in, and what there is to see."""
        facts: dict[str, Any] = {
            "version": __version__,
            "needs_login": self._needs_login,
            "has_passwords": self._accounts is not None,
            "provider": None if self._sign_on is None else self._sign_on.label,
        }
        try:
            user = await self._user(request)
        except _NoLoginError:
            return _json({**facts, "user": None})
        return _json(
            {
                **facts,
                "user": user.name,
                "rights": [right for right in RIGHTS if user.may(right)],
                "everywhere": [right for right in RIGHTS if user.may(right, everywhere=True)],
                "is_read_only": user.is_read_only,
                "services": self._services.configured,
                "masked": bool(self._config.masked_fields),
            }
        )

    async def _log_in(self, request: Request) -> Response:
        address = self._proxies.address(request)
        try:
            body = await _body(request)
        except BadRequestError as error:
            return _failed(error)
        name, password = body.get("name"), body.get("password")
        if self._accounts is None or not isinstance(name, str) or not isinstance(password, str):
            return _failed(BadRequestError("name and password are needed"))
        if max(len(name), len(password)) > LOGIN_SIZE_MAX or not is_unicode(name + password):
            return _failed(BadRequestError("name or password is too long, or not text"))
        wait_s = self._guesses.wait_s(name, address)
        if wait_s > 0:
            text = f"too many wrong passwords; try again in {wait_s:.0f} s"
            return _json({"error": text, "kind": "wait"}, 429, {"retry-after": f"{wait_s:.0f}"})
        try:
            account = self._accounts.account(name)
            is_right = self._accounts.roles(name, password) is not None
        except ConfigError as error:
            _log.error("nobody can log in: %s", error)
            account, is_right = None, False
        if account is None or not is_right:
            self._guesses.failed(name, address)
            self._services.audit.note(name, address, "log in", "", "wrong name or password")
            return _json({"error": "wrong name or password", "kind": "login"}, 401)
        self._guesses.succeeded(name, address)
        self._services.audit.note(name, address, "log in", "", "done")
        response = _json({"user": name})
        is_secure = self._proxies.is_secure(request)
        _set_session(response, self._sessions.begin(name, account), is_secure)
        return response

    async def _log_out(self, request: Request) -> Response:
        try:
            await _body(request)
        except BadRequestError as error:
            return _failed(error)
        token = request.cookies.get(COOKIE, "")
        found = self._sessions.find(token)
        account = self._sessions.expired(token) if found is None else found[1]
        self._sessions.end(token)
        to = None
        if self._sign_on is not None and isinstance(account, Vouched):
            to = await self._sign_on.end_url(account.id_token)
        response = _json({"to": to})
        response.delete_cookie(COOKIE, path="/")
        return response

    # -- the interface

    def _endpoint(self, endpoint: Endpoint) -> _Answering:
        async def answer(request: Request) -> ASGIApp:
            try:
                call = await self._call(request, endpoint)
                if endpoint.is_stream and self._streams >= STREAMS_MAX:
                    raise TooManyError("too many searches and tails are under way")
                if endpoint.is_shared:
                    query = request.scope["query_string"]
                    return _as_response(await self._shared(endpoint, call, query))
                found = await self._answered(endpoint, call)
            except Exception as error:  # noqa: BLE001  told to the client
                return _failed(error)
            if isinstance(found, Streamed):
                return self._stream(found, lambda: self._check(request, endpoint, call))
            if isinstance(found, Download):
                return _download(found)
            return _as_response(found)

        return answer

    async def _answered(self, endpoint: Endpoint, call: Call) -> Streamed | Download | bytes:
        """Return what a handler answers; JSON is made in its thread, too."""

        def work() -> Streamed | Download | bytes:
            with self._services.right_of_way.short():
                found = endpoint.handler(call)
                return found if isinstance(found, Streamed | Download) else as_bytes(found)

        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, work)
        finally:
            if endpoint.method != "GET":
                self._answers.forget()

    async def _shared(self, endpoint: Endpoint, call: Call, query: bytes) -> bytes:
        """The answer for all who ask the same with the same rights.

        The handler sees their roles, and neither name nor address.
        """
        user = User("", call.user.roles, call.user.is_read_only)
        call = replace(call, user=user, address="")
        roles = tuple(role.name for role in user.roles)
        path = tuple(call.path.values())
        question = endpoint.path, path, query, roles, user.is_read_only, tuple(call.masked)

        async def ask() -> bytes:
            found = await self._answered(endpoint, call)
            assert isinstance(found, bytes), "no endpoint that is shared has another answer"
            return found

        return await self._answers.get(question, ask)

    async def _call(self, request: Request, endpoint: Endpoint) -> Call:
        user = await self._user(request)
        path = request.path_params
        body: Mapping[str, Any] = {} if endpoint.method == "GET" else await _body(request)
        names = named(path)
        try:
            user.need(endpoint.right, endpoint.what, everywhere=endpoint.everywhere, **names)
        except ForbiddenError:
            if endpoint.method != "GET":
                target = next(iter(names.values()), "")
                address = self._proxies.address(request)
                self._services.audit.note(user.name, address, endpoint.what, target, "forbidden")
            raise
        masked: Sequence[str] = ()
        everywhere = endpoint.everywhere
        if self._config.masked_fields and not user.may(
            "unmasked", everywhere=everywhere, topic=path.get("topic")
        ):
            masked = self._config.masked_fields
        address = self._proxies.address(request)
        query, maskable = request.query_params, self._config.masked_fields
        return Call(self._services, user, address, path, query, body, masked, maskable)

    async def _check(self, request: Request, endpoint: Endpoint, call: Call) -> None:
        """Raise unless the same request would be allowed now, and show no less."""
        now = await self._call(request, endpoint)
        if now.masked != call.masked:
            raise ForbiddenError("unmasked", "these records")

    def _stream(self, found: Streamed, check: Callable[[], Awaitable[None]]) -> ASGIApp:
        response = LineStream(
            found.lines,
            lambda error: _told(error)[1],
            self._stream_threads,
            check,
            STREAM_CHECK_S,
        )

        async def counted(scope: Any, receive: Any, send: Any) -> None:
            self._streams += 1
            try:
                await response(scope, receive, send)
            finally:
                self._streams -= 1

        return counted


async def _body(request: Request) -> Mapping[str, Any]:
    """The object of a change. Raises BadRequestError, also for what a form could have sent."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json" or MARK not in request.headers:
        raise BadRequestError(f"changes are application/json with the header {MARK}")
    parts = bytearray()
    async for part in request.stream():
        parts += part
        if len(parts) > BODY_BYTES_MAX:
            raise BadRequestError(f"the request is larger than {BODY_BYTES_MAX} bytes")
    try:
        found = parse_json(bytes(parts) or b"{}")
    except ValueError as error:
        raise BadRequestError(f"not JSON: {error}") from None
    if not isinstance(found, dict):
        raise BadRequestError("not an object of JSON")
    return found


def _set_session(response: Response, token: str, is_secure: bool) -> None:
    response.set_cookie(COOKIE, token, httponly=True, samesite="strict", secure=is_secure, path="/")


def _json(found: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    return _as_response(as_bytes(found), status, headers)


def _as_response(
    data: bytes, status: int = 200, headers: Mapping[str, str] | None = None
) -> Response:
    return Response(data, status, {**_NOT_KEPT, **(headers or {})}, "application/json")


def _download(found: Download) -> Response:
    name = quote(found.name, safe="")
    disposition = f"attachment; filename*=UTF-8''{name}"
    headers = {**_NOT_KEPT, "content-disposition": disposition}
    return Response(found.data, 200, headers, "application/octet-stream")


def _failed(error: Exception) -> Response:
    status, facts = _told(error)
    return _json(facts, status)


def _told(error: Exception) -> tuple[int, dict[str, Any]]:
    """The status and the words for what went wrong; our own faults say no more than that."""
    if isinstance(error, _NoLoginError):
        return 401, {"error": "log in first", "kind": "login"}
    if isinstance(error, ForbiddenError):
        return 403, {"error": str(error), "kind": "forbidden", "right": error.right}
    if isinstance(error, BadRequestError):
        facts: dict[str, Any] = {"error": str(error), "kind": "request"}
        return 400, facts if error.position is None else {**facts, "position": error.position}
    if isinstance(error, TooManyError):
        return 429, {"error": str(error), "kind": "busy"}
    if isinstance(error, AbsentError):
        return 404, {"error": str(error), "kind": "absent"}
    if isinstance(error, ChangedError):
        return 409, {"error": str(error), "kind": "changed", "config": error.config}
    if isinstance(error, RefusedError):
        return 409, {"error": str(error), "kind": "refused"}
    if isinstance(error, AwayError):
        return 503, {"error": str(error), "kind": "away", "service": error.service}
    _log.error("a request failed", exc_info=error)
    return 500, {"error": "the console failed; see its log", "kind": "fault"}
