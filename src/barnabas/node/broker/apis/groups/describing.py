"""Groups as ConsumerGroupDescribe, ShareGroupDescribe and StreamsGroupDescribe tell of them.

A group is told to whoever may DESCRIBE it; its members only to those who may DESCRIBE all topics
in them. Source: Kafka's KafkaApis.
"""

from collections.abc import Callable, Iterable
from typing import Protocol, TypeVar

from barnabas.node.broker.apis.groups.requests import allowed_topics, split_groups
from barnabas.node.broker.authorized_operations import authorized_operations
from barnabas.node.broker.context import RequestContext
from barnabas.node.broker.services import BrokerServices
from barnabas.node.loop.promise import Promise, then
from barnabas.protocol.acls import Operation, ResourceType
from barnabas.protocol.errors import ErrorCode


class Described(Protocol):
    """A group as one of the responses tells of it."""

    group_id: str
    error_code: int
    error_message: str | None
    authorized_operations: int


class DescribeRequest(Protocol):
    """What the requests have in common."""

    group_ids: list[str]
    include_authorized_operations: bool


D = TypeVar("D", bound=Described)


def describe_groups(
    services: BrokerServices,
    context: RequestContext,
    request: DescribeRequest,
    find: Callable[[Iterable[str]], list[D] | Promise[list[D]]],
    failed: Callable[[str, ErrorCode, str | None], D],
    topics_of: Callable[[D], Iterable[str]],
    hidden_message: str,
) -> list[D] | Promise[list[D]]:
    """What the sender may know of the groups; those that it may not describe come first.

    `failed` makes a group that is not described, `topics_of` names the topics in one that is.
    """
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
        refused = [failed(name, ErrorCode.GROUP_AUTHORIZATION_FAILED, None) for name in denied]
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
