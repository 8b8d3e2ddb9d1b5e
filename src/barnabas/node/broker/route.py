"""Routes: an API, and the handler that answers its requests.

A table of routes (`node/broker/handlers.py`, `node/broker/controller/handlers.py`) says what a
listener serves. Types bind its ends: a handler takes the request of its API and returns the
response of it, and gets the services of its listener.
"""

import asyncio
from collections.abc import Awaitable, Callable, Generator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, TypeAlias, TypeVar

from barnabas.base.network import Part
from barnabas.node.broker.context import RequestContext
from barnabas.node.broker.in_parts import Each
from barnabas.node.broker.responses import answer_later, give_up, respond
from barnabas.node.loop.promise import Promise
from barnabas.node.net.connection import Reply
from barnabas.protocol.apis import AnyApi, Api
from barnabas.protocol.codec import decode_at
from barnabas.protocol.schema import Message

R = TypeVar("R")


class Measured(Generic[R]):
    """Awaits `work`; `busy_ns` is the time of its steps so far."""

    __slots__ = ("_clock_ns", "_work", "busy_ns")

    def __init__(self, work: Awaitable[R], clock_ns: Callable[[], int]) -> None:
        self._work = work
        self._clock_ns = clock_ns
        self.busy_ns = 0

    def __await__(self) -> Generator[Any, None, R]:
        steps, clock_ns = self._work.__await__(), self._clock_ns
        error: BaseException | None = None
        while True:
            started_ns = clock_ns()
            try:
                awaited = steps.send(None) if error is None else steps.throw(error)
            except StopIteration as end:
                result: R = end.value
                return result
            finally:
                self.busy_ns += clock_ns() - started_ns
            error = None
            try:
                yield awaited
            except BaseException as raised:  # noqa: BLE001  # it is the work's to handle
                error = raised


S = TypeVar("S", contravariant=True)
Req = TypeVar("Req", bound=Message)
Resp = TypeVar("Resp", bound=Message)

Answer: TypeAlias = Sequence[Part] | Reply
Handler: TypeAlias = Callable[[S, RequestContext, Req], Resp | Awaitable[Resp]]
"""Answers a decoded request, at once or later."""
RawHandler: TypeAlias = Callable[[S, RequestContext, bytearray, int], Answer]
"""Answers a frame, whose body begins at the position."""
AnswerRequest: TypeAlias = Callable[[RequestContext, bytearray, int], Answer]
"""A `RawHandler` that has its services."""
RefuseVersion: TypeAlias = Callable[[int], Sequence[Part]]
"""Answers the request of this correlation id, whose version is not served."""


@dataclass(frozen=True, slots=True)
class Route(Generic[S]):
    """An API, and who answers its requests, of listeners whose services are `S`.

    `route` and `raw_route` make it: they see to it that API and handler fit each other.
    """

    api: AnyApi
    handler: Callable[..., object]
    bind: "Callable[[S, WaitingRequests], AnswerRequest]"
    """The handler with the services of its listener."""
    refuse_version: RefuseVersion | None = None
    """Answers requests of an unknown version; None: the connection is closed, as in Kafka."""


def route(
    api: Api[Req, Resp],
    handler: Handler[S, Req, Resp],
    refuse_version: RefuseVersion | None = None,
    *,
    each: Each | None = None,
) -> Route[S]:
    """Route an API to a handler that takes its request decoded and returns the response.

    `each`: the list whose elements are answered each for itself.
    """

    def bind(services: S, waiting: "WaitingRequests") -> AnswerRequest:
        request_class = api.request

        def answer(context: RequestContext, frame: bytearray, position: int) -> Answer:
            # What may follow the body is not looked at, as in Kafka: librdkafka's Metadata
            # requests from v11 on carry a byte too many.
            request, _ = decode_at(request_class, context.api_version, frame, position)
            if each is not None and each.once(request):
                handle = partial(handler, services, context)
                return waiting.start(each.answer(context, request, handle), context)
            response = handler(services, context, request)
            if isinstance(response, Message):
                return respond(context, response)
            if isinstance(response, Promise):
                return answer_later(response, context, respond)
            return waiting.start(response, context)

        return answer

    return Route(api, handler, bind, refuse_version)


def raw_route(api: AnyApi, handler: RawHandler[S]) -> Route[S]:
    """Route an API to a handler that reads and writes bytes itself."""

    def bind(services: S, _: "WaitingRequests") -> AnswerRequest:
        return partial(handler, services)

    return Route(api, handler, bind)


class WaitingRequests:
    """The requests of a listener whose handlers are tasks, until they end."""

    def __init__(self) -> None:
        self._tasks: dict[asyncio.Task[None], None] = {}

    def start(self, response: Awaitable[Message], context: RequestContext) -> Reply:
        """A reply that is completed with the response."""
        reply = Reply()
        task = asyncio.ensure_future(_complete(reply, response, context))
        self._tasks[task] = None
        task.add_done_callback(self._tasks.pop)
        return reply

    async def close(self) -> None:
        """Cancel the requests that still wait.

        The last arrival has not begun yet: cancelled before that, its task would drop what it
        was given to await.
        """
        await asyncio.sleep(0)
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _complete(reply: Reply, response: Awaitable[Message], context: RequestContext) -> None:
    clock_ns = context.clock_ns
    try:
        if clock_ns is None:
            parts = respond(context, await response)
        else:
            measured = Measured(response, clock_ns)
            message = await measured
            started_ns = clock_ns()
            parts = respond(context, message)
            reply.busy_ns = measured.busy_ns + clock_ns() - started_ns
    except ConnectionAbortedError:
        reply.fail()
        return
    except Exception:  # noqa: BLE001  # our own fault: it is logged, and the node serves on
        give_up(reply, context)
        return
    reply.complete(parts)
