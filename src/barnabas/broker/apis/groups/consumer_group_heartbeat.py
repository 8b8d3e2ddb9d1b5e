"""ConsumerGroupHeartbeat (key 68), versions 0-1: KIP-848, 1082, 1251.

A member of a consumer group joins, stays, follows its assignment and leaves by it. Refused with
UNSUPPORTED_VERSION where `group.coordinator.rebalance.protocols` or `group.version` leaves the
protocol out. Topics of a subscription are not authorised yet.
"""

from collections.abc import Awaitable

from barnabas.broker.apis.groups.requests import client_of, serves_consumer_protocol
from barnabas.broker.context import RequestContext
from barnabas.broker.services import BrokerServices
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)


def handle_consumer_group_heartbeat(
    services: BrokerServices, context: RequestContext, request: ConsumerGroupHeartbeatRequest
) -> ConsumerGroupHeartbeatResponse | Awaitable[ConsumerGroupHeartbeatResponse]:
    """Hear a member, and tell it what it is assigned."""
    if not serves_consumer_protocol(services):
        return ConsumerGroupHeartbeatResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
    return services.groups.consumers.heartbeat(request, client_of(context))
