"""ConsumerGroupHeartbeat (key 68), versions 0-1: KIP-848, 1082, 1251.

A member of a consumer group joins, stays, follows its assignment and leaves by it. Refused with
UNSUPPORTED_VERSION where `group.coordinator.rebalance.protocols` or `group.version` leaves the
protocol out. Whoever subscribes to topics by name may DESCRIBE them all; a regular expression finds
those that the member may.
"""

from collections.abc import Awaitable

from barnabas.node.broker.apis.groups.requests import (
    may_describe_topics,
    may_read_group,
    serves_consumer_protocol,
    subscriber_of,
)
from barnabas.node.broker.context import RequestContext
from barnabas.node.broker.services import BrokerServices
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.consumer_groups import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)


def handle_consumer_group_heartbeat(
    services: BrokerServices, context: RequestContext, request: ConsumerGroupHeartbeatRequest
) -> ConsumerGroupHeartbeatResponse | Awaitable[ConsumerGroupHeartbeatResponse]:
    """Hear a member, and tell it what it is assigned."""
    if not serves_consumer_protocol(services):
        return ConsumerGroupHeartbeatResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
    if not may_read_group(services, context, request.group_id):
        return ConsumerGroupHeartbeatResponse(error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED)
    names = request.subscribed_topic_names
    if names and not may_describe_topics(services, context, names):
        return ConsumerGroupHeartbeatResponse(error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    return services.groups.consumers.heartbeat(request, subscriber_of(services, context))
