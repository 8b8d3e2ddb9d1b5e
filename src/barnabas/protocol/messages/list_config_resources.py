"""ListConfigResources: which resources have dynamic settings.

Source: KIP-1142; version 0 lists client metrics, KIP-714.
"""

from barnabas.protocol.fields import array_of, int8, int16, int32, string
from barnabas.protocol.schema import Message, Struct, message, struct


@message(versions="0-1", flexible="0+", api_key=74, listeners=("broker",))
class ListConfigResourcesRequest(Message):
    resource_types: list[int] = array_of(int8, "1+")


@struct
class ConfigResource(Struct):
    resource_name: str = string("0+")
    resource_type: int = int8("1+", default=16, ignorable=True)


@message(versions="0-1", flexible="0+", api_key=74)
class ListConfigResourcesResponse(Message):
    throttle_time_ms: int = int32("0+")
    error_code: int = int16("0+")
    config_resources: list[ConfigResource] = array_of(ConfigResource, "0+")
