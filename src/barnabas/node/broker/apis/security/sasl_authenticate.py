"""SaslAuthenticate (key 36), versions 0-2: KIP-152, 368.

Before a login it is answered by the listener's gate (`broker.login`). Here it comes at the wrong
time, as in Kafka.
"""

from barnabas.node.broker.context import RequestContext
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.credentials import SaslAuthenticateRequest, SaslAuthenticateResponse

MESSAGE = "SaslAuthenticate request received after successful authentication"
"""Kafka's, word for word."""


def handle_sasl_authenticate(
    services: object, context: RequestContext, request: SaslAuthenticateRequest
) -> SaslAuthenticateResponse:
    """Refuse a step of an exchange that was never begun."""
    return SaslAuthenticateResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE, error_message=MESSAGE)
