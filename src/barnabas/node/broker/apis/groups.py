"""Groups of any kind, and the classic protocol.

FindCoordinator (key 10), versions 0-6: KIP-98, 699, 890, 932.

Groups, transactional ids and share-partitions are found; their topic is created when the first
client asks that may know. The key of a share-partition is `group:topicId:partition`.

JoinGroup (key 11), versions 0-9: KIP-62, 345, 394, 559, 800, 814.

The answer comes when the group's next generation begins.

SyncGroup (key 14), versions 0-5: KIP-345, 559.

The answer comes when the leader's assignment is committed.

Heartbeat (key 12), versions 0-4: KIP-62, 345.

REBALANCE_IN_PROGRESS tells a member to join again.

LeaveGroup (key 13), versions 0-5: KIP-345, 800.

Versions before 3 name one member, whose error is the whole's.

DescribeGroups (key 15), versions 0-6: KIP-345, 430, 1043.

Classic groups only, as in Kafka; groups of the other protocols have APIs of their own.

ListGroups (key 16), versions 0-5: KIP-518, 848.

The groups that this broker coordinates; clients ask every broker. Clients that may DESCRIBE the
cluster see all groups, others those that they may DESCRIBE.

DeleteGroups (key 42), versions 0-2: KIP-229.
"""

from collections.abc import Awaitable

from barnabas.base.ids import NO_NODE
from barnabas.node.broker.apis.group_requests import (
    client_of,
    may_read_group,
    split_groups,
    subscriber_of,
)
from barnabas.node.broker.apis.topics import create_topics
from barnabas.node.broker.authorization import allowed, allowed_in_turns, may
from barnabas.node.broker.authorized_operations import authorized_operations
from barnabas.node.broker.context import RequestContext
from barnabas.node.broker.services import BrokerServices
from barnabas.node.coordinator.group.classic.responses import join_error, level_join
from barnabas.node.coordinator.runtime import partition_of
from barnabas.node.coordinator.share.state import SharePartitionKey
from barnabas.node.loop.promise import Promise, then
from barnabas.node.metadata.asker import OWN
from barnabas.node.metadata.image import TopicImage
from barnabas.protocol.acls import Operation, ResourceType
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.groups import (
    Coordinator,
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
    DescribedGroup,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    ListGroupsRequest,
    ListGroupsResponse,
    SyncGroupRequest,
    SyncGroupResponse,
)
from barnabas.protocol.well_known import CONSUMER_OFFSETS, SHARE_GROUP_STATE, TRANSACTION_STATE

GROUP = 0
TRANSACTION = 1
SHARE = 2
TOPICS = {GROUP: CONSUMER_OFFSETS, TRANSACTION: TRANSACTION_STATE, SHARE: SHARE_GROUP_STATE}
DESCRIBED = {
    GROUP: (ResourceType.GROUP, ErrorCode.GROUP_AUTHORIZATION_FAILED),
    TRANSACTION: (
        ResourceType.TRANSACTIONAL_ID,
        ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    ),
}
"""The resource that a client must be allowed to DESCRIBE to find a coordinator, and the error if
not.
"""
BATCHED_FROM_VERSION = 4
SHARE_FROM_VERSION = 6


async def handle_find_coordinator(
    services: BrokerServices, context: RequestContext, request: FindCoordinatorRequest
) -> FindCoordinatorResponse:
    """Name the broker for each key."""
    is_batched = context.api_version >= BATCHED_FROM_VERSION
    keys = request.coordinator_keys if is_batched else [request.key]
    name = TOPICS.get(request.key_type)
    if name is None or (name == SHARE_GROUP_STATE and context.api_version < SHARE_FROM_VERSION):
        coordinators = [_failure(key, ErrorCode.INVALID_REQUEST) for key in keys]
    else:
        coordinators = await _find_allowed(services, context, request.key_type, keys)
    if is_batched:
        return FindCoordinatorResponse(coordinators=coordinators)
    only = coordinators[0]
    return FindCoordinatorResponse(
        error_code=only.error_code,
        error_message=only.error_message,
        node_id=only.node_id,
        host=only.host,
        port=only.port,
    )


async def _find_allowed(
    services: BrokerServices, context: RequestContext, key_type: int, keys: list[str]
) -> list[Coordinator]:
    """Find what the sender may know of, and refuse the rest."""
    name = TOPICS[key_type]
    if not services.authorizer.is_enabled:
        return await _find(services, context, name, keys)
    if key_type == SHARE:
        if may(services, context, Operation.CLUSTER_ACTION, ResourceType.CLUSTER):
            return await _find(services, context, name, keys)
        return [_failure(key, ErrorCode.CLUSTER_AUTHORIZATION_FAILED) for key in keys]
    resource_type, error = DESCRIBED[key_type]
    visible = allowed(services, context, Operation.DESCRIBE, resource_type, keys)
    coordinators = await _find(services, context, name, [key for key in keys if key in visible])
    in_order = iter(coordinators)
    return [next(in_order) if key in visible else _failure(key, error) for key in keys]


async def _find(
    services: BrokerServices, context: RequestContext, name: str, keys: list[str]
) -> list[Coordinator]:
    topic = None
    places: dict[str, str | None] = {
        key: _share_key(key) if name == SHARE_GROUP_STATE else key for key in keys
    }
    if any(place is not None for place in places.values()):
        topic = await _topic(services, name)
    coordinators = []
    for key in keys:
        place = places[key]
        if place is None:
            coordinators.append(_failure(key, ErrorCode.INVALID_REQUEST))
        elif topic is None:
            coordinators.append(_failure(key, ErrorCode.COORDINATOR_NOT_AVAILABLE))
        else:
            coordinators.append(_locate(services, context, topic, key, place))
    return coordinators


def _share_key(key: str) -> str | None:
    """The part of a share-partition's key that decides on the partition; None if the key is
    invalid.
    """
    try:
        return SharePartitionKey.parse(key).coordinator_key
    except ValueError:
        return None


async def _topic(services: BrokerServices, name: str) -> TopicImage | None:
    topic = services.image.topics.by_name.get(name)
    if topic is None:
        await create_topics(services, [name], OWN)
        topic = services.image.topics.by_name.get(name)
    return topic


def _locate(
    services: BrokerServices, context: RequestContext, topic: TopicImage, key: str, place: str
) -> Coordinator:
    partition = topic.partitions.get(partition_of(place, len(topic.partitions)))
    leader = None if partition is None else services.image.brokers.get(partition.leader)
    endpoint = None if leader is None else leader.listeners.get(context.listener_name)
    if leader is None or leader.fenced or endpoint is None:
        return _failure(key, ErrorCode.COORDINATOR_NOT_AVAILABLE)
    return Coordinator(key=key, node_id=leader.id, host=endpoint.host, port=endpoint.port)


def _failure(key: str, error: ErrorCode) -> Coordinator:
    return Coordinator(
        key=key,
        node_id=NO_NODE,
        host="",
        port=-1,
        error_code=error,
        error_message=error.message,
    )


def handle_join_group(
    services: BrokerServices, context: RequestContext, request: JoinGroupRequest
) -> JoinGroupResponse | Awaitable[JoinGroupResponse]:
    """Join a group."""
    if not may_read_group(services, context, request.group_id):
        refused = join_error(ErrorCode.GROUP_AUTHORIZATION_FAILED, "")
        return level_join(refused, context.api_version)
    return services.groups.classics.join(request, subscriber_of(services, context))


def handle_sync_group(
    services: BrokerServices, context: RequestContext, request: SyncGroupRequest
) -> SyncGroupResponse | Awaitable[SyncGroupResponse]:
    """Bring or fetch the assignment of a generation."""
    if not may_read_group(services, context, request.group_id):
        return SyncGroupResponse(error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED)
    return services.groups.classics.sync(request, client_of(context))


def handle_heartbeat(
    services: BrokerServices, context: RequestContext, request: HeartbeatRequest
) -> HeartbeatResponse | Awaitable[HeartbeatResponse]:
    """Keep a member's session alive."""
    if not may_read_group(services, context, request.group_id):
        return HeartbeatResponse(error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED)
    return services.groups.classics.heartbeat(request, client_of(context))


def handle_leave_group(
    services: BrokerServices, context: RequestContext, request: LeaveGroupRequest
) -> LeaveGroupResponse | Awaitable[LeaveGroupResponse]:
    """Take members out of a group."""
    if not may_read_group(services, context, request.group_id):
        return LeaveGroupResponse(error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED)
    return services.groups.classics.leave(request, client_of(context))


def handle_describe_groups(
    services: BrokerServices, context: RequestContext, request: DescribeGroupsRequest
) -> DescribeGroupsResponse | Awaitable[DescribeGroupsResponse]:
    """Describe groups and their members."""

    asked, denied = split_groups(services, context, Operation.DESCRIBE, request.groups)

    def finish(response: DescribeGroupsResponse) -> DescribeGroupsResponse:
        if request.include_authorized_operations:
            for group in response.groups:
                if not group.error_code:
                    group.authorized_operations = authorized_operations(
                        services, context, ResourceType.GROUP, group.group_id
                    )
        if denied:
            refused = ErrorCode.GROUP_AUTHORIZATION_FAILED
            response.groups[:0] = [
                DescribedGroup(group_id=group_id, error_code=refused) for group_id in denied
            ]
        return response

    if denied:
        request.groups = list(asked)
    return then(services.groups.classics.describe(request, client_of(context)), finish)


def handle_list_groups(
    services: BrokerServices, context: RequestContext, request: ListGroupsRequest
) -> ListGroupsResponse | Promise[ListGroupsResponse]:
    """List groups."""
    listed = services.groups.list_groups(request)
    if may(services, context, Operation.DESCRIBE, ResourceType.CLUSTER, logs_denial=False):
        return listed

    def finish(response: ListGroupsResponse) -> ListGroupsResponse:
        names = {group.group_id for group in response.groups}
        visible = allowed(
            services, context, Operation.DESCRIBE, ResourceType.GROUP, names, logs_denial=False
        )
        response.groups = [group for group in response.groups if group.group_id in visible]
        return response

    return then(listed, finish)


async def handle_delete_groups(
    services: BrokerServices, context: RequestContext, request: DeleteGroupsRequest
) -> DeleteGroupsResponse:
    """Delete groups that have no members; of share groups also what share coordinators keep."""
    names = list(dict.fromkeys(request.groups_names))
    deletable = await allowed_in_turns(
        services, context, Operation.DELETE, ResourceType.GROUP, names
    )
    request.groups_names = [name for name in names if name in deletable]
    response = await services.share_groups.delete_groups(request)
    refused = ErrorCode.GROUP_AUTHORIZATION_FAILED
    response.results += [
        DeletableGroupResult(group_id=group_id, error_code=refused)
        for group_id in names
        if group_id not in deletable
    ]
    return response
