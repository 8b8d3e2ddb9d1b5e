"""DeleteGroups (key 42), versions 0-2: KIP-229."""

from collections.abc import Awaitable

from barnabas.broker.context import RequestContext
from barnabas.broker.services import BrokerServices
from barnabas.protocol.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse


def handle_delete_groups(
    services: BrokerServices, context: RequestContext, request: DeleteGroupsRequest
) -> DeleteGroupsResponse | Awaitable[DeleteGroupsResponse]:
    """Delete groups that have no members; of share groups also what share coordinators keep."""
    return services.share_groups.delete_groups(request)
