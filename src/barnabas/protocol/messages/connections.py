"""Headers of frames, ApiVersions, and requests that nodes forward."""

from barnabas.protocol.fields import array_of, binary, boolean, int16, int32, int64, string
from barnabas.protocol.schema import Message, Struct, message, struct

# Request and response headers.
#
# Request header 2 and response header 1 belong to flexible versions. The client id keeps its
# two-byte length in both, so that a node can read the header of an ApiVersions request that
# it does not know.


@message(versions="1-2", flexible="2+")
class RequestHeader(Message):
    request_api_key: int = int16("0+")
    request_api_version: int = int16("0+")
    correlation_id: int = int32("0+")
    client_id: str | None = string("1+", nullable="1+", flexible="none")


@message(versions="0-1", flexible="1+")
class ResponseHeader(Message):
    correlation_id: int = int32("0+")


# ApiVersions: which APIs and features a node offers (KIP-35, KIP-511, KIP-584).
#
# Its response header is always version 0, so that a client can read it before it knows anything.


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


# Envelope: a broker passes a client's request on to the controller, with its principal.
#
# Source: KIP-590.


@message(versions="0", flexible="0+", api_key=58, listeners=("controller",))
class EnvelopeRequest(Message):
    request_data: bytes = binary("0+")
    request_principal: bytes | None = binary("0+", nullable="0+")
    client_host_address: bytes = binary("0+")


@message(versions="0", flexible="0+", api_key=58)
class EnvelopeResponse(Message):
    response_data: bytes | None = binary("0+", nullable="0+", default=None)
    error_code: int = int16("0+")


# A principal as a broker passes it on inside an envelope (KIP-590).


@message(versions="0", flexible="0+")
class DefaultPrincipalData(Message):
    type: str = string("0+")
    name: str = string("0+")
    token_authenticated: bool = boolean("0+")
