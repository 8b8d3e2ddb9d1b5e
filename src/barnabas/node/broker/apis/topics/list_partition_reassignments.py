"""ListPartitionReassignments (key 46), version 0: KIP-455. Answered by the controller."""

from barnabas.node.broker.context import RequestContext
from barnabas.node.broker.controller.requests import ask_controller
from barnabas.node.broker.services import BrokerServices
from barnabas.protocol.messages.partitions import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)


async def handle_list_partition_reassignments(
    services: BrokerServices, context: RequestContext, request: ListPartitionReassignmentsRequest
) -> ListPartitionReassignmentsResponse:
    """Which replicas are being added and removed."""
    response: ListPartitionReassignmentsResponse = await ask_controller(
        services, context, request, request.timeout_ms
    )
    return response
