"""ElectLeaders (key 43), versions 0-2: KIP-183, 460. Decided by the controller."""

from barnabas.node.broker.context import RequestContext
from barnabas.node.broker.controller.requests import ask_controller
from barnabas.node.broker.services import BrokerServices
from barnabas.protocol.messages.partitions import ElectLeadersRequest, ElectLeadersResponse


async def handle_elect_leaders(
    services: BrokerServices, context: RequestContext, request: ElectLeadersRequest
) -> ElectLeadersResponse:
    """Let preferred replicas lead, or find unclean leaders; null names all partitions."""
    response: ElectLeadersResponse = await ask_controller(
        services, context, request, request.timeout_ms
    )
    return response
