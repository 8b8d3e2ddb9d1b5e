"""ExpireDelegationToken (key 40), versions 1-2: KIP-48. Decided by the controller."""

from barnabas.node.broker.apis.security.token_requests import ERROR_TIMESTAMP_MS, may_ask_for_tokens
from barnabas.node.broker.context import RequestContext
from barnabas.node.broker.controller.requests import ask_controller
from barnabas.node.broker.services import BrokerServices
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.credentials import (
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
)


async def handle_expire_delegation_token(
    services: BrokerServices, context: RequestContext, request: ExpireDelegationTokenRequest
) -> ExpireDelegationTokenResponse:
    """Set when a token expires, or end it at once."""
    if not may_ask_for_tokens(context):
        return ExpireDelegationTokenResponse(
            error_code=ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED,
            expiry_timestamp_ms=ERROR_TIMESTAMP_MS,
        )
    response: ExpireDelegationTokenResponse = await ask_controller(services, context, request)
    return response
