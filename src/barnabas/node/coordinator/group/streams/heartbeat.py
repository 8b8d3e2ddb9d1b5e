"""StreamsGroupHeartbeat: joining, staying, following the assignment, leaving.

A heartbeat does five things, as far as they are due: it writes what has changed about the member,
takes the topology over from the first member, puts it on the topics that exist (which says what
internal topics are to be created), has the target assignment made for a new group epoch, and takes
the member one step towards its target.
Source: Kafka's GroupMetadataManager.streamsGroupHeartbeat.
"""

import logging
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import NamedTuple

from barnabas.node.coordinator.group.modern.heartbeat import (
    check_epoch,
    check_size,
    find_for_member,
    find_member,
    find_or_create,
)
from barnabas.node.coordinator.group.modern.member import JOINING_EPOCH
from barnabas.node.coordinator.group.modern.timing import (
    heartbeat_interval_ms,
    reset_session,
    schedule_revocation,
)
from barnabas.node.coordinator.group.registry import GroupRegistry
from barnabas.node.coordinator.group.step import Client, Refusal, Step
from barnabas.node.coordinator.group.streams.assignor import NUM_STANDBY_REPLICAS
from barnabas.node.coordinator.group.streams.group import UNVALIDATED, StreamsGroup
from barnabas.node.coordinator.group.streams.member import Endpoint, StreamsMember
from barnabas.node.coordinator.group.streams.reconcile import Goal, reconcile
from barnabas.node.coordinator.group.streams.records import (
    current_record,
    epoch_record,
    member_record,
    topology_record,
)
from barnabas.node.coordinator.group.streams.target import Draft, delay_key, fence, update_target
from barnabas.node.coordinator.group.streams.tasks import (
    TaskId,
    Tasks,
    by_subtopology,
    task_ids,
    task_set,
)
from barnabas.node.coordinator.group.streams.topics import PartitionCount, configure
from barnabas.node.coordinator.group.streams.topology import (
    ConfiguredTopology,
    InternalTopic,
    Notice,
    Status,
    Topology,
    topology_value,
)
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import streams_groups as requests
from barnabas.protocol.messages.streams_groups import Endpoint as EndpointMessage
from barnabas.protocol.messages.streams_groups import (
    EndpointToPartitions,
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
    TopicPartition,
)
from barnabas.protocol.messages.streams_groups import Status as StatusField

telemetry = logging.getLogger(__name__)


class Heard(NamedTuple):
    """The response to a heartbeat, and the internal topics that must be created for the group."""

    response: StreamsGroupHeartbeatResponse
    missing_topics: tuple[InternalTopic, ...] = ()


def heartbeat(
    step: Step, groups: GroupRegistry, request: StreamsGroupHeartbeatRequest, client: Client
) -> Heard | Refusal:
    """Handle a heartbeat that `check_request` lets pass."""
    if request.member_epoch < JOINING_EPOCH:
        return _leave(step, groups, request)
    group = _find_or_create(step, groups, request)
    if isinstance(group, Refusal):
        return group
    owned = _owned(request)
    former = _find_or_join(group, request, owned)
    if isinstance(former, Refusal):
        return former
    member = _updated(former, request, client)
    if member != former:
        step.records.append(member_record(group.group_id, member))
    topology = updated_topology(step, group, request.topology)
    if isinstance(topology, Refusal):
        return topology
    draft = _draft(step, group, member, topology, owned, has_changed=member != former)
    if isinstance(draft, Refusal):
        return draft
    if group.is_empty:
        _wait_for_more(step, group.group_id)
    epoch, target = update_target(step, draft)
    reconciled = reconcile(group, member, Goal(epoch, target, owned))
    if isinstance(reconciled, Refusal):
        return reconciled
    if reconciled != member:
        step.records.append(current_record(group.group_id, reconciled))
        schedule_revocation(step, group, reconciled)
    reset_session(step, group, member)
    if request.shutdown_application:
        _request_shutdown(group, member.member_id)
    is_known = groups.get(group.group_id) is group
    has_news = request.member_epoch == JOINING_EPOCH or reconciled.assigned != former.assigned
    return _response(step, request, draft, reconciled, has_news=has_news, is_known=is_known)


def _leave(
    step: Step, groups: GroupRegistry, request: StreamsGroupHeartbeatRequest
) -> Heard | Refusal:
    group = groups.find(StreamsGroup, request.group_id)
    if isinstance(group, Refusal):
        return group
    if request.shutdown_application:
        _request_shutdown(group, request.member_id)
    member = find_member(group, request.member_id)
    if isinstance(member, Refusal):
        return member
    telemetry.info("group %s: %s leaves", group.group_id, member.member_id)
    fence(step, group, member)
    return Heard(
        StreamsGroupHeartbeatResponse(
            member_id=member.member_id, member_epoch=request.member_epoch, status=[]
        )
    )


def _request_shutdown(group: StreamsGroup, member_id: str) -> None:
    if group.shutdown_member_id is None:
        telemetry.info("group %s: %s asks all to shut down", group.group_id, member_id)
        group.shutdown_member_id = member_id


def _find_or_create(
    step: Step, groups: GroupRegistry, request: StreamsGroupHeartbeatRequest
) -> StreamsGroup | Refusal:
    """The group; one that joins may create it, also in place of an empty classic group."""
    group_id = request.group_id
    if request.member_epoch != JOINING_EPOCH:
        return find_for_member(groups, StreamsGroup, group_id)
    group = find_or_create(step, groups, StreamsGroup, group_id)
    if isinstance(group, Refusal):
        return group
    # As in Kafka, also for a member that only comes back.
    return check_size(step, group) or group


def _find_or_join(
    group: StreamsGroup, request: StreamsGroupHeartbeatRequest, owned: Tasks | None
) -> StreamsMember | Refusal:
    if request.member_epoch == JOINING_EPOCH:
        telemetry.info("group %s: %s joins", group.group_id, request.member_id)
        return group.members.get(request.member_id) or StreamsMember(request.member_id)
    member = find_member(group, request.member_id)
    if isinstance(member, Refusal):
        return member

    def has_no_more() -> bool:
        return owned is not None and member.assigned.contains(owned)

    return check_epoch(group, member, request.member_epoch, has_no_more) or member


def _updated(
    member: StreamsMember, request: StreamsGroupHeartbeatRequest, client: Client
) -> StreamsMember:
    """The member, updated from the request."""
    endpoint, tags = request.user_endpoint, request.client_tags
    return replace(
        member,
        rack_id=member.rack_id if request.rack_id is None else request.rack_id,
        client_id=client.client_id,
        client_host=client.host,
        rebalance_timeout_ms=(
            member.rebalance_timeout_ms
            if request.rebalance_timeout_ms == -1
            else request.rebalance_timeout_ms
        ),
        topology_epoch=(
            member.topology_epoch if request.topology is None else request.topology.epoch
        ),
        process_id=member.process_id if request.process_id is None else request.process_id,
        user_endpoint=(
            member.user_endpoint if endpoint is None else Endpoint(endpoint.host, endpoint.port)
        ),
        client_tags=(member.client_tags if tags is None else {tag.key: tag.value for tag in tags}),
    )


def _draft(
    step: Step,
    group: StreamsGroup,
    member: StreamsMember,
    topology: Topology,
    owned: Tasks | None,
    *,
    has_changed: bool,
) -> Draft | Refusal:
    """Put the topology on the topics, and raise the group epoch if anything matters to it."""
    configured = configured_topology(step, group, topology)
    if isinstance(configured, Refusal):
        return configured
    validated_epoch = UNVALIDATED
    if configured.is_ready:
        validated_epoch = topology.epoch
        refusal = _check_tasks(owned, configured.task_counts)
        if refusal is not None:
            return refusal
    configs = assignment_configs(step, group.group_id)
    draft = Draft(group, member, group.epoch, configured, configs)
    known = group.topology
    if known is not None and member.topology_epoch < known.epoch:
        draft.statuses.append(
            Notice(
                Status.STALE_TOPOLOGY,
                f"The member's topology epoch {member.topology_epoch} is behind the group's "
                f"topology epoch {known.epoch}.",
            )
        )
    if (
        has_changed
        or configured.metadata_hash != group.metadata_hash
        or validated_epoch != group.validated_topology_epoch
        or configs != group.assignment_configs
    ):
        draft.epoch += 1
        step.records.append(
            epoch_record(
                group.group_id, draft.epoch, configured.metadata_hash, validated_epoch, configs
            )
        )
        telemetry.info("group %s: epoch %d", group.group_id, draft.epoch)
    group.checked_topics = (step.metadata.topics, draft.epoch)
    return draft


def _check_tasks(owned: Tasks | None, task_counts: dict[str, int]) -> Refusal | None:
    """Check that the tasks that a member reports exist."""
    if owned is None:
        return None
    for tasks in (owned.active, owned.standby, owned.warmup):
        for subtopology_id, number in sorted(tasks):
            count = task_counts.get(subtopology_id)
            if count is None:
                return Refusal(
                    ErrorCode.INVALID_REQUEST,
                    f"Subtopology {subtopology_id} does not exist in the topology.",
                )
            if not 0 <= number < count:
                return Refusal(
                    ErrorCode.INVALID_REQUEST,
                    f"Task {number} for subtopology {subtopology_id} is invalid. "
                    f"Number of tasks for this subtopology: {count}",
                )
    return None


def _wait_for_more(step: Step, group_id: str) -> None:
    """Give others time to join a group that had no members."""
    delay_ms, key = initial_rebalance_delay_ms(step, group_id), delay_key(group_id)
    if delay_ms > 0 and key not in step.timers:
        step.schedule(key, delay_ms)


def _response(
    step: Step,
    request: StreamsGroupHeartbeatRequest,
    draft: Draft,
    member: StreamsMember,
    *,
    has_news: bool,
    is_known: bool,
) -> Heard:
    group, configured = draft.group, draft.configured
    response = StreamsGroupHeartbeatResponse(
        member_id=member.member_id,
        member_epoch=member.member_epoch,
        heartbeat_interval_ms=heartbeat_interval_ms(
            step.config, step.metadata, group.group_type, group.group_id
        ),
    )
    if has_news:
        assigned = member.assigned
        response.active_tasks = task_ids(assigned.active)
        response.standby_tasks = task_ids(assigned.standby)
        response.warmup_tasks = task_ids(assigned.warmup)
        if member.user_endpoint is not None:
            group.endpoint_epoch += 1
    if group.endpoint_epoch != request.endpoint_information_epoch:
        others = [each for key, each in group.members.items() if key != member.member_id]
        response.partitions_by_user_endpoint = endpoints(
            (*others, member), configured, step.metadata.named_partition_count
        )
    if is_known:
        # A group that has just come into being does not keep what is not written.
        response.endpoint_information_epoch = group.endpoint_epoch
    statuses = list(draft.statuses)
    if configured.problem is not None:
        statuses.append(configured.problem)
    if group.shutdown_member_id is not None:
        statuses.append(
            Notice(
                Status.SHUTDOWN_APPLICATION,
                f"Streams group member {group.shutdown_member_id} encountered a fatal error and "
                "requested a shutdown for the entire application.",
            )
        )
    response.status = [
        StatusField(status_code=notice.status, status_detail=notice.detail) for notice in statuses
    ]
    return Heard(response, configured.missing_topics)


def _owned(request: StreamsGroupHeartbeatRequest) -> Tasks | None:
    """The tasks that the member reports as its own; None if it does not report them."""
    active, standby, warmup = request.active_tasks, request.standby_tasks, request.warmup_tasks
    if active is None or standby is None or warmup is None:
        return None
    return Tasks(task_set(active), task_set(standby), task_set(warmup))


# Settings that only streams groups have: the group's own, or the broker's.


def initial_rebalance_delay_ms(step: Step, group_id: str) -> int:
    """Return how long a group that was empty waits for more members before it assigns."""
    value = step.metadata.group_setting(group_id, "streams.initial.rebalance.delay.ms")
    return step.config.streams_initial_rebalance_delay_ms if value is None else value


def assignment_configs(step: Step, group_id: str) -> Mapping[str, str]:
    """The assignor's configuration; a change makes the group assign again."""
    value = step.metadata.group_setting(group_id, "streams.num.standby.replicas")
    if value is None:
        value = step.config.streams_standby_replicas
    else:
        value = min(value, step.config.streams_standby_replicas_max)
    return {NUM_STANDBY_REPLICAS: str(value)}


# Endpoints of members for interactive queries, with their partitions.
#
# Source: Kafka's EndpointToPartitionsManager.


def endpoints(
    members: Iterable[StreamsMember],
    configured: ConfiguredTopology,
    partition_count: PartitionCount,
) -> list[EndpointToPartitions]:
    """Partitions of source topics, by the endpoint of the member that has their tasks."""
    endpoints = []
    for member in members:
        endpoint = member.user_endpoint
        if endpoint is None:
            continue
        assigned = member.assigned
        endpoints.append(
            EndpointToPartitions(
                user_endpoint=EndpointMessage(host=endpoint.host, port=endpoint.port),
                active_partitions=_partitions(assigned.active, configured, partition_count),
                standby_partitions=_partitions(assigned.standby, configured, partition_count),
            )
        )
    return endpoints


def _partitions(
    tasks: Iterable[TaskId], configured: ConfiguredTopology, partition_count: PartitionCount
) -> list[TopicPartition]:
    listed = []
    for subtopology_id, numbers in by_subtopology(tasks):
        subtopology = (configured.subtopologies or {}).get(subtopology_id)
        if subtopology is None:
            continue
        repartition = (topic.name for topic in subtopology.repartition_source_topics)
        for name in dict.fromkeys((*subtopology.source_topics, *repartition)):
            count = partition_count(name)
            if count is None:
                continue
            partitions = [number for number in numbers if number < count]
            listed.append(TopicPartition(topic=name, partitions=partitions))
    return listed


# The group's topology, and the topics that it runs on.
#
# Source: Kafka's GroupMetadataManager.maybeUpdateTopology and what follows it in a heartbeat.


def updated_topology(
    step: Step, group: StreamsGroup, sent: requests.StreamsGroupHeartbeatTopology | None
) -> Topology | Refusal:
    """The group's topology, which the first member sets and no other may change yet.

    One with an older topology may join; its answer says that it is behind.
    """
    known = group.topology
    if sent is None:
        return known or Refusal(ErrorCode.UNKNOWN_SERVER_ERROR, None)
    value = topology_value(sent)
    topology = Topology(value)
    if sent.epoch < 0 or len(topology.subtopologies) < len(sent.subtopologies):
        return Refusal(ErrorCode.UNKNOWN_SERVER_ERROR, None)
    if known is None:
        step.records.append(topology_record(group.group_id, value))
        return topology
    if known.epoch > sent.epoch or known == topology:
        return known
    return Refusal(ErrorCode.INVALID_REQUEST, "Topology updates are not supported yet.")


def configured_topology(
    step: Step, group: StreamsGroup, topology: Topology
) -> ConfiguredTopology | Refusal:
    """The topology on the topics that exist; looked at again when any topic has changed."""
    configured = group.configured
    is_checked = group.topology is not None and group.has_checked(step.metadata.topics)
    if configured is not None and is_checked:
        return configured
    metadata_hash = step.metadata.subscription_hash(topology.required_topics)
    if (
        configured is not None
        and configured.metadata_hash == metadata_hash
        and configured.epoch == topology.epoch
    ):
        return configured
    topology_or_refusal = configure(topology, step.metadata.named_partition_count, metadata_hash)
    if isinstance(topology_or_refusal, ConfiguredTopology):
        group.configured = topology_or_refusal
    return topology_or_refusal
