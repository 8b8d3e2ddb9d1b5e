"""Helpers of the handlers of groups: a request's client, its rights and its topics.

ConsumerGroupDescribe, ShareGroupDescribe and StreamsGroupDescribe answer in the same way: a group
is shown to clients that may DESCRIBE it, its members only to those that may DESCRIBE all topics in
them. Source: Kafka's KafkaApis.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from typing import Any, Protocol, TypeVar

from barnabas.base.ids import ZERO_UUID, Uuid
from barnabas.node.broker.authorization import allowed
from barnabas.node.broker.authorized_operations import authorized_operations
from barnabas.node.broker.context import RequestContext
from barnabas.node.broker.services import BrokerServices
from barnabas.node.coordinator.group.group_type import GroupType
from barnabas.node.coordinator.group.step import ClientInfo
from barnabas.node.loop.promise import Promise, then
from barnabas.node.metadata.image import TopicImage
from barnabas.protocol.acls import Operation, ResourceType
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.features import GROUP_VERSION, SHARE_VERSION, STREAMS_VERSION


def client_of(context: RequestContext) -> ClientInfo:
    """The sender as the coordinator knows it."""
    return ClientInfo(
        context.client_id, context.client_host, context.principal, context.api_version
    )


def subscriber_of(services: BrokerServices, context: RequestContext) -> ClientInfo:
    """The sender as the coordinator knows it, where it may subscribe by a regular expression."""
    if not services.authorizer.is_enabled:
        return client_of(context)

    def keep_visible(names: Iterable[str]) -> Collection[str]:
        return allowed(
            services, context, Operation.DESCRIBE, ResourceType.TOPIC, names, logs_denial=False
        )

    return replace(client_of(context), keep_visible=keep_visible)


def may_read_group(services: BrokerServices, context: RequestContext, group_id: str) -> bool:
    """Return whether the sender may be a member of the group, and commit its offsets."""
    authorizer = services.authorizer  # `may` at half its cost: members ask all the time
    return not authorizer.is_enabled or authorizer.allows(
        context.caller, Operation.READ, ResourceType.GROUP, group_id
    )


def split_groups(
    services: BrokerServices,
    context: RequestContext,
    operation: Operation,
    group_ids: Sequence[str],
) -> tuple[Sequence[str], Sequence[str]]:
    """The groups with which the sender may do this, and the others."""
    if not services.authorizer.is_enabled:
        return group_ids, ()
    rightful = allowed(services, context, operation, ResourceType.GROUP, group_ids)
    return (
        [group_id for group_id in group_ids if group_id in rightful],
        [group_id for group_id in group_ids if group_id not in rightful],
    )


def allowed_topics(
    services: BrokerServices,
    context: RequestContext,
    operation: Operation,
    names: Iterable[str],
) -> set[str]:
    """The topics with which the sender may do this."""
    return allowed(services, context, operation, ResourceType.TOPIC, names)


def may_describe_topics(
    services: BrokerServices, context: RequestContext, names: Iterable[str]
) -> bool:
    """Return whether the sender may know of all these topics."""
    if not services.authorizer.is_enabled:
        return True
    asked = set(names)
    return len(allowed_topics(services, context, Operation.DESCRIBE, asked)) == len(asked)


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
    """Return whether share groups are served: by `share.version` alone."""
    return services.image.features.get(SHARE_VERSION, 0) > 0


def serves_streams_protocol(services: BrokerServices) -> bool:
    """Return whether groups of Kafka Streams are served: by configuration and `streams.version`."""
    return (
        GroupType.STREAMS in services.config.get_list("group.coordinator.rebalance.protocols")
        and services.image.features.get(STREAMS_VERSION, 0) > 0
    )


class _Topic(Protocol):
    name: str
    partitions: list[Any]


T = TypeVar("T", bound=_Topic)


def merge_topics(stored: list[T], refused: Iterable[T]) -> None:
    """Add what is refused to what is stored: each topic once, though it may have some of each."""
    by_name = {topic.name: topic for topic in stored if topic.name}
    for topic in refused:
        known = by_name.get(topic.name)
        if known is not None:
            known.partitions += topic.partitions
            continue
        stored.append(topic)
        if topic.name:  # an unknown id has none
            by_name[topic.name] = topic


class Described(Protocol):
    """A group as one of the responses describes it."""

    group_id: str
    error_code: int
    error_message: str | None
    authorized_operations: int


class DescribeRequest(Protocol):
    """The common part of the requests."""

    group_ids: list[str]
    include_authorized_operations: bool


D = TypeVar("D", bound=Described)

HIDDEN = "The group has described topic(s) that the client is not authorized to describe."


def describe_groups(
    services: BrokerServices,
    context: RequestContext,
    request: DescribeRequest,
    kind: Callable[..., D],
    *,
    is_served: bool,
    find: Callable[[Iterable[str]], list[D] | Promise[list[D]]],
    topics_of: Callable[[D], Iterable[str]],
    hidden_message: str = HIDDEN,
) -> list[D] | Promise[list[D]]:
    """Describe the groups that the sender may see; those that it may not describe come first.

    `kind` is a group in the response, `topics_of` names the topics in one that is described.
    """

    def failed(group_id: str, error: ErrorCode, message: str | None = None) -> D:
        return kind(group_id=group_id, error_code=error, error_message=message)

    if not is_served:
        return [failed(group_id, ErrorCode.UNSUPPORTED_VERSION) for group_id in request.group_ids]
    asked, denied = split_groups(services, context, Operation.DESCRIBE, request.group_ids)

    def finish(groups: list[D]) -> list[D]:
        if request.include_authorized_operations:
            for group in groups:
                if not group.error_code:
                    group.authorized_operations = authorized_operations(
                        services, context, ResourceType.GROUP, group.group_id
                    )
        if not services.authorizer.is_enabled:
            return groups
        refused = [failed(name, ErrorCode.GROUP_AUTHORIZATION_FAILED) for name in denied]
        return refused + without_hidden(groups)

    def without_hidden(groups: list[D]) -> list[D]:
        topics = [set(topics_of(group)) for group in groups]
        visible = allowed_topics(services, context, Operation.DESCRIBE, set().union(*topics))
        return [
            group
            if names <= visible
            else failed(group.group_id, ErrorCode.TOPIC_AUTHORIZATION_FAILED, hidden_message)
            for group, names in zip(groups, topics, strict=True)
        ]

    return then(find(asked), finish)
