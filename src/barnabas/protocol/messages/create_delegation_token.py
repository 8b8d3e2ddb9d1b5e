"""CreateDelegationToken: issue a token (KIP-48, KIP-373)."""

from barnabas.protocol.fields import array_of, binary, int16, int32, int64, string
from barnabas.protocol.schema import Message, Struct, message, struct


@struct
class CreatableRenewers(Struct):
    principal_type: str = string("0+")
    principal_name: str = string("0+")


@message(versions="1-3", flexible="2+", api_key=38, listeners=("broker", "controller"))
class CreateDelegationTokenRequest(Message):
    owner_principal_type: str | None = string("3+", nullable="3+")
    owner_principal_name: str | None = string("3+", nullable="3+")
    renewers: list[CreatableRenewers] = array_of(CreatableRenewers, "0+")
    max_lifetime_ms: int = int64("0+")


@message(versions="1-3", flexible="2+", api_key=38)
class CreateDelegationTokenResponse(Message):
    error_code: int = int16("0+")
    principal_type: str = string("0+")
    principal_name: str = string("0+")
    token_requester_principal_type: str = string("3+")
    token_requester_principal_name: str = string("3+")
    issue_timestamp_ms: int = int64("0+")
    expiry_timestamp_ms: int = int64("0+")
    max_timestamp_ms: int = int64("0+")
    token_id: str = string("0+")
    hmac: bytes = binary("0+")
    throttle_time_ms: int = int32("0+")
