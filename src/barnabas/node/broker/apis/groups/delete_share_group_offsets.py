"""DeleteShareGroupOffsets (key 92), version 0: KIP-932.

Has a share group without members forget topics. Needs DELETE of the group and READ of each topic.
"""

from barnabas.node.broker.apis.groups.requests import serves_share_groups
from barnabas.node.broker.authorization import allowed_in_turns, may
from barnabas.node.broker.context import RequestContext
from barnabas.node.broker.services import BrokerServices
from barnabas.protocol.acls import Operation, ResourceType
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.share_groups import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsResponse,
    DeleteShareGroupOffsetsResponseTopic,
)


async def handle_delete_share_group_offsets(
    services: BrokerServices, context: RequestContext, request: DeleteShareGroupOffsetsRequest
) -> DeleteShareGroupOffsetsResponse:
    """Forget where a share group is with topics."""
    if not serves_share_groups(services):
        return DeleteShareGroupOffsetsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
    if not services.authorizer.is_enabled:
        return await services.share_groups.delete_offsets(request)
    if not may(services, context, Operation.DELETE, ResourceType.GROUP, request.group_id):
        error = ErrorCode.GROUP_AUTHORIZATION_FAILED
        return DeleteShareGroupOffsetsResponse(error_code=error, error_message=error.message)
    names = [topic.topic_name for topic in request.topics]
    readable = await allowed_in_turns(services, context, Operation.READ, ResourceType.TOPIC, names)
    refused = [_refused(name) for name in names if name not in readable]
    request.topics = [topic for topic in request.topics if topic.topic_name in readable]
    if refused and not request.topics:
        return DeleteShareGroupOffsetsResponse(responses=refused)
    response = await services.share_groups.delete_offsets(request)
    if not response.error_code:
        response.responses[:0] = refused
    return response


def _refused(name: str) -> DeleteShareGroupOffsetsResponseTopic:
    error = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    return DeleteShareGroupOffsetsResponseTopic(
        topic_name=name, error_code=error, error_message=error.message
    )
