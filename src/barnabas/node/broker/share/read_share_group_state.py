"""ReadShareGroupState (key 84), version 0: KIP-932.

The leader of a partition asks the share coordinator, before it delivers to a share group.
"""

from barnabas.node.broker.authorization import may
from barnabas.node.broker.context import RequestContext
from barnabas.node.broker.services import BrokerServices
from barnabas.node.coordinator.share.operations import READ, refuse, serve
from barnabas.node.loop.promise import Promise
from barnabas.protocol.acls import Operation, ResourceType
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.share_state import (
    ReadShareGroupStateRequest,
    ReadShareGroupStateResponse,
)


def handle_read_share_group_state(
    services: BrokerServices, context: RequestContext, request: ReadShareGroupStateRequest
) -> ReadShareGroupStateResponse | Promise[ReadShareGroupStateResponse]:
    """Tell what is kept of share-partitions."""
    if not may(services, context, Operation.CLUSTER_ACTION, ResourceType.CLUSTER):
        return refuse(READ, request, ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    return serve(READ, services.shares, request)
