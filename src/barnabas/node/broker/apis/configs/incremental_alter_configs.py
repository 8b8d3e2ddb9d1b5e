"""IncrementalAlterConfigs (key 44), versions 0-1: KIP-339, 412, 714, 848.

Configurations are decided by the controller, which checks that the sender may alter them. A
broker's own can only be changed through that broker; its loggers are no configuration of the
cluster, and are set here and now, by those who may ALTER_CONFIGS of the cluster.
"""

from barnabas.node.broker.apis.configs.broker_loggers import alter_loggers
from barnabas.node.broker.apis.configs.broker_resources import check_node_id
from barnabas.node.broker.apis.configs.each_resource import decide_here, in_order
from barnabas.node.broker.apis.configs.rights import refuse
from barnabas.node.broker.context import RequestContext
from barnabas.node.broker.controller.requests import ask_controller
from barnabas.node.broker.services import BrokerServices
from barnabas.node.metadata.image import ConfigResourceType
from barnabas.protocol.acls import Operation
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.configs import (
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)


async def handle_incremental_alter_configs(
    services: BrokerServices, context: RequestContext, request: IncrementalAlterConfigsRequest
) -> IncrementalAlterConfigsResponse:
    """Change the configuration of resources, each for itself; answers are in their order."""

    def decide(
        resource: AlterConfigsResource, reason: str | None
    ) -> AlterConfigsResourceResponse | None:
        if resource.resource_type == ConfigResourceType.BROKER_LOGGER:
            return _alter_loggers(services, context, resource, request.validate_only)
        return None if reason is None else _result(resource, ErrorCode.INVALID_REQUEST, reason)

    here, left = decide_here(services, context, request.resources, decide)
    passed_on = IncrementalAlterConfigsRequest(resources=left, validate_only=request.validate_only)
    response: IncrementalAlterConfigsResponse = await ask_controller(services, context, passed_on)
    response.responses = in_order(request.resources, here, response.responses)
    return response


def _alter_loggers(
    services: BrokerServices,
    context: RequestContext,
    resource: AlterConfigsResource,
    validate_only: bool,
) -> AlterConfigsResourceResponse:
    kind, name = resource.resource_type, resource.resource_name
    refused = refuse(services, context, Operation.ALTER_CONFIGS, kind, name)
    if refused:
        return _result(resource, refused, refused.message)
    reason = check_node_id(services.node_id, resource.resource_name)
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
