"""AlterShareGroupOffsets (key 91), version 0: KIP-932.

Has a share group without members begin elsewhere in partitions; it may be new.
"""

from barnabas.broker.apis.groups.requests import serves_share_groups
from barnabas.broker.context import RequestContext
from barnabas.broker.services import BrokerServices
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsResponse,
)


async def handle_alter_share_group_offsets(
    services: BrokerServices, context: RequestContext, request: AlterShareGroupOffsetsRequest
) -> AlterShareGroupOffsetsResponse:
    """Move a share group; an error of the whole request stands for its partitions too."""
    if not serves_share_groups(services):
        return AlterShareGroupOffsetsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
    return await services.share_groups.alter_offsets(request)
