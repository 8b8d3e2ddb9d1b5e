"""IncrementalAlterConfigs: set, delete, append to and subtract from single settings (KIP-339)."""

from barnabas.protocol.fields import array_of, boolean, int8, int16, int32, string
from barnabas.protocol.schema import Message, Struct, message, struct


@struct
class AlterableConfig(Struct):
    name: str = string("0+", map_key=True)
    config_operation: int = int8("0+", map_key=True)
    value: str | None = string("0+", nullable="0+")


@struct
class AlterConfigsResource(Struct):
    resource_type: int = int8("0+", map_key=True)
    resource_name: str = string("0+", map_key=True)
    configs: list[AlterableConfig] = array_of(AlterableConfig, "0+")


@message(versions="0-1", flexible="1+", api_key=44, listeners=("broker", "controller"))
class IncrementalAlterConfigsRequest(Message):
    resources: list[AlterConfigsResource] = array_of(AlterConfigsResource, "0+")
    validate_only: bool = boolean("0+")


@struct
class AlterConfigsResourceResponse(Struct):
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+")
    resource_type: int = int8("0+")
    resource_name: str = string("0+")


@message(versions="0-1", flexible="1+", api_key=44)
class IncrementalAlterConfigsResponse(Message):
    throttle_time_ms: int = int32("0+")
    responses: list[AlterConfigsResourceResponse] = array_of(AlterConfigsResourceResponse, "0+")
