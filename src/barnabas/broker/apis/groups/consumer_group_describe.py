"""ConsumerGroupDescribe (key 69), versions 0-1: KIP-848, 1099.

Groups of the consumer protocol; others have APIs of their own and are not found here.
"""

from collections.abc import Awaitable

from barnabas.base.promise import then
from barnabas.broker.apis.groups.requests import serves_consumer_protocol
from barnabas.broker.authorized_operations import GROUP_OPERATIONS
from barnabas.broker.context import RequestContext
from barnabas.broker.services import BrokerServices
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
)


def handle_consumer_group_describe(
    services: BrokerServices, context: RequestContext, request: ConsumerGroupDescribeRequest
) -> ConsumerGroupDescribeResponse | Awaitable[ConsumerGroupDescribeResponse]:
    """Describe consumer groups and their members."""
    if not serves_consumer_protocol(services):
        return ConsumerGroupDescribeResponse(
            groups=[
                DescribedGroup(group_id=group_id, error_code=ErrorCode.UNSUPPORTED_VERSION)
                for group_id in request.group_ids
            ]
        )

    def finish(groups: list[DescribedGroup]) -> ConsumerGroupDescribeResponse:
        if request.include_authorized_operations:
            for group in groups:
                if not group.error_code:
                    group.authorized_operations = GROUP_OPERATIONS
        return ConsumerGroupDescribeResponse(groups=groups)

    return then(services.groups.consumers.describe(request.group_ids), finish)
