"""ListConfigResources (key 74), versions 0-1: KIP-714, 1142.

Needs DESCRIBE_CONFIGS of the cluster. Version 0 lists client metrics subscriptions; version 1 the
resources of the types asked for.
"""

from barnabas.node.broker.authorization import may
from barnabas.node.broker.context import RequestContext
from barnabas.node.broker.services import BrokerServices
from barnabas.node.metadata.image import ConfigResourceType
from barnabas.protocol.acls import Operation, ResourceType
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.configs import (
    ConfigResource,
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)

LISTED_TYPES = (
    ConfigResourceType.TOPIC,
    ConfigResourceType.BROKER,
    ConfigResourceType.BROKER_LOGGER,
    ConfigResourceType.CLIENT_METRICS,
    ConfigResourceType.GROUP,
)


def handle_list_config_resources(
    services: BrokerServices, context: RequestContext, request: ListConfigResourcesRequest
) -> ListConfigResourcesResponse:
    """List what can be configured; no types at all ask for every type."""
    if not may(services, context, Operation.DESCRIBE_CONFIGS, ResourceType.CLUSTER):
        return ListConfigResourcesResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    wanted: list[int] = request.resource_types or list(LISTED_TYPES)
    if context.api_version == 0:
        wanted = [ConfigResourceType.CLIENT_METRICS]
    if not set(wanted) <= set(LISTED_TYPES):
        return ListConfigResourcesResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
    return ListConfigResourcesResponse(
        config_resources=[
            ConfigResource(resource_name=name, resource_type=resource_type)
            for resource_type in dict.fromkeys(wanted)
            for name in _names(services, resource_type)
        ]
    )


def _names(services: BrokerServices, resource_type: int) -> list[str]:
    image = services.image
    match resource_type:
        case ConfigResourceType.TOPIC:
            return sorted(image.topics.by_name)
        case ConfigResourceType.BROKER | ConfigResourceType.BROKER_LOGGER:
            return [str(broker_id) for broker_id in sorted(image.brokers)]
        case _:
            return image.configs.names(resource_type)
