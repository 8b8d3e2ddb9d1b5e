"""ShareGroupHeartbeat (key 76), version 1: KIP-932.

The one request by which a member joins a share group, stays in it and leaves it. Whoever
subscribes to topics may DESCRIBE them all.
"""

from collections.abc import Awaitable

from barnabas.node.broker.apis.groups.requests import (
    client_of,
    may_describe_topics,
    may_read_group,
    serves_share_groups,
)
from barnabas.node.broker.context import RequestContext
from barnabas.node.broker.services import BrokerServices
from barnabas.node.share.sessions import MEMBER_ID_LENGTH_MAX
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.share_groups import (
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
)


def handle_share_group_heartbeat(
    services: BrokerServices, context: RequestContext, request: ShareGroupHeartbeatRequest
) -> ShareGroupHeartbeatResponse | Awaitable[ShareGroupHeartbeatResponse]:
    """Hear a member of a share group."""
    if not serves_share_groups(services):
        return ShareGroupHeartbeatResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
    if not may_read_group(services, context, request.group_id):
        return ShareGroupHeartbeatResponse(error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED)
    if not 0 < len(request.member_id) <= MEMBER_ID_LENGTH_MAX:
        return ShareGroupHeartbeatResponse(
            error_code=ErrorCode.INVALID_REQUEST,
            error_message="Invalid member id in the request.",
        )
    names = request.subscribed_topic_names
    if names and not may_describe_topics(services, context, names):
        return ShareGroupHeartbeatResponse(error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    return services.share_groups.heartbeat(request, client_of(context))
