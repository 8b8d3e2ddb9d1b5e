"""The application: one request in, one answer out, in every case.

An ASGI application for uvicorn. It does its own routing: Starlette's router costs a request more
than everything that is done here for a read.
"""

import asyncio
import itertools
import logging
import random
import time
import uuid
from dataclasses import replace
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from starlette.types import Receive, Scope, Send

from barnabas.base.backoff import ExponentialBackoff
from barnabas.registry import errors
from barnabas.registry.core.decision import View
from barnabas.registry.errors import RegistryError
from barnabas.registry.http import request_log
from barnabas.registry.http.answers import (
    COMPRESSED_FROM,
    Answer,
    Compressor,
    plain_fault,
    refusal,
    takes_gzip,
)
from barnabas.registry.http.bodies import read_object
from barnabas.registry.http.call import Call, LargeRead, Write
from barnabas.registry.http.config import HttpConfig
from barnabas.registry.http.forwarding import (
    NOT_LEADING_HEADER,
    OFFSET_HEADER,
    Forwarder,
    NotDoneError,
    target_to_send,
)
from barnabas.registry.http.negotiation import V1, answer_type, is_consumed
from barnabas.registry.http.schema_json import EncodedSchemas
from barnabas.registry.http.table import READS_OF_TEXTS, ROUTES, Handler
from barnabas.registry.http.target import Query, without_context
from barnabas.registry.large_work import LARGE_BYTES, LargeWork
from barnabas.registry.service import Done, Forward, Service
from barnabas.web.crowd import Crowd
from barnabas.web.metrics import Families, metrics_text
from barnabas.web.routing import Node, segments
from barnabas.web.watch import Watch

if TYPE_CHECKING:
    import httpx

REQUEST_ID_LENGTH_MAX = 128
BACKOFF_MS = 50
BACKOFF_MS_MAX = 500
"""Between two tries to forward a write while the leader changes."""

_log = logging.getLogger(__name__)

_VARY = (b"vary", b"Accept, Accept-Encoding")
_EMPTY_QUERY = Query(b"")


class ClientGoneError(Exception):
    """The client closed the connection before it had sent its request."""


class _Request:
    """The parts of a request that the application needs."""

    __slots__ = (
        "accept",
        "accept_encoding",
        "content_length",
        "content_type",
        "is_forwarded",
        "method",
        "receive",
        "request_id",
        "scope",
    )

    def __init__(self, scope: Scope, receive: Receive) -> None:
        self.scope = scope
        self.receive = receive
        self.method: str = scope["method"]
        self.accept = b""
        self.accept_encoding = b""
        self.content_type = b""
        self.content_length = b""
        self.request_id = b""
        self.is_forwarded = False
        for name, value in scope["headers"]:
            if name == b"accept":
                self.accept = value if not self.accept else self.accept + b"," + value
            elif name == b"content-type":
                self.content_type = value
            elif name == b"content-length":
                self.content_length = value
            elif name == b"x-request-id":
                self.request_id = value
            elif name == b"accept-encoding":
                self.accept_encoding = value
            elif name == b"x-forward":
                self.is_forwarded = value.strip().lower() == b"true"

    async def body(self, bytes_max: int) -> bytes:
        """The whole body. Raises RegistryError 413 and ClientGoneError."""
        length = self.content_length
        if length.isdigit() and int(length) > bytes_max:
            raise _too_large(bytes_max)
        parts: list[bytes] = []
        size = 0
        while True:
            message = await self.receive()
            if message["type"] == "http.disconnect":
                raise ClientGoneError
            part = message.get("body", b"")
            size += len(part)
            if size > bytes_max:
                raise _too_large(bytes_max)
            parts.append(part)
            if not message.get("more_body", False):
                return parts[0] if len(parts) == 1 else b"".join(parts)


def _too_large(bytes_max: int) -> RegistryError:
    return plain_fault(
        HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"the body is longer than {bytes_max} bytes"
    )


class RegistryApp:
    """The REST interface of one instance of the registry."""

    def __init__(
        self,
        service: Service,
        config: HttpConfig | None = None,
        *,
        leader_transport: "httpx.AsyncBaseTransport | None" = None,
    ) -> None:
        self._service = service
        self._config = config or HttpConfig()
        self._encoded = EncodedSchemas()
        self._large = LargeWork()
        self._compressor = Compressor()
        self._forwarder = Forwarder(self._config, leader_transport)
        self._backoff = ExponentialBackoff(BACKOFF_MS, BACKOFF_MS_MAX, random.Random())
        self._requests = itertools.count(1)
        self._request_ids = str(uuid.uuid4()).encode()[:24] + b"%012x"
        """Ids of requests that bring none: like UUIDs, but cheap."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        assert scope["type"] == "http", scope["type"]
        is_logged = self._config.logs_requests and request_log.is_on()
        start_s = time.perf_counter() if is_logged else 0.0
        request = _Request(scope, receive)
        try:
            answer = await self._answer(request)
        except RegistryError as fault:
            answer = refusal(fault)
        except ClientGoneError:
            return
        except (Exception, SystemExit):  # noqa: BLE001 - a bug of ours: the client learns that, and no more
            path = request_log.printable(scope["raw_path"])
            _log.exception("%s %s failed", request.method, path)
            answer = refusal(RegistryError(errors.STORE_ERROR, "the registry failed; see its log"))
        content_type = answer.content_type or answer_type(request.accept) or V1
        request_id = request.request_id
        if not request_id or len(request_id) > REQUEST_ID_LENGTH_MAX:
            request_id = self._request_ids % next(self._requests)
        headers = [
            (b"content-type", content_type),
            (b"content-length", b"%d" % len(answer.body)),
            _VARY,
            (b"x-request-id", request_id),
            *answer.headers,
        ]
        if answer.status == HTTPStatus.NO_CONTENT:
            del headers[:2]
        body = answer.body if request.method != "HEAD" else b""
        if (
            request.accept_encoding
            and len(body) >= COMPRESSED_FROM
            and takes_gzip(request.accept_encoding)
        ):
            body = await self._compressor.gzip(body)
            headers[1] = (b"content-length", b"%d" % len(body))
            headers.append((b"content-encoding", b"gzip"))
        await send({"type": "http.response.start", "status": answer.status, "headers": headers})
        await send({"type": "http.response.body", "body": body})
        if is_logged:
            duration_s = time.perf_counter() - start_s
            request_log.log_request(scope, answer.status, len(body), duration_s)

    async def close(self) -> None:
        """Close the connections to the leader."""
        self._large.close()
        await self._forwarder.close()

    def watch(self, crowd: Crowd | None = None) -> Watch:
        """The routes that show the instance's metrics and health."""
        return Watch(self._metrics, self._not_ready, crowd)

    async def _metrics(self) -> bytes:
        families, service = Families(), self._service
        what = "1 if this instance leads, 0 if another does."
        families.gauge("kafka_schema_registry_master_slave_role", what, service.is_leader)
        what = "Ids of schemas that are stored."
        families.gauge("kafka_schema_registry_schemas", what, service.view.state.size)
        return metrics_text(families.all())

    async def _not_ready(self) -> str | None:
        service = self._service
        if not service.is_ready:
            return "the topic of schemas is not read to its end"
        return "no instance leads" if service.leader_url is None else None

    async def _answer(self, request: _Request) -> Answer:
        scope = request.scope
        parts, context = without_context(segments(scope["raw_path"]))
        node, parameters = ROUTES.find(parts)
        if node is None:
            raise plain_fault(HTTPStatus.NOT_FOUND)
        method = request.method
        handler = node.handler(method)
        if handler is None:
            return _no_method(node, method)
        has_body = method in ("POST", "PUT")
        if has_body and not is_consumed(request.content_type):
            raise plain_fault(HTTPStatus.UNSUPPORTED_MEDIA_TYPE)
        if answer_type(request.accept) is None:
            raise plain_fault(HTTPStatus.NOT_ACCEPTABLE)
        data = await request.body(self._config.body_bytes_max) if has_body else b""
        body = read_object(data) if has_body and parts else {}
        query = scope["query_string"]
        service = self._service
        call = Call(
            service,
            service.view,
            parameters,
            context,
            Query(query) if query else _EMPTY_QUERY,
            body,
            self._config,
            self._encoded,
        )
        read = READS_OF_TEXTS.get(handler) if len(data) > LARGE_BYTES else None
        if read is not None:
            still = _still(call.view)
            return await self._large.run(lambda apart: read(replace(call, view=apart)), still)
        answer = handler(call)
        if isinstance(answer, Answer):
            return answer
        if isinstance(answer, LargeRead):
            return await self._large.run(answer.read, _still(call.view))
        return await self._write(request, answer, data)

    async def _write(self, request: _Request, write: Write[Any], data: bytes) -> Answer:
        service = self._service
        is_large = len(data) > LARGE_BYTES
        if write.may_be_read and not service.is_leader and not is_large:
            known = _already_there(service, write)
            if known is not None:
                return known
        deadline = time.monotonic() + self._config.write_timeout_ms / 1000
        failures = 0
        while True:
            done = await service.write(write.decide, is_large=is_large)
            if not isinstance(done, Forward):
                return await self._written(request, write, done, is_large=is_large)
            if request.is_forwarded:
                return _not_leading()
            try:
                return await self._forward(request, done.leader_url, data)
            except NotDoneError as error:
                if time.monotonic() >= deadline:
                    _log.warning("%s", error)
                    raise error.refusal from error
            failures += 1
            left_s = deadline - time.monotonic()
            await asyncio.sleep(min(self._backoff.after(failures) / 1000, left_s))

    async def _written(
        self, request: _Request, write: Write[Any], done: Done[Any], *, is_large: bool
    ) -> Answer:
        view = self._service.view
        if is_large and write.has_form:
            response = done.response
            answer = await self._large.run(
                lambda apart: write.answer(apart, response), _still(view)
            )
        else:
            answer = write.answer(view, done.response)
        if request.is_forwarded:
            answer.headers = [*answer.headers, (OFFSET_HEADER, b"%d" % done.offset)]
        return answer

    async def _forward(self, request: _Request, leader_url: str, data: bytes) -> Answer:
        """Raises NotDoneError and RegistryError 50003."""
        scope = request.scope
        answer, offset = await self._forwarder.forward(
            leader_url,
            request.method,
            target_to_send(segments(scope["raw_path"]), scope["query_string"]),
            scope["headers"],
            data,
        )
        if answer.status < HTTPStatus.MULTIPLE_CHOICES:
            await self._catch_up(offset)
        return answer

    async def _catch_up(self, offset: int | None) -> None:
        """Wait until this instance knows what the leader wrote: clients read what they write."""
        try:
            await self._service.caught_up(offset)
        except RegistryError as fault:
            _log.warning("behind the leader after a forwarded write: %s", fault.message)


def _still(view: View) -> View:
    """The view as it is now, for a thread: its state does not change."""
    return View(view.state.copy(), view.formats, view.defaults)


def _not_leading() -> Answer:
    answer = refusal(
        RegistryError(
            errors.FORWARDING_FAILED,
            "the request was forwarded to this instance, which does not lead; try again",
        )
    )
    answer.headers = [(NOT_LEADING_HEADER, b"true")]
    return answer


def _no_method(node: Node[Handler], method: str) -> Answer:
    allow = [(b"allow", ", ".join(node.methods).encode())]
    if method == "OPTIONS":
        return Answer(b"", HTTPStatus.NO_CONTENT, allow)
    answer = refusal(plain_fault(HTTPStatus.METHOD_NOT_ALLOWED))
    answer.headers = allow
    return answer


def _already_there(service: Service, write: Write[Any]) -> Answer | None:
    """The answer to a registration of a known schema, without the leader."""
    try:
        decision = write.decide(service.view)
    except RegistryError:
        return None  # the leader knows more; it is for it to refuse
    if decision.records:
        return None
    return write.answer(service.view, decision.response)
