"""DeleteShareGroupState (key 86), version 0: KIP-932.

A group coordinator tells the share coordinator that a share group or its topic is gone.
"""

from barnabas.node.broker.authorization import may
from barnabas.node.broker.context import RequestContext
from barnabas.node.broker.services import BrokerServices
from barnabas.node.coordinator.share.operations import DELETE, refuse, serve
from barnabas.node.loop.promise import Promise
from barnabas.protocol.acls import Operation, ResourceType
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.share_state import (
    DeleteShareGroupStateRequest,
    DeleteShareGroupStateResponse,
)


def handle_delete_share_group_state(
    services: BrokerServices, context: RequestContext, request: DeleteShareGroupStateRequest
) -> DeleteShareGroupStateResponse | Promise[DeleteShareGroupStateResponse]:
    """Forget share-partitions; the answer comes when that is committed."""
    if not may(services, context, Operation.CLUSTER_ACTION, ResourceType.CLUSTER):
        return refuse(DELETE, request, ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    return serve(DELETE, services.shares, request)
