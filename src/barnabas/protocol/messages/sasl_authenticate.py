"""SaslAuthenticate: one step of a SASL exchange (KIP-152, KIP-368)."""

from barnabas.protocol.fields import binary, int16, int64, string
from barnabas.protocol.schema import Message, message


@message(versions="0-2", flexible="2+", api_key=36, listeners=("broker", "controller"))
class SaslAuthenticateRequest(Message):
    auth_bytes: bytes = binary("0+")


@message(versions="0-2", flexible="2+", api_key=36)
class SaslAuthenticateResponse(Message):
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+")
    auth_bytes: bytes = binary("0+")
    session_lifetime_ms: int = int64("1+", ignorable=True)
