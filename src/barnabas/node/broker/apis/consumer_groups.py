"""Consumer groups.

ConsumerGroupHeartbeat (key 68), versions 0-1: KIP-848, 1082, 1251.

A member of a consumer group joins, stays, follows its assignment and leaves by it. Refused with
UNSUPPORTED_VERSION where `group.coordinator.rebalance.protocols` or `group.version` leaves the
protocol out. Subscribing to topics by name needs DESCRIBE on all of them; a regular expression
finds
those that the member may.

ConsumerGroupDescribe (key 69), versions 0-1: KIP-848, 1099.

Groups of the consumer protocol; others have APIs of their own and are not found here.
"""

from collections.abc import Awaitable, Iterator

from barnabas.node.broker.apis.group_requests import (
    describe_groups,
    may_describe_topics,
    may_read_group,
    serves_consumer_protocol,
    subscriber_of,
)
from barnabas.node.broker.context import RequestContext
from barnabas.node.broker.services import BrokerServices
from barnabas.node.loop.promise import Promise, then
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.consumer_groups import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    DescribedGroup,
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


def handle_consumer_group_describe(
    services: BrokerServices, context: RequestContext, request: ConsumerGroupDescribeRequest
) -> ConsumerGroupDescribeResponse | Promise[ConsumerGroupDescribeResponse]:
    """Describe consumer groups and their members."""
    groups = describe_groups(
        services,
        context,
        request,
        DescribedGroup,
        is_served=serves_consumer_protocol(services),
        find=services.groups.consumers.describe,
        topics_of=_topics,
    )
    return then(groups, lambda groups: ConsumerGroupDescribeResponse(groups=groups))


def _topics(group: DescribedGroup) -> Iterator[str]:
    """The topics of which members have partitions, or are to have."""
    for member in group.members:
        for assignment in (member.assignment, member.target_assignment):
            yield from (topic.topic_name for topic in assignment.topic_partitions)
