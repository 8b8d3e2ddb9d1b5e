"""LeaveGroup (key 13), versions 0-5: KIP-345, 800.

Versions before 3 name one member, whose error is the whole's.
"""

from collections.abc import Awaitable

from barnabas.broker.apis.groups.requests import client_of
from barnabas.broker.context import RequestContext
from barnabas.broker.services import BrokerServices
from barnabas.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse


def handle_leave_group(
    services: BrokerServices, context: RequestContext, request: LeaveGroupRequest
) -> LeaveGroupResponse | Awaitable[LeaveGroupResponse]:
    """Take members out of a group."""
    return services.groups.classics.leave(request, client_of(context))
