"""InitializeShareGroupState (key 83), version 0: KIP-932.

A group coordinator asks the share coordinator, when a share group meets a partition or is moved.
"""

from barnabas.base.promise import Promise
from barnabas.broker.context import RequestContext
from barnabas.broker.services import BrokerServices
from barnabas.coordinator.share.operations import INITIALIZE, serve
from barnabas.protocol.messages.initialize_share_group_state import (
    InitializeShareGroupStateRequest,
    InitializeShareGroupStateResponse,
)


def handle_initialize_share_group_state(
    services: BrokerServices, context: RequestContext, request: InitializeShareGroupStateRequest
) -> InitializeShareGroupStateResponse | Promise[InitializeShareGroupStateResponse]:
    """Begin with share-partitions; the answer comes when that is committed."""
    return serve(INITIALIZE, services.shares, request)
