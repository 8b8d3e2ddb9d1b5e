"""DescribeShareGroupOffsets (key 90), versions 0-1: KIP-932, 1226.

Where share groups start in partitions, and how many records of each are not done.
"""

import asyncio

from barnabas.broker.apis.groups.requests import serves_share_groups
from barnabas.broker.context import RequestContext
from barnabas.broker.services import BrokerServices
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsResponse,
    DescribeShareGroupOffsetsResponseGroup,
)


async def handle_describe_share_group_offsets(
    services: BrokerServices, context: RequestContext, request: DescribeShareGroupOffsetsRequest
) -> DescribeShareGroupOffsetsResponse:
    """Describe the offsets of each group that is named."""
    if not serves_share_groups(services):
        return DescribeShareGroupOffsetsResponse(
            groups=[
                DescribeShareGroupOffsetsResponseGroup(
                    group_id=group.group_id, error_code=ErrorCode.UNSUPPORTED_VERSION
                )
                for group in request.groups
            ]
        )
    groups = await asyncio.gather(
        *(services.share_groups.describe_offsets(group) for group in request.groups)
    )
    return DescribeShareGroupOffsetsResponse(groups=groups)
