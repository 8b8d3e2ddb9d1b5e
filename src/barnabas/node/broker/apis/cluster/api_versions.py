"""ApiVersions (key 18), versions 0-4: KIP-35, 511, 584.

What is advertised is what has a handler, in the versions that Apache Kafka 4.3 serves. A version
that is not served is answered in version 0 with UNSUPPORTED_VERSION and this API's own range.
"""

import re
from typing import Protocol

from barnabas.base.network import Part
from barnabas.node.broker.client_state import ClientSoftware, client_state
from barnabas.node.broker.context import RequestContext
from barnabas.node.broker.responses import frame_response
from barnabas.node.metadata.features import SUPPORTED_FEATURES
from barnabas.node.metadata.image import MetadataImage
from barnabas.node.metadata.node import MetadataNode
from barnabas.protocol.apis import APIS, AnyApi, ApiKey
from barnabas.protocol.codec import encode_parts
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.connections import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)

SOFTWARE_WORD = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9.\-]*[a-zA-Z0-9])?")
PRODUCE_ADVERTISED_FROM = 0
"""librdkafka up to 2.8 gives up on brokers without Produce v0 (KAFKA-18659); 0-2 are refused."""


class ApiVersionsServices(Protocol):
    """What brokers' and controllers' services have in common."""

    @property
    def served_apis(self) -> set[ApiKey]:
        """What their listener serves."""

    @property
    def metadata(self) -> MetadataNode:
        """Knows the finalized features."""

    @property
    def image(self) -> MetadataImage:
        """Says as of when."""


def handle_api_versions(
    services: ApiVersionsServices, context: RequestContext, request: ApiVersionsRequest
) -> ApiVersionsResponse:
    """Say what is served."""
    if context.api_version >= 3:
        words = (request.client_software_name, request.client_software_version)
        if not all(map(SOFTWARE_WORD.fullmatch, words)):
            return ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST)
        client_state(context.connection).software = ClientSoftware(*words)
    lowest_shown = 0 if context.api_version >= 4 else 1  # KAFKA-17011
    return ApiVersionsResponse(
        api_keys=[_range(APIS[key]) for key in sorted(services.served_apis)],
        supported_features=[
            SupportedFeatureKey(name=name, min_version=lowest, max_version=highest)
            for name, (lowest, highest) in sorted(SUPPORTED_FEATURES.items())
            if lowest >= lowest_shown
        ],
        finalized_features_epoch=services.image.offset,
        finalized_features=[
            FinalizedFeatureKey(name=name, max_version_level=level, min_version_level=level)
            for name, level in sorted(services.metadata.finalized_features.items())
            if level > 0
        ],
    )


def refuse_version(correlation_id: int) -> list[Part]:
    """The answer to a version of this API that is not served."""
    response = ApiVersionsResponse(
        error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=[_range(APIS[ApiKey.API_VERSIONS])]
    )
    return frame_response(correlation_id, False, encode_parts(response, 0))


def _range(api: AnyApi) -> ApiVersion:
    lowest = PRODUCE_ADVERTISED_FROM if api.key == ApiKey.PRODUCE else api.min_version
    return ApiVersion(api_key=api.key, min_version=lowest, max_version=api.max_stable_version)
