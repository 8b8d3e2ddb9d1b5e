"""From a response, or the promise of one, to the parts of its frame."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from struct import Struct
from typing import TypeVar

from barnabas.base.disk import Buffer
from barnabas.base.network import Part
from barnabas.node.broker.context import RequestContext
from barnabas.node.loop.promise import Promise
from barnabas.node.net.connection import Reply
from barnabas.protocol.answers import encode_answer
from barnabas.protocol.apis import APIS, ApiKey
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.schema import Message

telemetry = logging.getLogger(__name__)

_HEADER = Struct(">ii")
_HEADER_FLEXIBLE = Struct(">iiB")


def respond(context: RequestContext, response: Message) -> list[Part]:
    """The frame of the answer to a request."""
    version = context.api_version
    error: int = getattr(response, "error_code", ErrorCode.NONE)
    if error:
        context.failed(error)
    flexible = APIS[context.api_key].response_header_version(version) > 0
    return frame_response(context.correlation_id, flexible, encode_answer(response, version))


def respond_instead(context: RequestContext, response: Message) -> list[Part]:
    """As `respond`, where an encoder written by hand has raised what is being handled.

    That is a bug. The client gets an answer, as `encode_answer` does, and does not ask again and
    again on new connections.
    """
    name, version = type(response).__name__, context.api_version
    telemetry.exception("cannot encode %s version %d by hand", name, version)
    return respond(context, response)


def frame_response(correlation_id: int, flexible_header: bool, parts: Sequence[Part]) -> list[Part]:
    """Put length and response header (v0, or v1 with no tagged fields) before `parts`."""
    size_bytes = sum(map(len, parts))
    if flexible_header:
        header = _HEADER_FLEXIBLE.pack(size_bytes + 5, correlation_id, 0)
    else:
        header = _HEADER.pack(size_bytes + 4, correlation_id)
    first = parts[0] if parts else b""
    if isinstance(first, bytes):
        return [header + first, *parts[1:]]
    return [header, *parts]


def frame_small_response(correlation_id: int, flexible_header: bool, body: Buffer) -> list[Part]:
    """As `frame_response` for a body that is one small piece."""
    if flexible_header:
        return [_HEADER_FLEXIBLE.pack(len(body) + 5, correlation_id, 0) + body]
    return [_HEADER.pack(len(body) + 4, correlation_id) + body]


# -- the answer to a request whose response is promised: a callback in place of a task


R = TypeVar("R")


def answer_later(
    promise: Promise[R],
    context: RequestContext,
    respond: Callable[[RequestContext, R], Sequence[Part]],
) -> Reply:
    """A reply that is completed with what `respond` makes of the promised response.

    Not while the promise is being settled: the connection goes on with its next request then,
    which must not begin in the middle of a coordinator's step.
    """
    reply = Reply()
    loop = asyncio.get_running_loop()

    def complete(response: R) -> None:
        try:
            parts = respond(context, response)
        except Exception:  # noqa: BLE001  # our own fault: it is logged, and the node serves on
            give_up(reply, context)
            return
        reply.complete(parts)

    def settled(response: R) -> None:
        loop.call_soon(complete, response)

    promise.then(settled)
    return reply


def give_up(reply: Reply, context: RequestContext) -> None:
    """Log the error that is being handled, and close the connection in place of an answer."""
    name = ApiKey(context.api_key).name
    telemetry.exception("%s failed; closing %s", name, context.client_host)
    reply.fail()
