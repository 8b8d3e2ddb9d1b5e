"""AlterUserScramCredentials: set and delete SCRAM credentials (KIP-554)."""

from barnabas.protocol.fields import array_of, binary, int8, int16, int32, string
from barnabas.protocol.schema import Message, Struct, message, struct


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
