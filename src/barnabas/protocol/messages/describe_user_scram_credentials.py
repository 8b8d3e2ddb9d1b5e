"""DescribeUserScramCredentials: which SCRAM mechanisms users have (KIP-554)."""

from barnabas.protocol.fields import array_of, int8, int16, int32, string
from barnabas.protocol.schema import Message, Struct, message, struct


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
