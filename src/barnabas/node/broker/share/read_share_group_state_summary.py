"""ReadShareGroupStateSummary (key 87), versions 0-1: KIP-932, 1226.

A group coordinator asks the share coordinator, for who describes the offsets of a share group.
"""

from barnabas.node.broker.authorization import may
from barnabas.node.broker.context import RequestContext
from barnabas.node.broker.services import BrokerServices
from barnabas.node.coordinator.share.operations import SUMMARY, refuse, serve
from barnabas.node.loop.promise import Promise
from barnabas.protocol.acls import Operation, ResourceType
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.share_state import (
    ReadShareGroupStateSummaryRequest,
    ReadShareGroupStateSummaryResponse,
)


def handle_read_share_group_state_summary(
    services: BrokerServices, context: RequestContext, request: ReadShareGroupStateSummaryRequest
) -> ReadShareGroupStateSummaryResponse | Promise[ReadShareGroupStateSummaryResponse]:
    """Tell where share-partitions begin, without their batches."""
    if not may(services, context, Operation.CLUSTER_ACTION, ResourceType.CLUSTER):
        return refuse(SUMMARY, request, ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    return serve(SUMMARY, services.shares, request)
