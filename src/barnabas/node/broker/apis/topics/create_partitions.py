"""CreatePartitions (key 37), versions 0-3: KIP-195, 599. Decided by the controller."""

from barnabas.node.broker.context import RequestContext
from barnabas.node.broker.controller.requests import ask_controller
from barnabas.node.broker.services import BrokerServices
from barnabas.protocol.messages.topics import CreatePartitionsRequest, CreatePartitionsResponse


async def handle_create_partitions(
    services: BrokerServices, context: RequestContext, request: CreatePartitionsRequest
) -> CreatePartitionsResponse:
    """Add partitions to topics; or, with `validate_only`, say whether that would do."""
    response: CreatePartitionsResponse = await ask_controller(
        services, context, request, request.timeout_ms
    )
    return response
