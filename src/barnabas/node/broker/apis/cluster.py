"""The cluster: versions and nodes.

ApiVersions (key 18), versions 0-4: KIP-35, 511, 584.

It advertises the APIs that have a handler, in the versions that Apache Kafka 4.3 serves. A version
that is not served is answered in version 0 with UNSUPPORTED_VERSION and this API's own range.

DescribeCluster (key 60), versions 0-2: KIP-700, 919, 1073.

Controllers are described by controllers: a broker's listener refuses to speak for them.

"""

import re
from operator import attrgetter
from typing import Protocol

from barnabas.base.network import Part
from barnabas.node.broker.authorized_operations import NOT_ASKED, cluster_operations
from barnabas.node.broker.client_state import ClientSoftware, client_state
from barnabas.node.broker.context import RequestContext
from barnabas.node.broker.in_parts import Each
from barnabas.node.broker.responses import frame_response
from barnabas.node.broker.services import BrokerServices
from barnabas.node.metadata.image import MetadataImage
from barnabas.node.metadata.node import MetadataNode
from barnabas.protocol.apis import APIS, AnyApi, ApiKey
from barnabas.protocol.codec import encode_parts
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.features import SUPPORTED_FEATURES
from barnabas.protocol.messages.connections import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)
from barnabas.protocol.messages.metadata import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)
from barnabas.protocol.messages.voters import DescribeQuorumRequestTopicData

SOFTWARE_WORD = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9.\-]*[a-zA-Z0-9])?")
PRODUCE_ADVERTISED_FROM = 0
"""librdkafka up to 2.8 gives up on brokers without Produce v0 (KAFKA-18659); 0-2 are refused."""


class ApiVersionsServices(Protocol):
    """The common interface of brokers' and controllers' services."""

    @property
    def served_apis(self) -> set[ApiKey]:
        """The routes of their listener."""

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


BROKERS, CONTROLLERS = 1, 2


def handle_describe_cluster(
    services: BrokerServices, context: RequestContext, request: DescribeClusterRequest
) -> DescribeClusterResponse:
    """Name the cluster's brokers, fenced ones only if asked for."""
    if request.endpoint_type != BROKERS:
        code = (
            ErrorCode.MISMATCHED_ENDPOINT_TYPE
            if request.endpoint_type == CONTROLLERS
            else ErrorCode.UNSUPPORTED_ENDPOINT_TYPE
        )
        return DescribeClusterResponse(
            error_code=code, error_message=code.message, endpoint_type=BROKERS
        )
    brokers = [
        DescribeClusterBroker(
            broker_id=broker.id,
            host=endpoint.host,
            port=endpoint.port,
            rack=broker.rack,
            is_fenced=broker.fenced,
        )
        for broker in services.image.brokers.values()
        if (request.include_fenced_brokers or not broker.fenced)
        and (endpoint := broker.listeners.get(context.listener_name)) is not None
    ]
    live = [broker.broker_id for broker in brokers if not broker.is_fenced]
    return DescribeClusterResponse(
        cluster_id=services.cluster_id,
        # Any broker passes controller requests on, so any will do (KIP-590).
        controller_id=services.random.choice(live) if live else -1,
        brokers=brokers,
        cluster_authorized_operations=cluster_operations(services, context)
        if request.include_cluster_authorized_operations
        else NOT_ASKED,
    )


def _ask_more(topic: DescribeQuorumRequestTopicData, again: DescribeQuorumRequestTopicData) -> None:
    topic.partitions += again.partitions


EACH_QUORUM = Each("topics", "topics", attrgetter("topic_name"), _ask_more)
