"""AlterConfigs (key 33), versions 0-2: KIP-133, deprecated by KIP-339. Decided by the controller.

What a request does not name is no longer set. A broker's own configuration can only be changed
through that broker, which checks that it could take it.
"""

from barnabas.broker.apis.configs.broker_resources import check_broker_resource
from barnabas.broker.apis.configs.pool_sizes import refused_pool_sizes
from barnabas.broker.context import RequestContext
from barnabas.broker.controller.requests import ask_controller
from barnabas.broker.services import BrokerServices
from barnabas.metadata.image import ConfigResourceType
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)


async def handle_alter_configs(
    services: BrokerServices, context: RequestContext, request: AlterConfigsRequest
) -> AlterConfigsResponse:
    """Replace the configuration of resources, each for itself; answers are in their order."""
    answers: dict[tuple[int, str], AlterConfigsResourceResponse] = {}
    passed_on = AlterConfigsRequest(validate_only=request.validate_only)
    refused_sizes = refused_pool_sizes(services, request.resources)
    for resource in request.resources:
        key = (resource.resource_type, resource.resource_name)
        reason = check_broker_resource(services, resource) or refused_sizes.get(key)
        if resource.resource_type == ConfigResourceType.BROKER_LOGGER:
            reason = f"Unknown resource type {resource.resource_type}"
        if reason is None:
            passed_on.resources.append(resource)
        else:
            answers[key] = AlterConfigsResourceResponse(
                error_code=ErrorCode.INVALID_REQUEST,
                error_message=reason,
                resource_type=resource.resource_type,
                resource_name=resource.resource_name,
            )
    response: AlterConfigsResponse = await ask_controller(services, context, passed_on)
    for answer in response.responses:
        answers[(answer.resource_type, answer.resource_name)] = answer
    response.responses = [
        answers[key]
        for key in dict.fromkeys(
            (resource.resource_type, resource.resource_name) for resource in request.resources
        )
    ]
    return response
