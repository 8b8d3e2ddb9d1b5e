"""DeleteAcls (key 31), versions 1-3: KIP-140, 290. Decided by the controller."""

from barnabas.node.broker.context import RequestContext
from barnabas.node.broker.controller.requests import ask_controller
from barnabas.node.broker.services import BrokerServices
from barnabas.protocol.messages.acls import DeleteAclsRequest, DeleteAclsResponse


async def handle_delete_acls(
    services: BrokerServices, context: RequestContext, request: DeleteAclsRequest
) -> DeleteAclsResponse:
    """Remove the ACLs that filters name, and tell which they were."""
    response: DeleteAclsResponse = await ask_controller(services, context, request)
    return response
