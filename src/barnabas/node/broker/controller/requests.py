"""Requests that the controller decides: how the broker passes them on."""

from typing import Any

from barnabas.node.broker.client_state import client_state
from barnabas.node.broker.context import RequestContext
from barnabas.node.broker.controller.versions import fit
from barnabas.node.broker.services import BrokerServices
from barnabas.node.metadata.asker import Asker


def asker_of(context: RequestContext) -> Asker:
    """The sender of a request, as reported to the controller."""
    return Asker(
        str(context.principal),
        context.client_host,
        context.client_id,
        is_token=client_state(context.connection).is_token,
        api_version=context.api_version,
    )


async def ask_controller(
    services: BrokerServices, context: RequestContext, request: Any, timeout_ms: int | None = None
) -> Any:
    """The controller's response to a client's request.

    `timeout_ms` is what the client set; none or one that is not positive means no limit but the
    client's own.
    """
    limit_ms = timeout_ms if timeout_ms is not None and timeout_ms > 0 else None
    response = await services.metadata.handle(
        request,
        asker=asker_of(context),
        api_version=context.api_version,
        timeout_ms=limit_ms,
    )
    return fit(response, context.api_version)
