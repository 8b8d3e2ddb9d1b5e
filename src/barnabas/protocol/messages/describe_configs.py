"""DescribeConfigs: the settings of resources, where each comes from and what it means.

Source: KIP-133, KIP-226, KIP-569.
"""

from barnabas.protocol.fields import array_of, boolean, int8, int16, int32, string
from barnabas.protocol.schema import Message, Struct, message, struct


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
