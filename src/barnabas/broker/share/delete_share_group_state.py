"""DeleteShareGroupState (key 86), version 0: KIP-932.

A group coordinator tells the share coordinator that a share group or its topic is gone.
"""

from barnabas.base.promise import Promise
from barnabas.broker.context import RequestContext
from barnabas.broker.services import BrokerServices
from barnabas.coordinator.share.operations import DELETE, serve
from barnabas.protocol.messages.delete_share_group_state import (
    DeleteShareGroupStateRequest,
    DeleteShareGroupStateResponse,
)


def handle_delete_share_group_state(
    services: BrokerServices, context: RequestContext, request: DeleteShareGroupStateRequest
) -> DeleteShareGroupStateResponse | Promise[DeleteShareGroupStateResponse]:
    """Forget share-partitions; the answer comes when that is committed."""
    return serve(DELETE, services.shares, request)
