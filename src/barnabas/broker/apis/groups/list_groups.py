"""ListGroups (key 16), versions 0-5: KIP-518, 848.

The groups that this broker coordinates; clients ask every broker.
"""

from collections.abc import Awaitable

from barnabas.broker.context import RequestContext
from barnabas.broker.services import BrokerServices
from barnabas.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse


def handle_list_groups(
    services: BrokerServices, context: RequestContext, request: ListGroupsRequest
) -> ListGroupsResponse | Awaitable[ListGroupsResponse]:
    """List groups."""
    return services.groups.list_groups(request)
