"""Envelope: a broker passes a client's request on to the controller, with its principal.

Source: KIP-590.
"""

from barnabas.protocol.fields import binary, int16
from barnabas.protocol.schema import Message, message


@message(versions="0", flexible="0+", api_key=58, listeners=("controller",))
class EnvelopeRequest(Message):
    request_data: bytes = binary("0+")
    request_principal: bytes | None = binary("0+", nullable="0+")
    client_host_address: bytes = binary("0+")


@message(versions="0", flexible="0+", api_key=58)
class EnvelopeResponse(Message):
    response_data: bytes | None = binary("0+", nullable="0+", default=None)
    error_code: int = int16("0+")
