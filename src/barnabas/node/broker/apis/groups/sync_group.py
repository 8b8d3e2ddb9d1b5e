"""SyncGroup (key 14), versions 0-5: KIP-345, 559.

The answer comes when the leader's assignment is committed.
"""

from collections.abc import Awaitable

from barnabas.node.broker.apis.groups.requests import client_of, may_read_group
from barnabas.node.broker.context import RequestContext
from barnabas.node.broker.services import BrokerServices
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.groups import SyncGroupRequest, SyncGroupResponse


def handle_sync_group(
    services: BrokerServices, context: RequestContext, request: SyncGroupRequest
) -> SyncGroupResponse | Awaitable[SyncGroupResponse]:
    """Bring or fetch the assignment of a generation."""
    if not may_read_group(services, context, request.group_id):
        return SyncGroupResponse(error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED)
    return services.groups.classics.sync(request, client_of(context))
