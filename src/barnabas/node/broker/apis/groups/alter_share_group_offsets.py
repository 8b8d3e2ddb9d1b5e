"""AlterShareGroupOffsets (key 91), version 0: KIP-932.

Has a share group without members begin elsewhere in partitions; it may be new. Needs READ of the
group and of each topic.
"""

from barnabas.node.broker.apis.groups.requests import may_read_group, serves_share_groups
from barnabas.node.broker.authorization import allowed_in_turns
from barnabas.node.broker.context import RequestContext
from barnabas.node.broker.services import BrokerServices
from barnabas.protocol.acls import Operation, ResourceType
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.share_groups import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestTopic,
    AlterShareGroupOffsetsResponse,
    AlterShareGroupOffsetsResponsePartition,
    AlterShareGroupOffsetsResponseTopic,
)


async def handle_alter_share_group_offsets(
    services: BrokerServices, context: RequestContext, request: AlterShareGroupOffsetsRequest
) -> AlterShareGroupOffsetsResponse:
    """Move a share group; an error of the whole request stands for its partitions too."""
    if not serves_share_groups(services):
        return AlterShareGroupOffsetsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
    if not services.authorizer.is_enabled:
        return await services.share_groups.alter_offsets(request)
    if not may_read_group(services, context, request.group_id):
        error = ErrorCode.GROUP_AUTHORIZATION_FAILED
        return AlterShareGroupOffsetsResponse(error_code=error, error_message=error.message)
    names = [topic.topic_name for topic in request.topics]
    readable = await allowed_in_turns(services, context, Operation.READ, ResourceType.TOPIC, names)
    refused = [_refused(topic) for topic in request.topics if topic.topic_name not in readable]
    request.topics = [topic for topic in request.topics if topic.topic_name in readable]
    if refused and not request.topics:
        return AlterShareGroupOffsetsResponse(responses=refused)
    response = await services.share_groups.alter_offsets(request)
    if not response.error_code:
        response.responses += refused
    return response


def _refused(topic: AlterShareGroupOffsetsRequestTopic) -> AlterShareGroupOffsetsResponseTopic:
    error = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    return AlterShareGroupOffsetsResponseTopic(
        topic_name=topic.topic_name,
        partitions=[
            AlterShareGroupOffsetsResponsePartition(
                partition_index=partition.partition_index,
                error_code=error,
                error_message=error.message,
            )
            for partition in topic.partitions
        ],
    )
