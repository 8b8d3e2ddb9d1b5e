"""The answer to a request whose response is promised: a callback in place of a task."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import TypeVar

from barnabas.base.network import Part
from barnabas.node.broker.context import RequestContext
from barnabas.node.loop.promise import Promise
from barnabas.node.net.connection import Reply
from barnabas.protocol.apis import ApiKey

R = TypeVar("R")

telemetry = logging.getLogger(__name__)


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
