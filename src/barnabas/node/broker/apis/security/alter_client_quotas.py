"""AlterClientQuotas (key 49), versions 0-1: KIP-546, 599, 612. Decided by the controller."""

from barnabas.node.broker.authorization import may
from barnabas.node.broker.context import RequestContext
from barnabas.node.broker.controller.requests import ask_controller
from barnabas.node.broker.services import BrokerServices
from barnabas.node.metadata.controller.refusals import refuse
from barnabas.protocol.acls import Operation, ResourceType
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.quotas import AlterClientQuotasRequest, AlterClientQuotasResponse


async def handle_alter_client_quotas(
    services: BrokerServices, context: RequestContext, request: AlterClientQuotasRequest
) -> AlterClientQuotasResponse:
    """Set and remove limits, for each entity all that is asked for or nothing."""
    response: AlterClientQuotasResponse
    if not may(services, context, Operation.ALTER_CONFIGS, ResourceType.CLUSTER):
        response = refuse(request, ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    else:
        response = await ask_controller(services, context, request)
    return response
