"""DescribeShareGroupOffsets (key 90), versions 0-1: KIP-932, 1226.

Where share groups start in partitions, and how many records of each are not done. Needs DESCRIBE of
the group and of each topic; whoever asks for all topics is told of those that it may DESCRIBE.
"""

import asyncio

from barnabas.node.broker.apis.groups.requests import allowed_topics, serves_share_groups
from barnabas.node.broker.authorization import may
from barnabas.node.broker.context import RequestContext
from barnabas.node.broker.services import BrokerServices
from barnabas.protocol.acls import Operation, ResourceType
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.share_groups import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsRequestTopic,
    DescribeShareGroupOffsetsResponse,
    DescribeShareGroupOffsetsResponseGroup,
    DescribeShareGroupOffsetsResponsePartition,
    DescribeShareGroupOffsetsResponseTopic,
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
        *(_describe(services, context, group) for group in request.groups)
    )
    return DescribeShareGroupOffsetsResponse(groups=groups)


async def _describe(
    services: BrokerServices,
    context: RequestContext,
    group: DescribeShareGroupOffsetsRequestGroup,
) -> DescribeShareGroupOffsetsResponseGroup:
    """What the sender may know of one group."""
    if not services.authorizer.is_enabled:
        return await services.share_groups.describe_offsets(group)
    if not may(services, context, Operation.DESCRIBE, ResourceType.GROUP, group.group_id):
        error = ErrorCode.GROUP_AUTHORIZATION_FAILED
        return DescribeShareGroupOffsetsResponseGroup(group_id=group.group_id, error_code=error)
    if group.topics is None:
        response = await services.share_groups.describe_offsets(group)
        names = [topic.topic_name for topic in response.topics]
        visible = allowed_topics(services, context, Operation.DESCRIBE, names)
        response.topics = [topic for topic in response.topics if topic.topic_name in visible]
        return response
    names = [topic.topic_name for topic in group.topics]
    visible = allowed_topics(services, context, Operation.DESCRIBE, names)
    refused = [_refused(topic) for topic in group.topics if topic.topic_name not in visible]
    group.topics = [topic for topic in group.topics if topic.topic_name in visible]
    response = await services.share_groups.describe_offsets(group)
    if not response.error_code:
        response.topics += refused
    return response


def _refused(
    topic: DescribeShareGroupOffsetsRequestTopic,
) -> DescribeShareGroupOffsetsResponseTopic:
    error = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    return DescribeShareGroupOffsetsResponseTopic(
        topic_name=topic.topic_name,
        partitions=[
            DescribeShareGroupOffsetsResponsePartition(
                partition_index=index,
                start_offset=-1,
                error_code=error,
                error_message=error.message,
            )
            for index in topic.partitions
        ],
    )
