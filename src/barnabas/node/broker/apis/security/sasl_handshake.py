"""SaslHandshake (key 17), versions 0-1: KIP-43, 152.

Before a login it is answered by the listener's gate (`broker.login`). Here it comes at the wrong
time, as in Kafka: after a login that has no end, or where there is none.
"""

from barnabas.node.broker.context import RequestContext
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.credentials import SaslHandshakeRequest, SaslHandshakeResponse


def handle_sasl_handshake(
    services: object, context: RequestContext, request: SaslHandshakeRequest
) -> SaslHandshakeResponse:
    """Refuse to choose a mechanism."""
    return SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE)
