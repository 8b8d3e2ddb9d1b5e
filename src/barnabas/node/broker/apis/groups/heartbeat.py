"""Heartbeat (key 12), versions 0-4: KIP-62, 345.

REBALANCE_IN_PROGRESS tells a member to join again.
"""

from collections.abc import Awaitable

from barnabas.node.broker.apis.groups.requests import client_of, may_read_group
from barnabas.node.broker.context import RequestContext
from barnabas.node.broker.services import BrokerServices
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.groups import HeartbeatRequest, HeartbeatResponse


def handle_heartbeat(
    services: BrokerServices, context: RequestContext, request: HeartbeatRequest
) -> HeartbeatResponse | Awaitable[HeartbeatResponse]:
    """Keep a member's session alive."""
    if not may_read_group(services, context, request.group_id):
        return HeartbeatResponse(error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED)
    return services.groups.classics.heartbeat(request, client_of(context))
