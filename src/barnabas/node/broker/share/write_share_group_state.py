"""WriteShareGroupState (key 85), versions 0-1: KIP-932, 1226.

The leader of a partition tells the share coordinator how far a share group is.
"""

from barnabas.node.broker.authorization import may
from barnabas.node.broker.context import RequestContext
from barnabas.node.broker.services import BrokerServices
from barnabas.node.coordinator.share.operations import WRITE, refuse, serve
from barnabas.node.loop.promise import Promise
from barnabas.protocol.acls import Operation, ResourceType
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.share_state import (
    WriteShareGroupStateRequest,
    WriteShareGroupStateResponse,
)


def handle_write_share_group_state(
    services: BrokerServices, context: RequestContext, request: WriteShareGroupStateRequest
) -> WriteShareGroupStateResponse | Promise[WriteShareGroupStateResponse]:
    """Keep what has changed; the answer comes when that is committed."""
    if not may(services, context, Operation.CLUSTER_ACTION, ResourceType.CLUSTER):
        return refuse(WRITE, request, ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    return serve(WRITE, services.shares, request)
