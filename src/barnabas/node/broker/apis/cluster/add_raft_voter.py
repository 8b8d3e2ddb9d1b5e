"""AddRaftVoter (key 80), versions 0-1: KIP-853. Carried out by the quorum's leader."""

from barnabas.node.broker.context import RequestContext
from barnabas.node.broker.controller.requests import ask_controller
from barnabas.node.broker.services import BrokerServices
from barnabas.protocol.messages.voters import AddRaftVoterRequest, AddRaftVoterResponse


async def handle_add_raft_voter(
    services: BrokerServices, context: RequestContext, request: AddRaftVoterRequest
) -> AddRaftVoterResponse:
    """Make an observer of the metadata log a voter."""
    response: AddRaftVoterResponse = await ask_controller(
        services, context, request, request.timeout_ms
    )
    return response
