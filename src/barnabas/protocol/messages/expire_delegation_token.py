"""ExpireDelegationToken: end a token's life, now or later (KIP-48)."""

from barnabas.protocol.fields import binary, int16, int32, int64
from barnabas.protocol.schema import Message, message


@message(versions="1-2", flexible="2+", api_key=40, listeners=("broker", "controller"))
class ExpireDelegationTokenRequest(Message):
    hmac: bytes = binary("0+")
    expiry_time_period_ms: int = int64("0+")


@message(versions="1-2", flexible="2+", api_key=40)
class ExpireDelegationTokenResponse(Message):
    error_code: int = int16("0+")
    expiry_timestamp_ms: int = int64("0+")
    throttle_time_ms: int = int32("0+")
