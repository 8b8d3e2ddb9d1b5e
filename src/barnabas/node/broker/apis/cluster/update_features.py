"""UpdateFeatures (key 57), versions 0-2: KIP-584, 778, 853, 1022. Decided by the controller."""

from barnabas.node.broker.context import RequestContext
from barnabas.node.broker.controller.requests import ask_controller
from barnabas.node.broker.services import BrokerServices
from barnabas.protocol.messages.nodes import UpdateFeaturesRequest, UpdateFeaturesResponse


async def handle_update_features(
    services: BrokerServices, context: RequestContext, request: UpdateFeaturesRequest
) -> UpdateFeaturesResponse:
    """Raise or lower finalized feature levels, all or none."""
    response: UpdateFeaturesResponse = await ask_controller(
        services, context, request, request.timeout_ms
    )
    return response
