"""IncrementalAlterConfigs (key 44), versions 0-1: KIP-339, 412, 714, 848.

Configurations are decided by the controller. A broker's own can only be changed through that
broker; its loggers are no configuration of the cluster, and are set here and now.
"""

from barnabas.broker.apis.configs.broker_loggers import alter_loggers
from barnabas.broker.apis.configs.broker_resources import check_broker_resource, check_node_id
from barnabas.broker.apis.configs.pool_sizes import refused_pool_sizes
from barnabas.broker.context import RequestContext
from barnabas.broker.controller.requests import ask_controller
from barnabas.broker.services import BrokerServices
from barnabas.metadata.image import ConfigResourceType
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.incremental_alter_configs import (
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)


async def handle_incremental_alter_configs(
    services: BrokerServices, context: RequestContext, request: IncrementalAlterConfigsRequest
) -> IncrementalAlterConfigsResponse:
    """Change the configuration of resources, each for itself; answers are in their order."""
    answers: dict[tuple[int, str], AlterConfigsResourceResponse] = {}
    passed_on = IncrementalAlterConfigsRequest(validate_only=request.validate_only)
    refused_sizes = refused_pool_sizes(services, request.resources)
    for resource in request.resources:
        key = (resource.resource_type, resource.resource_name)
        reason = check_broker_resource(services, resource) or refused_sizes.get(key)
        if resource.resource_type == ConfigResourceType.BROKER_LOGGER:
            answers[key] = _alter_loggers(services, resource, request.validate_only)
        elif reason is not None:
            answers[key] = _result(resource, ErrorCode.INVALID_REQUEST, reason)
        else:
            passed_on.resources.append(resource)
    response: IncrementalAlterConfigsResponse = await ask_controller(services, context, passed_on)
    for answer in response.responses:
        answers[(answer.resource_type, answer.resource_name)] = answer
    response.responses = [
        answers[key]
        for key in dict.fromkeys(
            (resource.resource_type, resource.resource_name) for resource in request.resources
        )
    ]
    return response


def _alter_loggers(
    services: BrokerServices, resource: AlterConfigsResource, validate_only: bool
) -> AlterConfigsResourceResponse:
    reason = check_node_id(services, resource.resource_name)
    if reason is not None:
        return _result(resource, ErrorCode.INVALID_REQUEST, reason)
    code, message = alter_loggers(resource.configs, validate_only=validate_only)
    return _result(resource, code, message)


def _result(
    resource: AlterConfigsResource, code: ErrorCode, message: str | None
) -> AlterConfigsResourceResponse:
    return AlterConfigsResourceResponse(
        error_code=code,
        error_message=message,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )
