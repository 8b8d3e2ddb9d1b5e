"""ShareGroupDescribe (key 77), version 1: KIP-932.

Share groups and their members; groups of other types are not found here.
"""

from collections.abc import Awaitable

from barnabas.base.promise import then
from barnabas.broker.apis.groups.requests import serves_share_groups
from barnabas.broker.authorized_operations import GROUP_OPERATIONS
from barnabas.broker.context import RequestContext
from barnabas.broker.services import BrokerServices
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.share_group_describe import (
    DescribedGroup,
    ShareGroupDescribeRequest,
    ShareGroupDescribeResponse,
)


def handle_share_group_describe(
    services: BrokerServices, context: RequestContext, request: ShareGroupDescribeRequest
) -> ShareGroupDescribeResponse | Awaitable[ShareGroupDescribeResponse]:
    """Describe share groups and their members."""
    if not serves_share_groups(services):
        return ShareGroupDescribeResponse(
            groups=[
                DescribedGroup(group_id=group_id, error_code=ErrorCode.UNSUPPORTED_VERSION)
                for group_id in request.group_ids
            ]
        )

    def finish(groups: list[DescribedGroup]) -> ShareGroupDescribeResponse:
        if request.include_authorized_operations:
            for group in groups:
                if not group.error_code:
                    group.authorized_operations = GROUP_OPERATIONS
        return ShareGroupDescribeResponse(groups=groups)

    return then(services.share_groups.describe(request.group_ids), finish)
