"""AlterConfigs: replace all the dynamic settings of a resource.

Source: KIP-133; KIP-339 prefers increments.
"""

from barnabas.protocol.fields import array_of, boolean, int8, int16, int32, string
from barnabas.protocol.schema import Message, Struct, message, struct


@struct
class AlterableConfig(Struct):
    name: str = string("0+", map_key=True)
    value: str | None = string("0+", nullable="0+")


@struct
class AlterConfigsResource(Struct):
    resource_type: int = int8("0+", map_key=True)
    resource_name: str = string("0+", map_key=True)
    configs: list[AlterableConfig] = array_of(AlterableConfig, "0+")


@message(versions="0-2", flexible="2+", api_key=33, listeners=("broker", "controller"))
class AlterConfigsRequest(Message):
    resources: list[AlterConfigsResource] = array_of(AlterConfigsResource, "0+")
    validate_only: bool = boolean("0+")


@struct
class AlterConfigsResourceResponse(Struct):
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+")
    resource_type: int = int8("0+")
    resource_name: str = string("0+")


@message(versions="0-2", flexible="2+", api_key=33)
class AlterConfigsResponse(Message):
    throttle_time_ms: int = int32("0+")
    responses: list[AlterConfigsResourceResponse] = array_of(AlterConfigsResourceResponse, "0+")
