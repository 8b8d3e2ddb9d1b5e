"""InitializeShareGroupState (key 83), version 0: KIP-932.

A group coordinator asks the share coordinator, when a share group meets a partition or is moved.
"""

from barnabas.node.broker.authorization import may
from barnabas.node.broker.context import RequestContext
from barnabas.node.broker.services import BrokerServices
from barnabas.node.coordinator.share.operations import INITIALIZE, refuse, serve
from barnabas.node.loop.promise import Promise
from barnabas.protocol.acls import Operation, ResourceType
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.share_state import (
    InitializeShareGroupStateRequest,
    InitializeShareGroupStateResponse,
)


def handle_initialize_share_group_state(
    services: BrokerServices, context: RequestContext, request: InitializeShareGroupStateRequest
) -> InitializeShareGroupStateResponse | Promise[InitializeShareGroupStateResponse]:
    """Begin with share-partitions; the answer comes when that is committed."""
    if not may(services, context, Operation.CLUSTER_ACTION, ResourceType.CLUSTER):
        return refuse(INITIALIZE, request, ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    return serve(INITIALIZE, services.shares, request)
