"""RenewDelegationToken: prolong a token's life (KIP-48)."""

from barnabas.protocol.fields import binary, int16, int32, int64
from barnabas.protocol.schema import Message, message


@message(versions="1-2", flexible="2+", api_key=39, listeners=("broker", "controller"))
class RenewDelegationTokenRequest(Message):
    hmac: bytes = binary("0+")
    renew_period_ms: int = int64("0+")


@message(versions="1-2", flexible="2+", api_key=39)
class RenewDelegationTokenResponse(Message):
    error_code: int = int16("0+")
    expiry_timestamp_ms: int = int64("0+")
    throttle_time_ms: int = int32("0+")
