"""The dispatcher: from a frame to the handler of its API.

It reads the header of a frame by hand and finds the API's route by number. What a peer may not
send (an unknown API, a version that is not served, a body that does not decode) closes its
connection, as in Kafka; only ApiVersions answers an unknown version, with what is served (KIP-35).
"""

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from barnabas.base.network import Part
from barnabas.node.broker.client_state import ClientState, client_state
from barnabas.node.broker.context import RequestContext
from barnabas.node.broker.route import AnswerRequest, RefuseVersion, Route, WaitingRequests
from barnabas.node.broker.throttling import Throttling
from barnabas.node.net.connection import Connection, Reply
from barnabas.node.net.request_trace import RequestTrace, Tracer
from barnabas.protocol.apis import ApiKey
from barnabas.protocol.errors import DecodeError
from barnabas.protocol.frames import decode_request_header

_PREFIX = struct.Struct(">hhih")


class ListenerServices(Protocol):
    """The dispatcher's view of the services that it gives to handlers."""

    @property
    def served_apis(self) -> set[ApiKey]:
        """The APIs that ApiVersions reports."""


S = TypeVar("S", bound=ListenerServices)


@dataclass(slots=True)
class _Served:
    """A route with the services of this listener."""

    key: ApiKey
    answer: AnswerRequest
    min_version: int
    max_version: int
    flexible_from: int
    refuse_version: RefuseVersion | None


class Dispatcher(Generic[S]):
    """A listener's `net.connection.Service`: the broker's, or the controller's."""

    def __init__(self, services: S, routes: Iterable[Route[S]]) -> None:
        """`services` is what the handlers take; it gets the list of served APIs."""
        self._waiting = WaitingRequests()
        self.throttling: Throttling | None = None
        """Set while any client has a quota; it measures each request."""
        self.tracer: Tracer | None = None
        """Set where requests are traced."""
        self._served = {route.api.key: self._serve(services, route) for route in routes}
        services.served_apis.update(self._served)

    def _serve(self, services: S, route: Route[S]) -> _Served:
        api = route.api
        return _Served(
            api.key,
            route.bind(services, self._waiting),
            api.min_version,
            api.max_stable_version,
            api.flexible_from,
            route.refuse_version,
        )

    def __call__(
        self, connection: Connection, frame: bytearray, *, is_measured: bool = False
    ) -> Sequence[Part] | Reply:
        """Answer one request. Raises DecodeError to have the connection closed."""
        if self.throttling is not None and not is_measured:
            return self.throttling.answer(self, connection, frame)
        state = connection.state
        is_traced = self.tracer is not None and self.tracer.wants()
        if not isinstance(state, ClientState):
            state = client_state(connection)
        elif state.repeated is not None and not is_traced:
            repeated = state.repeated
            if is_measured:
                answer = repeated.answer(connection, frame, alone=True)
            else:
                answer = repeated.answer(connection, frame)
            if answer is not None:
                return answer
        try:
            key, version, correlation_id, id_size = _PREFIX.unpack_from(frame)
        except struct.error as error:
            raise DecodeError(f"a request of {len(frame)} bytes has no header") from error
        served = self._served.get(key)
        if served is None:
            raise DecodeError(f"API {key} is not served")
        if not served.min_version <= version <= served.max_version:
            if served.refuse_version is not None:
                return served.refuse_version(correlation_id)
            raise DecodeError(
                f"{served.key.name} is served in versions "
                f"{served.min_version} to {served.max_version}, not {version}"
            )
        client_id, position = _rest_of_header(frame, id_size, version >= served.flexible_from)
        context = RequestContext(
            key, version, correlation_id, client_id, connection, state.principal
        )
        if is_measured and self.throttling is not None:
            context.clock_ns = self.throttling.clock_ns
        if is_traced and self.tracer is not None:
            trace = context.trace = _begin(self.tracer, context)
            return trace.watch(lambda: served.answer(context, frame, position))
        return served.answer(context, frame, position)

    async def close(self) -> None:
        """Cancel the requests that still wait."""
        await self._waiting.close()


def _begin(tracer: Tracer, context: RequestContext) -> RequestTrace:
    """Begin the trace of a request, from the time at which it arrived if that is known.

    Names of attributes: OpenTelemetry's semantic conventions for messaging.
    """
    now_ns = tracer.clock_ns()
    arrived_ns = min(context.connection.arrived_ns, now_ns) or None
    attributes: dict[str, str | int | bool] = {
        "messaging.system": "kafka",
        "messaging.client.id": context.client_id or "",
        "client.address": context.client_host,
        "barnabas.listener": context.listener_name,
        "barnabas.api.version": context.api_version,
        "barnabas.correlation_id": context.correlation_id,
    }
    name = ApiKey(context.api_key).name
    root = tracer.request(name, arrived_ns or now_ns, attributes)
    return RequestTrace(root, tracer.clock_ns, arrived_ns)


def _rest_of_header(frame: bytearray, id_size: int, is_flexible: bool) -> tuple[str | None, int]:
    """Client id, and where the body begins."""
    end = 10 + max(id_size, 0)
    if not is_flexible:
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
