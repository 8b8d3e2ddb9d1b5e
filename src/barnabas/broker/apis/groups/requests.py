"""Shared by the handlers of groups: the client of a request, and its topics that exist."""

from barnabas.base.ids import ZERO_UUID, Uuid
from barnabas.broker.context import RequestContext
from barnabas.broker.services import BrokerServices
from barnabas.coordinator.group.client import ClientInfo
from barnabas.coordinator.group.group_type import GroupType
from barnabas.metadata.features import GROUP_VERSION, SHARE_VERSION, STREAMS_VERSION
from barnabas.metadata.image import TopicImage


def client_of(context: RequestContext) -> ClientInfo:
    """The sender as the coordinator knows it."""
    return ClientInfo(
        context.client_id, context.client_host, context.principal, context.api_version
    )


def find_topic(
    services: BrokerServices, name: str, topic_id: Uuid, *, by_id: bool
) -> TopicImage | None:
    """The topic that a request names, by id in versions that do so (KIP-516)."""
    topics = services.image.topics
    if by_id:
        return topics.by_id.get(topic_id) if topic_id != ZERO_UUID else None
    return topics.by_name.get(name)


def serves_consumer_protocol(services: BrokerServices) -> bool:
    """Whether groups of the consumer protocol are served: by configuration and `group.version`."""
    return (
        GroupType.CONSUMER in services.config.get_list("group.coordinator.rebalance.protocols")
        and services.image.features.get(GROUP_VERSION, 0) > 0
    )


def serves_share_groups(services: BrokerServices) -> bool:
    """Whether share groups are served: by `share.version` alone."""
    return services.image.features.get(SHARE_VERSION, 0) > 0


def serves_streams_protocol(services: BrokerServices) -> bool:
    """Whether groups of Kafka Streams are served: by configuration and `streams.version`."""
    return (
        GroupType.STREAMS in services.config.get_list("group.coordinator.rebalance.protocols")
        and services.image.features.get(STREAMS_VERSION, 0) > 0
    )
