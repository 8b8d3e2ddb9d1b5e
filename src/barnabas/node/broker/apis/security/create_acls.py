"""CreateAcls (key 30), versions 1-3: KIP-140, 290. Decided by the controller."""

from barnabas.node.broker.context import RequestContext
from barnabas.node.broker.controller.requests import ask_controller
from barnabas.node.broker.services import BrokerServices
from barnabas.protocol.messages.acls import CreateAclsRequest, CreateAclsResponse


async def handle_create_acls(
    services: BrokerServices, context: RequestContext, request: CreateAclsRequest
) -> CreateAclsResponse:
    """Make ACLs that are not there yet."""
    response: CreateAclsResponse = await ask_controller(services, context, request)
    return response
