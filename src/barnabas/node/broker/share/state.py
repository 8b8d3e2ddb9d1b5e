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
from typing import Any

from barnabas.node.broker.authorization import may
from barnabas.node.broker.context import RequestContext
from barnabas.node.broker.route import Handler
from barnabas.node.broker.services import BrokerServices
from barnabas.node.coordinator.share.operations import Operation as StateOperation
from barnabas.node.coordinator.share.operations import Resp, refuse, serve
from barnabas.protocol.acls import Operation, ResourceType
from barnabas.protocol.errors import ErrorCode


def state_handler(operation: StateOperation[Resp]) -> Handler[BrokerServices, Any, Resp]:
    """The handler of one of the requests. Only brokers may ask; changes are answered when they are
    committed."""

    def handle_share_state(
        services: BrokerServices, context: RequestContext, request: Any
    ) -> Resp | Awaitable[Resp]:
        if not may(services, context, Operation.CLUSTER_ACTION, ResourceType.CLUSTER):
            return refuse(operation, request, ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
        return serve(operation, services.shares, request)

    return handle_share_state
