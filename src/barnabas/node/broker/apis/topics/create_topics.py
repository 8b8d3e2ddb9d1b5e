"""CreateTopics (key 19), versions 2-7: KIP-4, 464, 525, 516, 599. Decided by the controller."""

from barnabas.node.broker.context import RequestContext
from barnabas.node.broker.controller.requests import ask_controller
from barnabas.node.broker.services import BrokerServices
from barnabas.protocol.messages.topics import CreateTopicsRequest, CreateTopicsResponse


async def handle_create_topics(
    services: BrokerServices, context: RequestContext, request: CreateTopicsRequest
) -> CreateTopicsResponse:
    """Create topics, each for itself; or, with `validate_only`, say whether that would do."""
    response: CreateTopicsResponse = await ask_controller(
        services, context, request, request.timeout_ms
    )
    return response
