"""ShareGroupDescribe (key 77), version 1: KIP-932.

Share groups and their members; groups of other types are not found here.
"""

from collections.abc import Iterator

from barnabas.node.broker.apis.groups.describing import describe_groups
from barnabas.node.broker.apis.groups.requests import serves_share_groups
from barnabas.node.broker.context import RequestContext
from barnabas.node.broker.services import BrokerServices
from barnabas.node.loop.promise import Promise, then
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.share_groups import (
    DescribedGroup,
    ShareGroupDescribeRequest,
    ShareGroupDescribeResponse,
)

HIDDEN = "The group has described topic(s) that the client is not authorized to describe."


def handle_share_group_describe(
    services: BrokerServices, context: RequestContext, request: ShareGroupDescribeRequest
) -> ShareGroupDescribeResponse | Promise[ShareGroupDescribeResponse]:
    """Describe share groups and their members."""
    if not serves_share_groups(services):
        return ShareGroupDescribeResponse(
            groups=[
                _failed(group_id, ErrorCode.UNSUPPORTED_VERSION) for group_id in request.group_ids
            ]
        )
    groups = describe_groups(
        services, context, request, services.share_groups.describe, _failed, _topics, HIDDEN
    )
    return then(groups, lambda groups: ShareGroupDescribeResponse(groups=groups))


def _failed(group_id: str, error: ErrorCode, message: str | None = None) -> DescribedGroup:
    return DescribedGroup(group_id=group_id, error_code=error, error_message=message)


def _topics(group: DescribedGroup) -> Iterator[str]:
    """The topics of which members have partitions."""
    for member in group.members:
        yield from (topic.topic_name for topic in member.assignment.topic_partitions)
