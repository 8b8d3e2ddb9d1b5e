"""DeleteGroups (key 42), versions 0-2: KIP-229."""

from barnabas.node.broker.authorization import allowed_in_turns
from barnabas.node.broker.context import RequestContext
from barnabas.node.broker.services import BrokerServices
from barnabas.protocol.acls import Operation, ResourceType
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.groups import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
)


async def handle_delete_groups(
    services: BrokerServices, context: RequestContext, request: DeleteGroupsRequest
) -> DeleteGroupsResponse:
    """Delete groups that have no members; of share groups also what share coordinators keep."""
    names = list(dict.fromkeys(request.groups_names))
    deletable = await allowed_in_turns(
        services, context, Operation.DELETE, ResourceType.GROUP, names
    )
    request.groups_names = [name for name in names if name in deletable]
    response = await services.share_groups.delete_groups(request)
    refused = ErrorCode.GROUP_AUTHORIZATION_FAILED
    response.results += [
        DeletableGroupResult(group_id=group_id, error_code=refused)
        for group_id in names
        if group_id not in deletable
    ]
    return response
