"""CreateAcls: add access rules (KIP-140, KIP-290)."""

from barnabas.protocol.fields import array_of, int8, int16, int32, string
from barnabas.protocol.schema import Message, Struct, message, struct


@struct
class AclCreation(Struct):
    resource_type: int = int8("0+")
    resource_name: str = string("0+")
    resource_pattern_type: int = int8("1+", default=3)
    principal: str = string("0+")
    host: str = string("0+")
    operation: int = int8("0+")
    permission_type: int = int8("0+")


@message(versions="1-3", flexible="2+", api_key=30, listeners=("broker", "controller"))
class CreateAclsRequest(Message):
    creations: list[AclCreation] = array_of(AclCreation, "0+")


@struct
class AclCreationResult(Struct):
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+")


@message(versions="1-3", flexible="2+", api_key=30)
class CreateAclsResponse(Message):
    throttle_time_ms: int = int32("0+")
    results: list[AclCreationResult] = array_of(AclCreationResult, "0+")
