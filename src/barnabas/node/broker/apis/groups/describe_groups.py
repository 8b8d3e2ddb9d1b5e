"""DescribeGroups (key 15), versions 0-6: KIP-345, 430, 1043.

Classic groups only, as in Kafka; groups of the other protocols have APIs of their own.
"""

from collections.abc import Awaitable

from barnabas.node.broker.apis.groups.requests import client_of, split_groups
from barnabas.node.broker.authorized_operations import authorized_operations
from barnabas.node.broker.context import RequestContext
from barnabas.node.broker.services import BrokerServices
from barnabas.node.loop.promise import then
from barnabas.protocol.acls import Operation, ResourceType
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.groups import (
    DescribedGroup,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)


def handle_describe_groups(
    services: BrokerServices, context: RequestContext, request: DescribeGroupsRequest
) -> DescribeGroupsResponse | Awaitable[DescribeGroupsResponse]:
    """Describe groups and their members."""

    asked, denied = split_groups(services, context, Operation.DESCRIBE, request.groups)

    def finish(response: DescribeGroupsResponse) -> DescribeGroupsResponse:
        if request.include_authorized_operations:
            for group in response.groups:
                if not group.error_code:
                    group.authorized_operations = authorized_operations(
                        services, context, ResourceType.GROUP, group.group_id
                    )
        if denied:
            refused = ErrorCode.GROUP_AUTHORIZATION_FAILED
            response.groups[:0] = [
                DescribedGroup(group_id=group_id, error_code=refused) for group_id in denied
            ]
        return response

    if denied:
        request.groups = list(asked)
    return then(services.groups.classics.describe(request, client_of(context)), finish)
