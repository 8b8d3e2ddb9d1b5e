"""StreamsGroupDescribe (key 89), version 0: KIP-1071.

Groups of the streams protocol; others have APIs of their own and are not found here.
"""

from collections.abc import Iterator

from barnabas.node.broker.apis.groups.describing import describe_groups
from barnabas.node.broker.apis.groups.requests import serves_streams_protocol
from barnabas.node.broker.apis.groups.streams_topics import topic_names
from barnabas.node.broker.context import RequestContext
from barnabas.node.broker.services import BrokerServices
from barnabas.node.loop.promise import Promise, then
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.streams_groups import (
    DescribedGroup,
    StreamsGroupDescribeRequest,
    StreamsGroupDescribeResponse,
)

HIDDEN = "The described group uses topics that the client is not authorized to describe."


def handle_streams_group_describe(
    services: BrokerServices, context: RequestContext, request: StreamsGroupDescribeRequest
) -> StreamsGroupDescribeResponse | Promise[StreamsGroupDescribeResponse]:
    """Describe streams groups, their topologies and their members."""
    if not serves_streams_protocol(services):
        return StreamsGroupDescribeResponse(
            groups=[
                _failed(group_id, ErrorCode.UNSUPPORTED_VERSION) for group_id in request.group_ids
            ]
        )
    groups = describe_groups(
        services, context, request, services.groups.streams.describe, _failed, _topics, HIDDEN
    )
    return then(groups, lambda groups: StreamsGroupDescribeResponse(groups=groups))


def _failed(group_id: str, error: ErrorCode, message: str | None = None) -> DescribedGroup:
    return DescribedGroup(group_id=group_id, error_code=error, error_message=message)


def _topics(group: DescribedGroup) -> Iterator[str]:
    """The topics of the topology."""
    return topic_names((group.topology and group.topology.subtopologies) or ())
