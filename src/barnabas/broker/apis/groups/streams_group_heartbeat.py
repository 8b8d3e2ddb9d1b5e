"""StreamsGroupHeartbeat (key 88), version 0: KIP-1071.

A member of a streams group joins, stays, follows its tasks and leaves by it; internal topics that
its topology needs are created beside it. Refused with UNSUPPORTED_VERSION where
`group.coordinator.rebalance.protocols` or `streams.version` leaves the protocol out. Topics are
not authorised yet.
"""

from collections.abc import Awaitable

from barnabas.base.internal_topics import INTERNAL_TOPICS
from barnabas.base.promise import then
from barnabas.broker.apis.groups.requests import client_of, serves_streams_protocol
from barnabas.broker.context import RequestContext
from barnabas.broker.services import BrokerServices
from barnabas.coordinator.group.streams.heartbeat import Heard
from barnabas.coordinator.group.streams.topology import Status
from barnabas.metadata.topic_names import is_valid_topic_name
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.streams_group_heartbeat import (
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
    Topology,
)

FAILURES_SHOWN = 3
FAILURES_TOLD_HEARTBEATS = 2
"""For how many heartbeats a failed creation is told before it is tried again."""


def handle_streams_group_heartbeat(
    services: BrokerServices, context: RequestContext, request: StreamsGroupHeartbeatRequest
) -> StreamsGroupHeartbeatResponse | Awaitable[StreamsGroupHeartbeatResponse]:
    """Hear a member, and tell it what tasks it has."""
    if not serves_streams_protocol(services):
        return StreamsGroupHeartbeatResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, status=[])
    message = "" if request.topology is None else _refused_names(request.topology)
    if message:
        return StreamsGroupHeartbeatResponse(
            error_code=ErrorCode.STREAMS_INVALID_TOPOLOGY, error_message=message, status=[]
        )

    def finish(heard: Heard) -> StreamsGroupHeartbeatResponse:
        if heard.missing_topics:
            _create(services, context, request.group_id, heard)
        return heard.response

    return then(services.groups.streams.heartbeat(request, client_of(context)), finish)


def _refused_names(topology: Topology) -> str:
    """What is wrong with the names of topics, of any kind."""
    names: dict[str, None] = {}
    for subtopology in topology.subtopologies:
        names |= dict.fromkeys(subtopology.source_topics)
        names |= dict.fromkeys(subtopology.repartition_sink_topics)
        names |= dict.fromkeys(topic.name for topic in subtopology.repartition_source_topics)
        names |= dict.fromkeys(topic.name for topic in subtopology.state_changelog_topics)
    internal = ",".join(name for name in names if name in INTERNAL_TOPICS)
    if internal:
        return f"Use of Kafka internal topics {internal} in a Kafka Streams topology is prohibited."
    invalid = ",".join(name for name in names if not is_valid_topic_name(name))
    return f"Topic names {invalid} are not valid topic names." if invalid else ""


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
                principal=str(context.principal),
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
