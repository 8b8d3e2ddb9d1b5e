"""Progress of share groups: requests of a leader to the share coordinator.

InitializeShareGroupState (key 83), version 0: KIP-932.

A group coordinator asks the share coordinator, when a share group meets a partition or is moved.

ReadShareGroupState (key 84), version 0: KIP-932.

The leader of a partition asks the share coordinator, before it delivers to a share group.

WriteShareGroupState (key 85), versions 0-1: KIP-932, 1226.

The leader of a partition tells the share coordinator how far a share group is.

DeleteShareGroupState (key 86), version 0: KIP-932.

A group coordinator tells the share coordinator that a share group or its topic is gone.

ReadShareGroupStateSummary (key 87), versions 0-1: KIP-932, 1226.

A group coordinator asks the share coordinator, for who describes the offsets of a share group.
"""

from collections.abc import Awaitable

from barnabas.node.broker.authorization import may
from barnabas.node.broker.context import RequestContext
from barnabas.node.broker.services import BrokerServices
from barnabas.node.coordinator.share.operations import (
    DELETE,
    INITIALIZE,
    READ,
    SUMMARY,
    WRITE,
    refuse,
    serve,
)
from barnabas.protocol.acls import Operation, ResourceType
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.share_state import (
    DeleteShareGroupStateRequest,
    DeleteShareGroupStateResponse,
    InitializeShareGroupStateRequest,
    InitializeShareGroupStateResponse,
    ReadShareGroupStateRequest,
    ReadShareGroupStateResponse,
    ReadShareGroupStateSummaryRequest,
    ReadShareGroupStateSummaryResponse,
    WriteShareGroupStateRequest,
    WriteShareGroupStateResponse,
)


def handle_initialize_share_group_state(
    services: BrokerServices, context: RequestContext, request: InitializeShareGroupStateRequest
) -> InitializeShareGroupStateResponse | Awaitable[InitializeShareGroupStateResponse]:
    """Begin with share-partitions; the answer comes when that is committed."""
    if not may(services, context, Operation.CLUSTER_ACTION, ResourceType.CLUSTER):
        return refuse(INITIALIZE, request, ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    return serve(INITIALIZE, services.shares, request)


def handle_read_share_group_state(
    services: BrokerServices, context: RequestContext, request: ReadShareGroupStateRequest
) -> ReadShareGroupStateResponse | Awaitable[ReadShareGroupStateResponse]:
    """Tell what is kept of share-partitions."""
    if not may(services, context, Operation.CLUSTER_ACTION, ResourceType.CLUSTER):
        return refuse(READ, request, ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    return serve(READ, services.shares, request)


def handle_write_share_group_state(
    services: BrokerServices, context: RequestContext, request: WriteShareGroupStateRequest
) -> WriteShareGroupStateResponse | Awaitable[WriteShareGroupStateResponse]:
    """Keep what has changed; the answer comes when that is committed."""
    if not may(services, context, Operation.CLUSTER_ACTION, ResourceType.CLUSTER):
        return refuse(WRITE, request, ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    return serve(WRITE, services.shares, request)


def handle_delete_share_group_state(
    services: BrokerServices, context: RequestContext, request: DeleteShareGroupStateRequest
) -> DeleteShareGroupStateResponse | Awaitable[DeleteShareGroupStateResponse]:
    """Forget share-partitions; the answer comes when that is committed."""
    if not may(services, context, Operation.CLUSTER_ACTION, ResourceType.CLUSTER):
        return refuse(DELETE, request, ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    return serve(DELETE, services.shares, request)


def handle_read_share_group_state_summary(
    services: BrokerServices, context: RequestContext, request: ReadShareGroupStateSummaryRequest
) -> ReadShareGroupStateSummaryResponse | Awaitable[ReadShareGroupStateSummaryResponse]:
    """Tell where share-partitions begin, without their batches."""
    if not may(services, context, Operation.CLUSTER_ACTION, ResourceType.CLUSTER):
        return refuse(SUMMARY, request, ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    return serve(SUMMARY, services.shares, request)
