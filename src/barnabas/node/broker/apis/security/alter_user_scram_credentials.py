"""AlterUserScramCredentials (key 51), version 0: KIP-554. Decided by the controller."""

from barnabas.node.broker.authorization import may
from barnabas.node.broker.context import RequestContext
from barnabas.node.broker.controller.requests import ask_controller
from barnabas.node.broker.services import BrokerServices
from barnabas.node.metadata.controller.refusals import refuse
from barnabas.protocol.acls import Operation, ResourceType
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
)


async def handle_alter_user_scram_credentials(
    services: BrokerServices, context: RequestContext, request: AlterUserScramCredentialsRequest
) -> AlterUserScramCredentialsResponse:
    """Set and delete SCRAM credentials."""
    response: AlterUserScramCredentialsResponse
    if not may(services, context, Operation.ALTER, ResourceType.CLUSTER):
        response = refuse(request, ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    else:
        response = await ask_controller(services, context, request)
    return response
