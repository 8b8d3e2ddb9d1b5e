"""The REST interface as an ASGI application: bodies in, JSON out, errors with Kafka's codes.

Handlers block, so each runs in a thread. What another worker has to do is asked of it: `forward` in
the query bounds that to two workers. On loopback it answers to addresses and `localhost` alone, and
to pages of other origins only where `access.control.allow.origin` names them: connectors read files
and databases of their machine.

Source: RestServer, HerderRequestHandler and ConnectExceptionMapper (Kafka 4.3).
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final
from urllib.parse import quote, urlencode

import httpx
from starlette.types import ASGIApp, Receive, Scope, Send

from barnabas.connect.daemon_threads import DaemonThreads
from barnabas.connect.errors.requests import ElsewhereError, RequestError, ShuttingDownError
from barnabas.connect.rest.bodies import Answer, Handler, Request, Route, names_of, parse_query
from barnabas.web.guard import Refusal
from barnabas.web.login import BasicLogin
from barnabas.web.passwords import Passwords
from barnabas.web.protection import Origins, Protection, Refused, Rules
from barnabas.web.routing import Routes, segments
from barnabas.web.watch import Watch

_log = logging.getLogger(__name__)
BODY_BYTES_MAX: Final = 16 * 1024 * 1024
REQUEST_S: Final = 90.0
THREADS: Final = 32
_JSON: Final = "application/json"
_PHRASES: Final = {
    404: "Not Found",
    405: "Method Not Allowed",
    406: "Not Acceptable",
    413: "Request Entity Too Large",
    415: "Unsupported Media Type",
}
REQUESTS_MAX: Final = 200
"""Requests that are answered at once; more are turned away until some are done."""
_REALM: Final = "KafkaConnect"
_INTERNAL: Final = (
    ("POST", re.compile(r"/?connectors/[^/]+/tasks/?")),
    ("PUT", re.compile(r"/?connectors/[^/]+/fence/?")),
)
"""Between workers, signed with their session key: no login."""
_STATUSES: Final = {
    Refusal.OTHER_HOST: 403,
    Refusal.OTHER_ORIGIN: 403,
    Refusal.NO_RIGHT: 403,
    Refusal.NO_METHOD: 405,
    Refusal.SLOW_BODY: 408,
    Refusal.LARGE_BODIES: 503,
    Refusal.TOO_MANY_REQUESTS: 503,
    Refusal.NOT_READY: 503,
}


class EndedError(Exception):
    """A handler raised what would end the process, as `sys.exit` does."""


class TooLargeError(Exception):
    """A body is larger than bodies may be."""


class RestApp:
    """Answers by a table of routes."""

    def __init__(
        self,
        routes: Sequence[Route],
        client: httpx.AsyncClient | None = None,
        hide: Callable[[str], str] = str,
    ) -> None:
        self._routes: Routes[Handler] = Routes(routes)
        self._client, self._hide = client, hide
        self._threads = DaemonThreads(THREADS, "connect-rest")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        try:
            answer, headers = await self._answer(scope, receive)
        except asyncio.CancelledError:  # the server ends, and waits for this request no longer
            _log.warning(
                "%s %s: not answered before the server stopped", scope["method"], scope["path"]
            )
            ending = ShuttingDownError()
            answer, headers = _error(ending.status, str(ending)), {}
        except Exception as error:  # noqa: BLE001  a fault of ours, told to the client
            _log.warning("%s %s: %s", scope["method"], scope["path"], error, exc_info=error)
            answer, headers = _error(500, self._hide(str(error))), {}
        await _send(answer, headers, scope["method"] == "HEAD", send)

    async def _answer(self, scope: Scope, receive: Receive) -> tuple[Answer, dict[str, str]]:
        method, raw_path = scope["method"], scope.get("raw_path", b"") or scope["path"].encode()
        raw_path = raw_path.partition(b"?")[0]
        raw = raw_path.decode("latin-1")
        node, parameters = self._routes.find(segments(raw_path))
        if node is None:
            return _error(404), {}
        handler = node.handler(method)
        if handler is None:
            allowed = {"allow": ",".join(node.methods)}
            return (Answer(200) if method == "OPTIONS" else _error(405)), allowed
        headers = {
            name.decode("latin-1").lower(): value.decode("latin-1")
            for name, value in scope["headers"]
        }
        try:
            body = await _read(receive)
        except TooLargeError:
            return _error(413), {}
        if not _accepts(headers.get("accept", "")):
            return _error(406), {}
        if body and method not in ("GET", "HEAD") and not _is_json(headers.get("content-type", "")):
            return _error(415), {}
        query = parse_query(scope.get("query_string", b"").decode("latin-1"))
        base = f"{scope.get('scheme', 'http')}://{headers.get('host', 'localhost')}"
        request = Request(method, raw, body, headers, query, names_of(parameters), base)
        return await self._handle(handler, request), {}

    async def _handle(self, handler: Handler, request: Request) -> Answer:
        try:
            work = asyncio.wrap_future(self._threads.submit(_handled, handler, request))
            answer = await asyncio.wait_for(asyncio.shield(work), REQUEST_S)
        except ElsewhereError as error:
            return await self._forward(request, error)
        except TimeoutError:
            return _error(500, "Request timed out")
        except RequestError as error:
            return _error(error.status, self._hide(str(error)))
        except Exception as error:  # noqa: BLE001  told to the client
            _log.warning("%s %s: %s", request.method, request.path, error, exc_info=error)
            return _error(500, self._hide(str(error)))
        if answer.location is None:
            return answer
        return Answer(answer.status, answer.body, request.base_url + answer.location)

    async def _forward(self, request: Request, error: ElsewhereError) -> Answer:
        if request.may_forward is False:
            return _error(
                409,
                "Cannot complete request because of a conflicting operation (e.g. worker "
                "rebalance)",
            )
        if error.url is None or self._client is None:
            return _error(
                409,
                "Cannot complete request momentarily due to no known leader URL, likely because a "
                "rebalance was underway.",
            )
        query = {name: values for name, values in request.query.items() if name != "forward"}
        query["forward"] = ["true" if request.may_forward is None else "false"]
        path = quote(request.path, safe="/%:@!$&'()*+,;=~-._")
        url = f"{error.url.rstrip('/')}{path}?{urlencode(query, doseq=True)}"
        kept = {
            name: request.headers[name]
            for name in ("authorization", "content-type")
            if name in request.headers
        }
        try:
            response = await self._client.request(
                request.method, url, content=request.body, headers=kept, timeout=REQUEST_S
            )
        except httpx.HTTPError as problem:
            return _error(500, f"IO Error trying to forward REST request: {problem}")
        location = response.headers.get("location")
        return Answer(response.status_code, location=location, raw=response.content or None)

    def close(self) -> None:
        """Take no more work."""
        self._threads.drop()


def _handled(handler: Handler, request: Request) -> Answer:
    """Handle a request. Raises EndedError in place of what is no Exception."""
    try:
        return handler(request)
    except Exception:
        raise
    except BaseException as error:
        raise EndedError(f"the request ended with {type(error).__name__}: {error}") from error


async def _read(receive: Receive) -> bytes:
    parts, size = [], 0
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return b""
        part = message.get("body", b"")
        size += len(part)
        if size > BODY_BYTES_MAX:
            raise TooLargeError
        parts.append(part)
        if not message.get("more_body", False):
            return b"".join(parts)


def _accepts(header: str) -> bool:
    kinds = [part.partition(";")[0].strip().lower() for part in header.split(",")]
    return not header.strip() or any(kind in ("*/*", "application/*", _JSON) for kind in kinds)


def _is_json(header: str) -> bool:
    return header.partition(";")[0].strip().lower() == _JSON


def _error(status: int, text: str | None = None) -> Answer:
    message = f"HTTP {status} {_PHRASES[status]}" if text is None else text
    return Answer(status, {"error_code": status, "message": message})


def json_bytes(value: Any) -> bytes:
    """Return JSON as it is sent."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False, default=str).encode(
        errors="replace"
    )


async def _send(answer: Answer, extra: dict[str, str], is_head: bool, send: Send) -> None:
    body = answer.raw
    if body is None:
        body = b"" if answer.body is None else json_bytes(answer.body)
    headers = [(b"content-length", b"%d" % len(body))] if answer.status != 204 else []
    if body:
        headers.append((b"content-type", answer.content_type.encode()))
    if answer.location is not None:
        headers.append((b"location", answer.location.encode("latin-1", "replace")))
    headers += [(name.encode(), value.encode()) for name, value in extra.items()]
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    await send({"type": "http.response.body", "body": b"" if is_head else body})


def refused(refusal: Refusal) -> Refused:
    """A refusal as Kafka's worker says it."""
    if refusal is Refusal.NO_LOGIN:
        return Refused(401, b"User cannot access the resource.", b"text/plain")
    status, text = _STATUSES[refusal], refusal.value
    if refusal is Refusal.TOO_MANY_REQUESTS:
        text = "The worker has too many requests"
    body = json_bytes({"error_code": status, "message": text})
    return Refused(status, body, b"application/json")


def protected(
    app: ASGIApp,
    settings: Mapping[str, str],
    *,
    headers: Sequence[tuple[bytes, bytes]] = (),
    passwords: Passwords | None = None,
    is_on_loopback: bool = False,
    watch: Watch | None = None,
) -> Protection:
    """Return the application behind what the worker's settings ask for."""
    login = None
    if passwords is not None:
        login = BasicLogin(passwords, _REALM, is_open=_is_internal)
    rules = Rules(
        origins=Origins.of(settings),
        own_names=() if is_on_loopback else None,
        login=login,
        watch=watch,
        requests_max=REQUESTS_MAX,
        headers=headers,
    )
    return Protection(app, refused, rules)


def _is_internal(scope: Scope) -> bool:
    path, asked = scope["path"], scope.get("method")  # a web socket has none
    return any(asked == method and form.fullmatch(path) for method, form in _INTERNAL)
