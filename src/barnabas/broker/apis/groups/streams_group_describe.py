"""StreamsGroupDescribe (key 89), version 0: KIP-1071.

Groups of the streams protocol; others have APIs of their own and are not found here.
"""

from collections.abc import Awaitable

from barnabas.base.promise import then
from barnabas.broker.apis.groups.requests import serves_streams_protocol
from barnabas.broker.authorized_operations import GROUP_OPERATIONS
from barnabas.broker.context import RequestContext
from barnabas.broker.services import BrokerServices
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.streams_group_describe import (
    DescribedGroup,
    StreamsGroupDescribeRequest,
    StreamsGroupDescribeResponse,
)


def handle_streams_group_describe(
    services: BrokerServices, context: RequestContext, request: StreamsGroupDescribeRequest
) -> StreamsGroupDescribeResponse | Awaitable[StreamsGroupDescribeResponse]:
    """Describe streams groups, their topologies and their members."""
    if not serves_streams_protocol(services):
        return StreamsGroupDescribeResponse(
            groups=[
                DescribedGroup(group_id=group_id, error_code=ErrorCode.UNSUPPORTED_VERSION)
                for group_id in request.group_ids
            ]
        )

    def finish(groups: list[DescribedGroup]) -> StreamsGroupDescribeResponse:
        if request.include_authorized_operations:
            for group in groups:
                if not group.error_code:
                    group.authorized_operations = GROUP_OPERATIONS
        return StreamsGroupDescribeResponse(groups=groups)

    return then(services.groups.streams.describe(request.group_ids), finish)
