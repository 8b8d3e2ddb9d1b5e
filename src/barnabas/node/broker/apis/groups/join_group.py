"""JoinGroup (key 11), versions 0-9: KIP-62, 345, 394, 559, 800, 814.

The answer comes when the group's next generation begins.
"""

from collections.abc import Awaitable

from barnabas.node.broker.apis.groups.requests import may_read_group, subscriber_of
from barnabas.node.broker.context import RequestContext
from barnabas.node.broker.services import BrokerServices
from barnabas.node.coordinator.group.classic.responses import join_error, level_join
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.groups import JoinGroupRequest, JoinGroupResponse


def handle_join_group(
    services: BrokerServices, context: RequestContext, request: JoinGroupRequest
) -> JoinGroupResponse | Awaitable[JoinGroupResponse]:
    """Join a group."""
    if not may_read_group(services, context, request.group_id):
        refused = join_error(ErrorCode.GROUP_AUTHORIZATION_FAILED, "")
        return level_join(refused, context.api_version)
    return services.groups.classics.join(request, subscriber_of(services, context))
