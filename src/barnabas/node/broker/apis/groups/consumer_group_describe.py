"""ConsumerGroupDescribe (key 69), versions 0-1: KIP-848, 1099.

Groups of the consumer protocol; others have APIs of their own and are not found here.
"""

from collections.abc import Iterator

from barnabas.node.broker.apis.groups.describing import describe_groups
from barnabas.node.broker.apis.groups.requests import serves_consumer_protocol
from barnabas.node.broker.context import RequestContext
from barnabas.node.broker.services import BrokerServices
from barnabas.node.loop.promise import Promise, then
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.consumer_groups import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
)

HIDDEN = "The group has described topic(s) that the client is not authorized to describe."


def handle_consumer_group_describe(
    services: BrokerServices, context: RequestContext, request: ConsumerGroupDescribeRequest
) -> ConsumerGroupDescribeResponse | Promise[ConsumerGroupDescribeResponse]:
    """Describe consumer groups and their members."""
    if not serves_consumer_protocol(services):
        return ConsumerGroupDescribeResponse(
            groups=[
                _failed(group_id, ErrorCode.UNSUPPORTED_VERSION) for group_id in request.group_ids
            ]
        )
    groups = describe_groups(
        services, context, request, services.groups.consumers.describe, _failed, _topics, HIDDEN
    )
    return then(groups, lambda groups: ConsumerGroupDescribeResponse(groups=groups))


def _failed(group_id: str, error: ErrorCode, message: str | None = None) -> DescribedGroup:
    return DescribedGroup(group_id=group_id, error_code=error, error_message=message)


def _topics(group: DescribedGroup) -> Iterator[str]:
    """The topics of which members have partitions, or are to have."""
    for member in group.members:
        for assignment in (member.assignment, member.target_assignment):
            yield from (topic.topic_name for topic in assignment.topic_partitions)
