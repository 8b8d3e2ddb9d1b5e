"""AlterConfigs (key 33), versions 0-2: KIP-133, deprecated by KIP-339. Decided by the controller.

What a request does not name is no longer set. A broker's own configuration can only be changed
through that broker, which checks that it could take it.
"""

from barnabas.node.broker.apis.configs.each_resource import decide_here, in_order
from barnabas.node.broker.context import RequestContext
from barnabas.node.broker.controller.requests import ask_controller
from barnabas.node.broker.services import BrokerServices
from barnabas.node.metadata.image import ConfigResourceType
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.configs import (
    AlterConfigsAlterConfigsResource,
    AlterConfigsRequest,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)


async def handle_alter_configs(
    services: BrokerServices, context: RequestContext, request: AlterConfigsRequest
) -> AlterConfigsResponse:
    """Replace the configuration of resources, each for itself; answers are in their order."""
    here, left = decide_here(services, context, request.resources, _decide)
    passed_on = AlterConfigsRequest(resources=left, validate_only=request.validate_only)
    response: AlterConfigsResponse = await ask_controller(services, context, passed_on)
    response.responses = in_order(request.resources, here, response.responses)
    return response


def _decide(
    resource: AlterConfigsAlterConfigsResource, reason: str | None
) -> AlterConfigsResourceResponse | None:
    if resource.resource_type == ConfigResourceType.BROKER_LOGGER:
        reason = f"Unknown resource type {resource.resource_type}"
    if reason is None:
        return None
    return AlterConfigsResourceResponse(
        error_code=ErrorCode.INVALID_REQUEST,
        error_message=reason,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )
