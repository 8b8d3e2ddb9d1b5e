"""LeaveGroup (key 13), versions 0-5: KIP-345, 800.

Versions before 3 name one member, whose error is the whole's.
"""

from collections.abc import Awaitable

from barnabas.node.broker.apis.groups.requests import client_of, may_read_group
from barnabas.node.broker.context import RequestContext
from barnabas.node.broker.services import BrokerServices
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.groups import LeaveGroupRequest, LeaveGroupResponse


def handle_leave_group(
    services: BrokerServices, context: RequestContext, request: LeaveGroupRequest
) -> LeaveGroupResponse | Awaitable[LeaveGroupResponse]:
    """Take members out of a group."""
    if not may_read_group(services, context, request.group_id):
        return LeaveGroupResponse(error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED)
    return services.groups.classics.leave(request, client_of(context))
