"""Streams groups.

StreamsGroupHeartbeat (key 88), version 0: KIP-1071.

A member of a streams group joins, stays, follows its tasks and leaves by it; internal topics that
its topology needs are created beside it. Refused with UNSUPPORTED_VERSION where
`group.coordinator.rebalance.protocols` or `streams.version` leaves the protocol out. The member may
DESCRIBE all topics of its topology, and CREATE those that are created for it.

StreamsGroupDescribe (key 89), version 0: KIP-1071.

Groups of the streams protocol; others have APIs of their own and are not found here.
"""

from collections.abc import Awaitable, Iterator, Sequence

from barnabas.node.broker.apis.group_requests import (
    allowed_topics,
    client_of,
    describe_groups,
    may_describe_topics,
    may_read_group,
    serves_streams_protocol,
)
from barnabas.node.broker.apis.streams_topics import topic_names
from barnabas.node.broker.authorization import may
from barnabas.node.broker.context import RequestContext
from barnabas.node.broker.controller.requests import asker_of
from barnabas.node.broker.services import BrokerServices
from barnabas.node.coordinator.group.streams.heartbeat import Heard
from barnabas.node.coordinator.group.streams.topology import InternalTopic, Status
from barnabas.node.loop.promise import Promise, then
from barnabas.node.metadata.topic_names import is_valid_topic_name
from barnabas.protocol.acls import Operation, ResourceType
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.streams_groups import (
    DescribedGroup,
    StreamsGroupDescribeRequest,
    StreamsGroupDescribeResponse,
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
)
from barnabas.protocol.messages.streams_groups import Status as ToldStatus
from barnabas.protocol.well_known import INTERNAL_TOPICS

FAILURES_SHOWN = 3
FAILURES_TOLD_HEARTBEATS = 2
"""The number of heartbeats that report a failed creation before the next attempt."""


def handle_streams_group_heartbeat(
    services: BrokerServices, context: RequestContext, request: StreamsGroupHeartbeatRequest
) -> StreamsGroupHeartbeatResponse | Awaitable[StreamsGroupHeartbeatResponse]:
    """Hear a member, and tell it what tasks it has."""
    if not serves_streams_protocol(services):
        return _refused(ErrorCode.UNSUPPORTED_VERSION)
    if not may_read_group(services, context, request.group_id):
        return _refused(ErrorCode.GROUP_AUTHORIZATION_FAILED)
    if request.topology is not None:
        names = list(dict.fromkeys(topic_names(request.topology.subtopologies)))
        message = _what_is_wrong(names)
        if message:
            return _refused(ErrorCode.STREAMS_INVALID_TOPOLOGY, message)
        if not may_describe_topics(services, context, names):
            return _refused(ErrorCode.TOPIC_AUTHORIZATION_FAILED)

    def finish(heard: Heard) -> StreamsGroupHeartbeatResponse:
        if heard.missing_topics:
            denied = _not_creatable(services, context, heard.missing_topics)
            if denied:
                _tell(heard.response, f"Unauthorized to CREATE on topics {', '.join(denied)}.")
            else:
                _create(services, context, request.group_id, heard)
        return heard.response

    return then(services.groups.streams.heartbeat(request, client_of(context)), finish)


def _refused(error: ErrorCode, message: str | None = None) -> StreamsGroupHeartbeatResponse:
    return StreamsGroupHeartbeatResponse(error_code=error, error_message=message, status=[])


def _what_is_wrong(names: list[str]) -> str:
    """Why topics cannot be part of a topology."""
    internal = ",".join(name for name in names if name in INTERNAL_TOPICS)
    if internal:
        return f"Use of Kafka internal topics {internal} in a Kafka Streams topology is prohibited."
    invalid = ",".join(name for name in names if not is_valid_topic_name(name))
    return f"Topic names {invalid} are not valid topic names." if invalid else ""


def _not_creatable(
    services: BrokerServices, context: RequestContext, topics: Sequence[InternalTopic]
) -> list[str]:
    """The topics that the member may not have created."""
    if may(services, context, Operation.CREATE, ResourceType.CLUSTER, logs_denial=False):
        return []
    names = [topic.name for topic in topics]
    creatable = allowed_topics(services, context, Operation.CREATE, names)
    return [name for name in names if name not in creatable]


def _tell(response: StreamsGroupHeartbeatResponse, detail: str) -> None:
    """Say why internal topics are still missing."""
    statuses = response.status = response.status or []
    for status in statuses:
        if status.status_code == Status.MISSING_INTERNAL_TOPICS:
            status.status_detail += f"; {detail}"
            return
    statuses.append(ToldStatus(status_code=Status.MISSING_INTERNAL_TOPICS, status_detail=detail))


def _create(services: BrokerServices, context: RequestContext, group_id: str, heard: Heard) -> None:
    """Have missing topics created, and say which could not be a moment ago."""
    topics, creation = heard.missing_topics, services.streams_topics
    now_ms = services.clock.monotonic_ms()
    claimed = creation.claim(topics, now_ms)
    if claimed:
        interval_ms = services.groups.streams.heartbeat_interval_ms(group_id)
        services.in_background(
            creation.create(
                services.metadata,
                claimed,
                asker=asker_of(context),
                failed_until_ms=now_ms + FAILURES_TOLD_HEARTBEATS * interval_ms,
            )
        )
    failures = creation.failures(topics, now_ms)
    if not failures:
        return
    listed = [f"{name} ({reason})" for name, reason in failures.items()]
    told = ", ".join(listed[:FAILURES_SHOWN])
    if len(listed) > FAILURES_SHOWN:
        told += f" and {len(listed) - FAILURES_SHOWN} more"
    for status in heard.response.status or ():
        if status.status_code == Status.MISSING_INTERNAL_TOPICS:
            status.status_detail += f"; Creation failed: {told}."


HIDDEN = "The described group uses topics that the client is not authorized to describe."


def handle_streams_group_describe(
    services: BrokerServices, context: RequestContext, request: StreamsGroupDescribeRequest
) -> StreamsGroupDescribeResponse | Promise[StreamsGroupDescribeResponse]:
    """Describe streams groups, their topologies and their members."""
    groups = describe_groups(
        services,
        context,
        request,
        DescribedGroup,
        is_served=serves_streams_protocol(services),
        find=services.groups.streams.describe,
        topics_of=_topics,
        hidden_message=HIDDEN,
    )
    return then(groups, lambda groups: StreamsGroupDescribeResponse(groups=groups))


def _topics(group: DescribedGroup) -> Iterator[str]:
    """The topics of the topology."""
    return topic_names((group.topology and group.topology.subtopologies) or ())
