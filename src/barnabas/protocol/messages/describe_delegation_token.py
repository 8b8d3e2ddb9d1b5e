"""DescribeDelegationToken: the tokens that owners hold (KIP-48, KIP-373)."""

from barnabas.protocol.fields import array_of, binary, int16, int32, int64, string
from barnabas.protocol.schema import Message, Struct, message, struct


@struct
class DescribeDelegationTokenOwner(Struct):
    principal_type: str = string("0+")
    principal_name: str = string("0+")


@message(versions="1-3", flexible="2+", api_key=41, listeners=("broker", "controller"))
class DescribeDelegationTokenRequest(Message):
    owners: list[DescribeDelegationTokenOwner] | None = array_of(
        DescribeDelegationTokenOwner, "0+", nullable="0+"
    )


@struct
class DescribedDelegationTokenRenewer(Struct):
    principal_type: str = string("0+")
    principal_name: str = string("0+")


@struct
class DescribedDelegationToken(Struct):
    principal_type: str = string("0+")
    principal_name: str = string("0+")
    token_requester_principal_type: str = string("3+")
    token_requester_principal_name: str = string("3+")
    issue_timestamp: int = int64("0+")
    expiry_timestamp: int = int64("0+")
    max_timestamp: int = int64("0+")
    token_id: str = string("0+")
    hmac: bytes = binary("0+")
    renewers: list[DescribedDelegationTokenRenewer] = array_of(
        DescribedDelegationTokenRenewer, "0+"
    )


@message(versions="1-3", flexible="2+", api_key=41)
class DescribeDelegationTokenResponse(Message):
    error_code: int = int16("0+")
    tokens: list[DescribedDelegationToken] = array_of(DescribedDelegationToken, "0+")
    throttle_time_ms: int = int32("0+")
