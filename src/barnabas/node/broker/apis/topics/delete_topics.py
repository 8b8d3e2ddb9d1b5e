"""DeleteTopics (key 20), versions 1-6: KIP-4, 516, 599. Decided by the controller."""

from barnabas.node.broker.context import RequestContext
from barnabas.node.broker.controller.requests import ask_controller
from barnabas.node.broker.services import BrokerServices
from barnabas.protocol.messages.topics import DeleteTopicsRequest, DeleteTopicsResponse


async def handle_delete_topics(
    services: BrokerServices, context: RequestContext, request: DeleteTopicsRequest
) -> DeleteTopicsResponse:
    """Delete topics by name or, from version 6 on, by id."""
    response: DeleteTopicsResponse = await ask_controller(
        services, context, request, request.timeout_ms
    )
    return response
