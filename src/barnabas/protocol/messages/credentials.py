"""Logins: SASL, SCRAM credentials, delegation tokens."""

from barnabas.protocol.fields import array_of, binary, int8, int16, int32, int64, string
from barnabas.protocol.schema import Message, Struct, message, struct

# SaslHandshake: choose the SASL mechanism (KIP-43, KIP-152).


@message(versions="0-1", api_key=17, listeners=("broker", "controller"))
class SaslHandshakeRequest(Message):
    mechanism: str = string("0+")


@message(versions="0-1", api_key=17)
class SaslHandshakeResponse(Message):
    error_code: int = int16("0+")
    mechanisms: list[str] = array_of(string, "0+")


# SaslAuthenticate: one step of a SASL exchange (KIP-152, KIP-368).


@message(versions="0-2", flexible="2+", api_key=36, listeners=("broker", "controller"))
class SaslAuthenticateRequest(Message):
    auth_bytes: bytes = binary("0+")


@message(versions="0-2", flexible="2+", api_key=36)
class SaslAuthenticateResponse(Message):
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+")
    auth_bytes: bytes = binary("0+")
    session_lifetime_ms: int = int64("1+", ignorable=True)


# DescribeUserScramCredentials: which SCRAM mechanisms users have (KIP-554).


@struct
class UserName(Struct):
    name: str = string("0+")


@message(versions="0", flexible="0+", api_key=50, listeners=("broker", "controller"))
class DescribeUserScramCredentialsRequest(Message):
    users: list[UserName] | None = array_of(UserName, "0+", nullable="0+")


@struct
class CredentialInfo(Struct):
    mechanism: int = int8("0+")
    iterations: int = int32("0+")


@struct
class DescribeUserScramCredentialsResult(Struct):
    user: str = string("0+")
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+")
    credential_infos: list[CredentialInfo] = array_of(CredentialInfo, "0+")


@message(versions="0", flexible="0+", api_key=50)
class DescribeUserScramCredentialsResponse(Message):
    throttle_time_ms: int = int32("0+")
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+")
    results: list[DescribeUserScramCredentialsResult] = array_of(
        DescribeUserScramCredentialsResult, "0+"
    )


# AlterUserScramCredentials: set and delete SCRAM credentials (KIP-554).


@struct
class ScramCredentialDeletion(Struct):
    name: str = string("0+")
    mechanism: int = int8("0+")


@struct
class ScramCredentialUpsertion(Struct):
    name: str = string("0+")
    mechanism: int = int8("0+")
    iterations: int = int32("0+")
    salt: bytes = binary("0+")
    salted_password: bytes = binary("0+")


@message(versions="0", flexible="0+", api_key=51, listeners=("broker", "controller"))
class AlterUserScramCredentialsRequest(Message):
    deletions: list[ScramCredentialDeletion] = array_of(ScramCredentialDeletion, "0+")
    upsertions: list[ScramCredentialUpsertion] = array_of(ScramCredentialUpsertion, "0+")


@struct
class AlterUserScramCredentialsResult(Struct):
    user: str = string("0+")
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+")


@message(versions="0", flexible="0+", api_key=51)
class AlterUserScramCredentialsResponse(Message):
    throttle_time_ms: int = int32("0+")
    results: list[AlterUserScramCredentialsResult] = array_of(AlterUserScramCredentialsResult, "0+")


# CreateDelegationToken: issue a token (KIP-48, KIP-373).


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


# RenewDelegationToken: prolong a token's life (KIP-48).


@message(versions="1-2", flexible="2+", api_key=39, listeners=("broker", "controller"))
class RenewDelegationTokenRequest(Message):
    hmac: bytes = binary("0+")
    renew_period_ms: int = int64("0+")


@message(versions="1-2", flexible="2+", api_key=39)
class RenewDelegationTokenResponse(Message):
    error_code: int = int16("0+")
    expiry_timestamp_ms: int = int64("0+")
    throttle_time_ms: int = int32("0+")


# ExpireDelegationToken: end a token's life, now or later (KIP-48).


@message(versions="1-2", flexible="2+", api_key=40, listeners=("broker", "controller"))
class ExpireDelegationTokenRequest(Message):
    hmac: bytes = binary("0+")
    expiry_time_period_ms: int = int64("0+")


@message(versions="1-2", flexible="2+", api_key=40)
class ExpireDelegationTokenResponse(Message):
    error_code: int = int16("0+")
    expiry_timestamp_ms: int = int64("0+")
    throttle_time_ms: int = int32("0+")


# DescribeDelegationToken: the tokens that owners hold (KIP-48, KIP-373).


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
