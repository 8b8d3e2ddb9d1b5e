"""Share groups and their offsets.

ShareGroupHeartbeat (key 76), version 1: KIP-932.

The one request by which a member joins a share group, stays in it and leaves it. Subscribing to
topics needs DESCRIBE on all of them.

ShareGroupDescribe (key 77), version 1: KIP-932.

Share groups and their members; groups of other types are not found here.

DescribeShareGroupOffsets (key 90), versions 0-1: KIP-932, 1226.

Start offsets of share groups in partitions, and the number of records not done in each. Needs
DESCRIBE of the group and of each topic; a request for all topics gets those that the requester may
DESCRIBE.

AlterShareGroupOffsets (key 91), version 0: KIP-932.

Has a share group without members begin elsewhere in partitions; it may be new. Needs READ of the
group and of each topic.

DeleteShareGroupOffsets (key 92), version 0: KIP-932.

Has a share group without members forget topics. Needs DELETE of the group and READ of each topic.
"""

import asyncio
from collections.abc import Awaitable, Iterator

from barnabas.node.broker.apis.group_requests import (
    allowed_topics,
    client_of,
    describe_groups,
    may_describe_topics,
    may_read_group,
    serves_share_groups,
)
from barnabas.node.broker.authorization import allowed_in_turns, may
from barnabas.node.broker.context import RequestContext
from barnabas.node.broker.services import BrokerServices
from barnabas.node.loop.promise import Promise, then
from barnabas.node.share.sessions import MEMBER_ID_LENGTH_MAX
from barnabas.protocol.acls import Operation, ResourceType
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.share_groups import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestTopic,
    AlterShareGroupOffsetsResponse,
    AlterShareGroupOffsetsResponsePartition,
    AlterShareGroupOffsetsResponseTopic,
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsResponse,
    DeleteShareGroupOffsetsResponseTopic,
    DescribedGroup,
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsRequestTopic,
    DescribeShareGroupOffsetsResponse,
    DescribeShareGroupOffsetsResponseGroup,
    DescribeShareGroupOffsetsResponsePartition,
    DescribeShareGroupOffsetsResponseTopic,
    ShareGroupDescribeRequest,
    ShareGroupDescribeResponse,
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
)


def handle_share_group_heartbeat(
    services: BrokerServices, context: RequestContext, request: ShareGroupHeartbeatRequest
) -> ShareGroupHeartbeatResponse | Awaitable[ShareGroupHeartbeatResponse]:
    """Hear a member of a share group."""
    if not serves_share_groups(services):
        return ShareGroupHeartbeatResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
    if not may_read_group(services, context, request.group_id):
        return ShareGroupHeartbeatResponse(error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED)
    if not 0 < len(request.member_id) <= MEMBER_ID_LENGTH_MAX:
        return ShareGroupHeartbeatResponse(
            error_code=ErrorCode.INVALID_REQUEST,
            error_message="Invalid member id in the request.",
        )
    names = request.subscribed_topic_names
    if names and not may_describe_topics(services, context, names):
        return ShareGroupHeartbeatResponse(error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    return services.share_groups.heartbeat(request, client_of(context))


def handle_share_group_describe(
    services: BrokerServices, context: RequestContext, request: ShareGroupDescribeRequest
) -> ShareGroupDescribeResponse | Promise[ShareGroupDescribeResponse]:
    """Describe share groups and their members."""
    groups = describe_groups(
        services,
        context,
        request,
        DescribedGroup,
        is_served=serves_share_groups(services),
        find=services.share_groups.describe,
        topics_of=_topics,
    )
    return then(groups, lambda groups: ShareGroupDescribeResponse(groups=groups))


def _topics(group: DescribedGroup) -> Iterator[str]:
    """The topics of which members have partitions."""
    for member in group.members:
        yield from (topic.topic_name for topic in member.assignment.topic_partitions)


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
    """The part of one group that the sender may see."""
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
    refused = [_not_described(topic) for topic in group.topics if topic.topic_name not in visible]
    group.topics = [topic for topic in group.topics if topic.topic_name in visible]
    response = await services.share_groups.describe_offsets(group)
    if not response.error_code:
        response.topics += refused
    return response


def _not_described(
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
    refused = [_not_altered(topic) for topic in request.topics if topic.topic_name not in readable]
    request.topics = [topic for topic in request.topics if topic.topic_name in readable]
    if refused and not request.topics:
        return AlterShareGroupOffsetsResponse(responses=refused)
    response = await services.share_groups.alter_offsets(request)
    if not response.error_code:
        response.responses += refused
    return response


def _not_altered(topic: AlterShareGroupOffsetsRequestTopic) -> AlterShareGroupOffsetsResponseTopic:
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
    refused = [_not_deleted(name) for name in names if name not in readable]
    request.topics = [topic for topic in request.topics if topic.topic_name in readable]
    if refused and not request.topics:
        return DeleteShareGroupOffsetsResponse(responses=refused)
    response = await services.share_groups.delete_offsets(request)
    if not response.error_code:
        response.responses[:0] = refused
    return response


def _not_deleted(name: str) -> DeleteShareGroupOffsetsResponseTopic:
    error = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    return DeleteShareGroupOffsetsResponseTopic(
        topic_name=name, error_code=error, error_message=error.message
    )
