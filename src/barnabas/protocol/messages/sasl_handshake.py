"""SaslHandshake: choose the SASL mechanism (KIP-43, KIP-152)."""

from barnabas.protocol.fields import array_of, int16, string
from barnabas.protocol.schema import Message, message


@message(versions="0-1", api_key=17, listeners=("broker", "controller"))
class SaslHandshakeRequest(Message):
    mechanism: str = string("0+")


@message(versions="0-1", api_key=17)
class SaslHandshakeResponse(Message):
    error_code: int = int16("0+")
    mechanisms: list[str] = array_of(string, "0+")
