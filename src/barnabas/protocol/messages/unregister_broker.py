"""UnregisterBroker: remove a broker for good (KIP-631)."""

from barnabas.protocol.fields import int16, int32, string
from barnabas.protocol.schema import Message, message


@message(versions="0", flexible="0+", api_key=64, listeners=("broker", "controller"))
class UnregisterBrokerRequest(Message):
    broker_id: int = int32("0+")


@message(versions="0", flexible="0+", api_key=64)
class UnregisterBrokerResponse(Message):
    throttle_time_ms: int = int32("0+")
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+")
