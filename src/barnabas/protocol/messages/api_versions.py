"""ApiVersions: which APIs and features a node offers (KIP-35, KIP-511, KIP-584).

Its response header is always version 0, so that a client can read it before it knows anything.
"""

from barnabas.protocol.fields import array_of, boolean, int16, int32, int64, string
from barnabas.protocol.schema import Message, Struct, message, struct


@message(versions="0-4", flexible="3+", api_key=18, listeners=("broker", "controller"))
class ApiVersionsRequest(Message):
    client_software_name: str = string("3+", ignorable=True)
    client_software_version: str = string("3+", ignorable=True)


@struct
class ApiVersion(Struct):
    api_key: int = int16("0+", map_key=True)
    min_version: int = int16("0+")
    max_version: int = int16("0+")


@struct
class SupportedFeatureKey(Struct):
    name: str = string("3+", map_key=True)
    min_version: int = int16("3+")
    max_version: int = int16("3+")


@struct
class FinalizedFeatureKey(Struct):
    name: str = string("3+", map_key=True)
    max_version_level: int = int16("3+")
    min_version_level: int = int16("3+")


@message(versions="0-4", flexible="3+", api_key=18)
class ApiVersionsResponse(Message):
    error_code: int = int16("0+")
    api_keys: list[ApiVersion] = array_of(ApiVersion, "0+")
    throttle_time_ms: int = int32("1+", ignorable=True)
    supported_features: list[SupportedFeatureKey] = array_of(
        SupportedFeatureKey, "3+", tagged="3+", tag=0, ignorable=True
    )
    finalized_features_epoch: int = int64("3+", default=-1, tagged="3+", tag=1, ignorable=True)
    finalized_features: list[FinalizedFeatureKey] = array_of(
        FinalizedFeatureKey, "3+", tagged="3+", tag=2, ignorable=True
    )
    zk_migration_ready: bool = boolean("3+", tagged="3+", tag=3, ignorable=True)
