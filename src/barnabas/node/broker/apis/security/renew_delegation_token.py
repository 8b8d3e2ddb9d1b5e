"""RenewDelegationToken (key 39), versions 1-2: KIP-48. Decided by the controller."""

from barnabas.node.broker.apis.security.token_requests import ERROR_TIMESTAMP_MS, may_ask_for_tokens
from barnabas.node.broker.context import RequestContext
from barnabas.node.broker.controller.requests import ask_controller
from barnabas.node.broker.services import BrokerServices
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.credentials import (
    RenewDelegationTokenRequest,
    RenewDelegationTokenResponse,
)


async def handle_renew_delegation_token(
    services: BrokerServices, context: RequestContext, request: RenewDelegationTokenRequest
) -> RenewDelegationTokenResponse:
    """Put a token's expiry off."""
    if not may_ask_for_tokens(context):
        return RenewDelegationTokenResponse(
            error_code=ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED,
            expiry_timestamp_ms=ERROR_TIMESTAMP_MS,
        )
    response: RenewDelegationTokenResponse = await ask_controller(services, context, request)
    return response
