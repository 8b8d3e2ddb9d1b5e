"""ListGroups (key 16), versions 0-5: KIP-518, 848.

The groups that this broker coordinates; clients ask every broker. Who may DESCRIBE the cluster
sees all of them, others those that they may DESCRIBE.
"""

from barnabas.node.broker.authorization import allowed, may
from barnabas.node.broker.context import RequestContext
from barnabas.node.broker.services import BrokerServices
from barnabas.node.loop.promise import Promise, then
from barnabas.protocol.acls import Operation, ResourceType
from barnabas.protocol.messages.groups import ListGroupsRequest, ListGroupsResponse


def handle_list_groups(
    services: BrokerServices, context: RequestContext, request: ListGroupsRequest
) -> ListGroupsResponse | Promise[ListGroupsResponse]:
    """List groups."""
    found = services.groups.list_groups(request)
    if may(services, context, Operation.DESCRIBE, ResourceType.CLUSTER, logs_denial=False):
        return found

    def finish(response: ListGroupsResponse) -> ListGroupsResponse:
        names = {group.group_id for group in response.groups}
        visible = allowed(
            services, context, Operation.DESCRIBE, ResourceType.GROUP, names, logs_denial=False
        )
        response.groups = [group for group in response.groups if group.group_id in visible]
        return response

    return then(found, finish)
