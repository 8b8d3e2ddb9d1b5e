"""DeleteShareGroupOffsets (key 92), version 0: KIP-932.

Has a share group without members forget topics.
"""

from barnabas.broker.apis.groups.requests import serves_share_groups
from barnabas.broker.context import RequestContext
from barnabas.broker.services import BrokerServices
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsResponse,
)


async def handle_delete_share_group_offsets(
    services: BrokerServices, context: RequestContext, request: DeleteShareGroupOffsetsRequest
) -> DeleteShareGroupOffsetsResponse:
    """Forget where a share group is with topics."""
    if not serves_share_groups(services):
        return DeleteShareGroupOffsetsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
    return await services.share_groups.delete_offsets(request)
