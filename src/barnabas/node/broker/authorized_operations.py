"""The operations that a client may do with a resource, as the bit fields of KIP-430.

Bit n stands for Kafka's AclOperation with code n. Without an authorizer everything is allowed.
"""

from typing import Final

from barnabas.node.broker.authorization import HasAuthorizer, may
from barnabas.node.broker.context import RequestContext
from barnabas.protocol.acls import CLUSTER_NAME, Operation, ResourceType

NOT_ASKED: Final = -(2**31)
OPERATIONS: Final[dict[ResourceType, tuple[Operation, ...]]] = {
    ResourceType.TOPIC: (
        Operation.READ,
        Operation.WRITE,
        Operation.CREATE,
        Operation.DELETE,
        Operation.ALTER,
        Operation.DESCRIBE,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
    ),
    ResourceType.GROUP: (
        Operation.READ,
        Operation.DELETE,
        Operation.DESCRIBE,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
    ),
    ResourceType.CLUSTER: (
        Operation.CREATE,
        Operation.ALTER,
        Operation.DESCRIBE,
        Operation.CLUSTER_ACTION,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
        Operation.IDEMPOTENT_WRITE,
    ),
}
"""The operations of a resource type. Source: Kafka's AclEntry."""
_ALL: Final = {
    resource_type: sum(1 << operation for operation in operations)
    for resource_type, operations in OPERATIONS.items()
}


def authorized_operations(
    services: HasAuthorizer, context: RequestContext, resource_type: ResourceType, name: str
) -> int:
    """The bits of what the sender of a request may do with a topic or group."""
    if not services.authorizer.is_enabled:
        return _ALL[resource_type]
    return sum(
        1 << operation
        for operation in OPERATIONS[resource_type]
        if may(
            services,
            context,
            operation,
            resource_type,
            name,
            logs_denial=False,
            logs_grant=False,
        )
    )


def cluster_operations(services: HasAuthorizer, context: RequestContext) -> int:
    """The bits of what the sender may do with the cluster; none unless it may describe it."""
    if not may(services, context, Operation.DESCRIBE, ResourceType.CLUSTER):
        return 0
    return authorized_operations(services, context, ResourceType.CLUSTER, CLUSTER_NAME)
