"""What one must be allowed to do, in order to see or change the configuration of a resource."""

from barnabas.node.broker.authorization import HasAuthorizer, may
from barnabas.node.broker.context import RequestContext
from barnabas.node.metadata.image import ConfigResourceType
from barnabas.protocol.acls import CLUSTER_NAME, Operation, ResourceType
from barnabas.protocol.errors import ErrorCode

_OF_CLUSTER = ResourceType.CLUSTER, ErrorCode.CLUSTER_AUTHORIZATION_FAILED
_RESOURCES = {
    ConfigResourceType.TOPIC: (ResourceType.TOPIC, ErrorCode.TOPIC_AUTHORIZATION_FAILED),
    ConfigResourceType.GROUP: (ResourceType.GROUP, ErrorCode.GROUP_AUTHORIZATION_FAILED),
    ConfigResourceType.BROKER: _OF_CLUSTER,
    ConfigResourceType.BROKER_LOGGER: _OF_CLUSTER,
    ConfigResourceType.CLIENT_METRICS: _OF_CLUSTER,
}
"""What a configuration belongs to, for the authorizer, and the error of who has no right to it."""


def refuse(
    services: HasAuthorizer,
    context: RequestContext,
    operation: Operation,
    resource_type: int,
    name: str,
    *,
    is_lookup: bool = False,
) -> ErrorCode:
    """The error if the sender may not do this with a configuration; NONE if it may.

    A type that does not exist is left to the handler. `is_lookup`: the controller decides, and
    has it in its audit log.
    """
    if not services.authorizer.is_enabled or resource_type not in _RESOURCES:
        return ErrorCode.NONE
    owner, error = _RESOURCES[ConfigResourceType(resource_type)]
    asked = CLUSTER_NAME if owner is ResourceType.CLUSTER else name
    logs = not is_lookup
    is_allowed = may(services, context, operation, owner, asked, logs_denial=logs, logs_grant=logs)
    return ErrorCode.NONE if is_allowed else error
