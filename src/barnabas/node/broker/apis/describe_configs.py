"""Reading configuration.

DescribeConfigs (key 32), versions 1-4: KIP-133, 226, 412, 569, 714, 848.

A broker describes itself and what is set for all brokers; values are those that hold now. So does
a controller, of itself (KIP-919). Needs DESCRIBE_CONFIGS of the topic, the group, or the cluster
for all else.

ListConfigResources (key 74), versions 0-1: KIP-714, 1142.

Needs DESCRIBE_CONFIGS of the cluster. Version 0 lists client metrics subscriptions; version 1 the
resources of the types asked for.
"""

from operator import attrgetter
from typing import Protocol

from barnabas.node.broker.apis.config_resources import check_node_id, logger_levels, refuse
from barnabas.node.broker.authorization import HasAuthorizer, may
from barnabas.node.broker.context import RequestContext
from barnabas.node.broker.in_parts import Each
from barnabas.node.broker.services import BrokerServices
from barnabas.node.metadata.config_view import (
    ConfigEntry,
    ConfigSource,
    broker_entries,
    client_metrics_entries,
    default_broker_entries,
    group_entries,
    topic_entries,
)
from barnabas.node.metadata.controller.decision import Failure
from barnabas.node.metadata.image import ConfigResourceType, MetadataImage
from barnabas.node.metadata.node import MetadataNode
from barnabas.node.metadata.topic_names import invalid_topic_name_reason
from barnabas.protocol.acls import Operation, ResourceType
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.configs import (
    ConfigResource,
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)


def _ask_more(resource: DescribeConfigsResource, again: DescribeConfigsResource) -> None:
    """Ask for the keys of a resource that is named twice; none are all keys."""
    if resource.configuration_keys and again.configuration_keys:
        resource.configuration_keys += again.configuration_keys
    else:
        resource.configuration_keys = None


EACH_RESOURCE = Each(
    "resources", "results", attrgetter("resource_type", "resource_name"), _ask_more
)


class DescribingServices(HasAuthorizer, Protocol):
    """The services of any listener."""

    @property
    def metadata(self) -> MetadataNode:
        """The node's metadata."""

    @property
    def image(self) -> MetadataImage:
        """The cluster's metadata as this node has it."""

    @property
    def node_id(self) -> int:
        """The node that describes itself."""


def handle_describe_configs(
    services: DescribingServices, context: RequestContext, request: DescribeConfigsRequest
) -> DescribeConfigsResponse:
    """Describe resources, each for itself; those that the sender may not describe come last."""
    described, refused = [], []
    for resource in request.resources:
        kind, name = resource.resource_type, resource.resource_name
        error = refuse(services, context, Operation.DESCRIBE_CONFIGS, kind, name)
        if error:
            refused.append(
                DescribeConfigsResult(
                    error_code=error,
                    error_message=error.message,
                    resource_type=kind,
                    resource_name=name,
                )
            )
        else:
            described.append(_describe(services, resource, request))
    return DescribeConfigsResponse(results=described + refused)


def _describe(
    services: DescribingServices, resource: DescribeConfigsResource, request: DescribeConfigsRequest
) -> DescribeConfigsResult:
    entries = _entries(services, resource)
    result = DescribeConfigsResult(
        resource_type=resource.resource_type, resource_name=resource.resource_name
    )
    if isinstance(entries, Failure):
        result.error_code, result.error_message = entries
        return result
    # No list and an empty one both ask for all (KAFKA-13432).
    wanted = set(resource.configuration_keys or ())
    result.configs = [
        _result(entry, request) for entry in entries if not wanted or entry.name in wanted
    ]
    return result


def _entries(
    services: DescribingServices, resource: DescribeConfigsResource
) -> list[ConfigEntry] | Failure:
    configs, effective = services.image.configs, services.metadata.effective
    name = resource.resource_name
    match resource.resource_type:
        case ConfigResourceType.TOPIC:
            failure = _check_topic(services, name)
            if failure is not None:
                return failure
            overrides = configs.for_resource(ConfigResourceType.TOPIC, name)
            return topic_entries(effective, configs, overrides)
        case ConfigResourceType.BROKER:
            if not name:
                return default_broker_entries(effective, configs)
            return _refusal(check_node_id(services.node_id, name)) or broker_entries(
                effective, configs
            )
        case ConfigResourceType.BROKER_LOGGER:
            return _refusal(check_node_id(services.node_id, name)) or _logger_entries()
        case ConfigResourceType.CLIENT_METRICS:
            if not name:
                return Failure(
                    ErrorCode.INVALID_REQUEST,
                    "Client metrics subscription name must not be empty",
                )
            return client_metrics_entries(configs, name)
        case ConfigResourceType.GROUP:
            if not name:
                return Failure(ErrorCode.INVALID_REQUEST, "Group name must not be empty")
            return group_entries(effective, configs, name)
        case unknown:
            return Failure(ErrorCode.INVALID_REQUEST, f"Unsupported resource type: {unknown}")


def _check_topic(services: DescribingServices, name: str) -> Failure | None:
    reason = invalid_topic_name_reason(name)
    if reason is not None:
        return Failure(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic name is invalid: {reason}")
    if name not in services.image.topics.by_name:
        return Failure(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "")
    return None


def _refusal(reason: str | None) -> Failure | None:
    return None if reason is None else Failure(ErrorCode.INVALID_REQUEST, reason)


def _logger_entries() -> list[ConfigEntry]:
    return [
        ConfigEntry(name=name, value=level, source=ConfigSource.DYNAMIC_BROKER_LOGGER)
        for name, level in logger_levels().items()
    ]


def _result(entry: ConfigEntry, request: DescribeConfigsRequest) -> DescribeConfigsResourceResult:
    return DescribeConfigsResourceResult(
        name=entry.name,
        value=entry.value,
        read_only=entry.read_only,
        config_source=entry.source,
        is_sensitive=entry.is_sensitive,
        synonyms=[
            DescribeConfigsSynonym(name=name, value=value, source=source)
            for name, value, source in entry.synonyms
        ]
        if request.include_synonyms
        else [],
        config_type=entry.type_number,
        documentation=entry.documentation if request.include_documentation else None,
    )


LISTED_TYPES = (
    ConfigResourceType.TOPIC,
    ConfigResourceType.BROKER,
    ConfigResourceType.BROKER_LOGGER,
    ConfigResourceType.CLIENT_METRICS,
    ConfigResourceType.GROUP,
)


def handle_list_config_resources(
    services: BrokerServices, context: RequestContext, request: ListConfigResourcesRequest
) -> ListConfigResourcesResponse:
    """List what can be configured; no types at all ask for every type."""
    if not may(services, context, Operation.DESCRIBE_CONFIGS, ResourceType.CLUSTER):
        return ListConfigResourcesResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    wanted: list[int] = request.resource_types or list(LISTED_TYPES)
    if context.api_version == 0:
        wanted = [ConfigResourceType.CLIENT_METRICS]
    if not set(wanted) <= set(LISTED_TYPES):
        return ListConfigResourcesResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
    return ListConfigResourcesResponse(
        config_resources=[
            ConfigResource(resource_name=name, resource_type=resource_type)
            for resource_type in dict.fromkeys(wanted)
            for name in _names(services, resource_type)
        ]
    )


def _names(services: BrokerServices, resource_type: int) -> list[str]:
    image = services.image
    match resource_type:
        case ConfigResourceType.TOPIC:
            return sorted(image.topics.by_name)
        case ConfigResourceType.BROKER | ConfigResourceType.BROKER_LOGGER:
            return [str(broker_id) for broker_id in sorted(image.brokers)]
        case _:
            return image.configs.names(resource_type)
