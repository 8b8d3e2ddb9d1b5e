"""Configuration: DescribeConfigs, AlterConfigs, IncrementalAlterConfigs, ListConfigResources."""

from barnabas.protocol.fields import array_of, boolean, int8, int16, int32, string
from barnabas.protocol.schema import Message, Struct, message, struct

# DescribeConfigs: the settings of resources, where each comes from and what it means.
#
# Source: KIP-133, KIP-226, KIP-569.


@struct
class DescribeConfigsResource(Struct):
    resource_type: int = int8("0+")
    resource_name: str = string("0+")
    configuration_keys: list[str] | None = array_of(string, "0+", nullable="0+")


@message(versions="1-4", flexible="4+", api_key=32, listeners=("broker", "controller"))
class DescribeConfigsRequest(Message):
    resources: list[DescribeConfigsResource] = array_of(DescribeConfigsResource, "0+")
    include_synonyms: bool = boolean("1+")
    include_documentation: bool = boolean("3+")


@struct
class DescribeConfigsSynonym(Struct):
    name: str = string("1+")
    value: str | None = string("1+", nullable="0+")
    source: int = int8("1+")


@struct
class DescribeConfigsResourceResult(Struct):
    name: str = string("0+")
    value: str | None = string("0+", nullable="0+")
    read_only: bool = boolean("0+")
    config_source: int = int8("1+", default=-1, ignorable=True)
    is_sensitive: bool = boolean("0+")
    synonyms: list[DescribeConfigsSynonym] = array_of(DescribeConfigsSynonym, "1+", ignorable=True)
    config_type: int = int8("3+", ignorable=True)
    documentation: str | None = string("3+", nullable="0+", ignorable=True)


@struct
class DescribeConfigsResult(Struct):
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+")
    resource_type: int = int8("0+")
    resource_name: str = string("0+")
    configs: list[DescribeConfigsResourceResult] = array_of(DescribeConfigsResourceResult, "0+")


@message(versions="1-4", flexible="4+", api_key=32)
class DescribeConfigsResponse(Message):
    throttle_time_ms: int = int32("0+")
    results: list[DescribeConfigsResult] = array_of(DescribeConfigsResult, "0+")


# AlterConfigs: replace all the dynamic settings of a resource.
#
# Source: KIP-133; KIP-339 prefers increments.


@struct
class AlterConfigsAlterableConfig(Struct):
    name: str = string("0+", map_key=True)
    value: str | None = string("0+", nullable="0+")


@struct
class AlterConfigsAlterConfigsResource(Struct):
    resource_type: int = int8("0+", map_key=True)
    resource_name: str = string("0+", map_key=True)
    configs: list[AlterConfigsAlterableConfig] = array_of(AlterConfigsAlterableConfig, "0+")


@message(versions="0-2", flexible="2+", api_key=33, listeners=("broker", "controller"))
class AlterConfigsRequest(Message):
    resources: list[AlterConfigsAlterConfigsResource] = array_of(
        AlterConfigsAlterConfigsResource, "0+"
    )
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


# IncrementalAlterConfigs: set, delete, append to and subtract from single settings (KIP-339).


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


@message(versions="0-1", flexible="1+", api_key=44)
class IncrementalAlterConfigsResponse(Message):
    throttle_time_ms: int = int32("0+")
    responses: list[AlterConfigsResourceResponse] = array_of(AlterConfigsResourceResponse, "0+")


# ListConfigResources: which resources have dynamic settings.
#
# Source: KIP-1142; version 0 lists client metrics, KIP-714.


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
