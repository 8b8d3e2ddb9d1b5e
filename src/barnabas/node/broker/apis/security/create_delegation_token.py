"""CreateDelegationToken (key 38), versions 1-3: KIP-48, 373. Decided by the controller."""

from barnabas.node.broker.apis.security.token_requests import ERROR_TIMESTAMP_MS, may_ask_for_tokens
from barnabas.node.broker.authorization import may
from barnabas.node.broker.context import RequestContext
from barnabas.node.broker.controller.requests import ask_controller
from barnabas.node.broker.controller.versions import fit
from barnabas.node.broker.services import BrokerServices
from barnabas.node.security.principal import USER, Principal
from barnabas.protocol.acls import Operation, ResourceType
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.credentials import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)


async def handle_create_delegation_token(
    services: BrokerServices, context: RequestContext, request: CreateDelegationTokenRequest
) -> CreateDelegationTokenResponse:
    """Issue a token, to the sender or to another owner."""
    requester = context.principal
    owner = requester
    if request.owner_principal_name:
        owner = Principal(request.owner_principal_type or "", request.owner_principal_name)
    code = ErrorCode.NONE
    if not may_ask_for_tokens(context):
        code = ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
    elif owner != requester and not may(
        services, context, Operation.CREATE_TOKENS, ResourceType.USER, str(owner)
    ):
        code = ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED
    elif any(renewer.principal_type != USER for renewer in request.renewers):
        code = ErrorCode.INVALID_PRINCIPAL_TYPE
    if code is not ErrorCode.NONE:
        refusal = CreateDelegationTokenResponse(
            error_code=code,
            principal_type=owner.kind,
            principal_name=owner.name,
            token_requester_principal_type=requester.kind,
            token_requester_principal_name=requester.name,
            issue_timestamp_ms=ERROR_TIMESTAMP_MS,
            expiry_timestamp_ms=ERROR_TIMESTAMP_MS,
            max_timestamp_ms=ERROR_TIMESTAMP_MS,
        )
        return fit(refusal, context.api_version)
    response: CreateDelegationTokenResponse = await ask_controller(services, context, request)
    return response
