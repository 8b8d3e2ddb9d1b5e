"""ACLs.

DescribeAcls (key 29), versions 1-3: KIP-140, 290. Brokers and controllers answer from the image.

Unlike Kafka, which closes the connection, a filter that has unknown parts is refused.
"""

from typing import Protocol

from barnabas.node.broker.authorization import HasAuthorizer, may
from barnabas.node.broker.context import RequestContext
from barnabas.node.metadata.acl_filter import matching_acls, unknown_part
from barnabas.node.metadata.image import MetadataImage
from barnabas.protocol.acls import Operation, ResourceType
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.acls import (
    AclDescription,
    DescribeAclsRequest,
    DescribeAclsResource,
    DescribeAclsResponse,
)


class HasImage(HasAuthorizer, Protocol):
    """The services of any listener."""

    @property
    def image(self) -> MetadataImage:
        """The cluster's metadata as this node has it."""


def handle_describe_acls(
    services: HasImage, context: RequestContext, request: DescribeAclsRequest
) -> DescribeAclsResponse:
    """Name the ACLs that a filter fits, by their resources."""
    if not may(services, context, Operation.DESCRIBE, ResourceType.CLUSTER):
        return _refused(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    if not services.authorizer.is_enabled:
        return _refused(ErrorCode.SECURITY_DISABLED, "No Authorizer is configured on the broker")
    reason = unknown_part(request)
    if reason is not None:
        return _refused(ErrorCode.INVALID_REQUEST, reason)
    resources: dict[tuple[int, str, int], DescribeAclsResource] = {}
    for acl in matching_acls(request, services.image.acls.values()):
        key = (acl.resource_type, acl.resource_name, acl.pattern_type)
        resource = resources.get(key)
        if resource is None:
            resource = resources[key] = DescribeAclsResource(
                resource_type=acl.resource_type,
                resource_name=acl.resource_name,
                pattern_type=acl.pattern_type,
            )
        resource.acls.append(
            AclDescription(
                principal=acl.principal,
                host=acl.host,
                operation=acl.operation,
                permission_type=acl.permission_type,
            )
        )
    return DescribeAclsResponse(resources=[resources[key] for key in sorted(resources)])


def _refused(code: ErrorCode, message: str | None = None) -> DescribeAclsResponse:
    return DescribeAclsResponse(error_code=code, error_message=message or code.message)
