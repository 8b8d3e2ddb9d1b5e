"""One frame to one handler.

A frame's header is read by hand, its API looked up by number, and its body given to the handler
as a decoded message, or raw for Produce and Fetch. What a peer may not send (an unknown API, a
version that is not served, a body that does not decode) closes its connection, as in Kafka; only
ApiVersions answers an unknown version, with what is served (KIP-35).
"""

import asyncio
import logging
import struct
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from barnabas.base.network import Part
from barnabas.broker.apis.cluster import api_versions
from barnabas.broker.apis.groups import offset_commit_again
from barnabas.broker.client_state import ClientState
from barnabas.broker.context import RequestContext
from barnabas.broker.deferred_reply import answer_later
from barnabas.broker.produce import handler as produce
from barnabas.broker.responses import frame_response
from barnabas.coordinator.promise import Promise
from barnabas.net.connection import Connection, Reply
from barnabas.protocol.apis import APIS, Api, ApiKey
from barnabas.protocol.codec import decode_at, encode_parts
from barnabas.protocol.errors import DecodeError
from barnabas.protocol.frames import decode_request_header
from barnabas.protocol.schema import Message

OFFSET_COMMIT = int(ApiKey.OFFSET_COMMIT).to_bytes(2, "big")
_PREFIX = struct.Struct(">hhih")

RawHandler = Callable[[Any, RequestContext, bytearray, int], "Sequence[Part] | Reply"]
Handler = Callable[[Any, RequestContext, Any], "Any | Awaitable[Any]"]

telemetry = logging.getLogger(__name__)


@dataclass(slots=True)
class Route:
    """Where one API's requests go."""

    api: Api
    handler: Handler | None
    raw_handler: RawHandler | None
    min_version: int
    max_version: int
    flexible_from: int


class Dispatcher:
    """A listener's `net.connection.Service`: the broker's, or the controller's."""

    def __init__(
        self,
        services: Any,
        handlers: Mapping[ApiKey, Handler],
        raw_handlers: Mapping[ApiKey, RawHandler],
    ) -> None:
        """`services` is what the handlers take; it is told which APIs are served."""
        self._services = services
        self._routes = {
            key: _route(key, handlers.get(key), raw_handlers.get(key))
            for key in (*handlers, *raw_handlers)
        }
        services.served_apis.update(self._routes)
        self._tasks: dict[asyncio.Task[None], None] = {}

    def __call__(self, connection: Connection, frame: bytearray) -> Sequence[Part] | Reply:
        """Answer one request. Raises DecodeError to have the connection closed."""
        state = connection.state
        if isinstance(state, ClientState):
            if state.commit_shape is not None and frame.startswith(OFFSET_COMMIT):
                answer = offset_commit_again.handle_again(self._services, state.commit_shape, frame)
            else:
                answer = produce.handle_again(self._services, connection, state.shapes, frame)
            if answer is not None:
                return answer
        try:
            key, version, correlation_id, id_size = _PREFIX.unpack_from(frame)
        except struct.error as error:
            raise DecodeError(f"a request of {len(frame)} bytes has no header") from error
        route = self._routes.get(key)
        if route is None:
            raise DecodeError(f"API {key} is not served")
        if not route.min_version <= version <= route.max_version:
            if key == ApiKey.API_VERSIONS:
                return api_versions.refuse_version(correlation_id)
            raise DecodeError(
                f"{route.api.key.name} is served in versions "
                f"{route.min_version} to {route.max_version}, not {version}"
            )
        client_id, position = self._rest_of_header(frame, version, id_size, route)
        context = RequestContext(key, version, correlation_id, client_id, connection)
        if route.raw_handler is not None:
            return route.raw_handler(self._services, context, frame, position)
        # What may follow the body is not looked at, as in Kafka: librdkafka's Metadata requests
        # from v11 on carry a byte too many.
        request, _ = decode_at(route.api.request, version, frame, position)
        assert route.handler is not None
        response = route.handler(self._services, context, request)
        if isinstance(response, Message):
            return _frame(context, response)
        if isinstance(response, Promise):
            return answer_later(response, context, _frame)
        return self._later(response, context, route)

    def _rest_of_header(
        self, frame: bytearray, version: int, id_size: int, route: Route
    ) -> tuple[str | None, int]:
        """Client id, and where the body begins."""
        end = 10 + max(id_size, 0)
        if version < route.flexible_from:
            if id_size < -1 or end > len(frame):
                raise DecodeError("a client id does not fit its request")
        elif id_size < -1 or end >= len(frame) or frame[end]:
            header, position = decode_request_header(frame)  # tagged fields, or an error
            return header.client_id, position
        else:
            end += 1
        if id_size < 0:
            return None, end
        try:
            return frame[10 : 10 + id_size].decode(), end
        except UnicodeDecodeError as error:
            raise DecodeError("a client id is not UTF-8") from error

    def _later(self, response: Awaitable[Any], context: RequestContext, route: Route) -> Reply:
        reply = Reply()
        task = asyncio.ensure_future(_complete(reply, response, context, route))
        self._tasks[task] = None
        task.add_done_callback(self._tasks.pop)
        return reply

    async def close(self) -> None:
        """Cancel the requests that still wait.

        Whoever came in last has yet to begin: cancelled before that, its task would drop what it
        was given to await.
        """
        await asyncio.sleep(0)
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _route(key: ApiKey, handler: Handler | None, raw_handler: RawHandler | None) -> Route:
    api = APIS[key]
    return Route(
        api,
        handler,
        raw_handler,
        api.min_version,
        api_versions.max_served_version(api),
        api.flexible_from if api.flexible_from is not None else 2**15,
    )


async def _complete(
    reply: Reply, response: Awaitable[Any], context: RequestContext, route: Route
) -> None:
    try:
        parts = _frame(context, await response)
    except ConnectionAbortedError:
        reply.fail()
        return
    except Exception:  # noqa: BLE001  # our own fault: it is logged, and the node serves on
        telemetry.exception("%s failed; closing %s", route.api.key.name, context.client_host)
        reply.fail()
        return
    reply.complete(parts)


def _frame(context: RequestContext, response: Message) -> list[Part]:
    version = context.api_version
    flexible = APIS[context.api_key].response_header_version(version) > 0
    return frame_response(context.correlation_id, flexible, encode_parts(response, version))
