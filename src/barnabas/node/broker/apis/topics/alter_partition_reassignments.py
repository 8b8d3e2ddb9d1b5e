"""AlterPartitionReassignments (key 45), versions 0-1: KIP-455, 860. Decided by the controller.

The answer says that replicas begin to move, not that they have; ListPartitionReassignments says
which still do.
"""

from barnabas.node.broker.context import RequestContext
from barnabas.node.broker.controller.requests import ask_controller
from barnabas.node.broker.services import BrokerServices
from barnabas.protocol.messages.partitions import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
)


async def handle_alter_partition_reassignments(
    services: BrokerServices, context: RequestContext, request: AlterPartitionReassignmentsRequest
) -> AlterPartitionReassignmentsResponse:
    """Begin to move replicas, or cancel that."""
    response: AlterPartitionReassignmentsResponse = await ask_controller(
        services, context, request, request.timeout_ms
    )
    return response
