"""RemoveRaftVoter (key 81), version 0: KIP-853. Carried out by the quorum's leader."""

from barnabas.node.broker.context import RequestContext
from barnabas.node.broker.controller.requests import ask_controller
from barnabas.node.broker.services import BrokerServices
from barnabas.protocol.messages.voters import RemoveRaftVoterRequest, RemoveRaftVoterResponse


async def handle_remove_raft_voter(
    services: BrokerServices, context: RequestContext, request: RemoveRaftVoterRequest
) -> RemoveRaftVoterResponse:
    """Take a voter out of the quorum."""
    response: RemoveRaftVoterResponse = await ask_controller(services, context, request)
    return response
