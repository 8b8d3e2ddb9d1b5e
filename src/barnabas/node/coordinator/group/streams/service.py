"""The streams protocol: requests in, responses out; and the checks that need no group.

Source: Kafka's GroupCoordinatorService, with its words.
"""

from collections.abc import Iterable

from barnabas.node.coordinator.group.config import GroupConfig
from barnabas.node.coordinator.group.group_type import GroupType
from barnabas.node.coordinator.group.modern.heartbeat import blank_field
from barnabas.node.coordinator.group.modern.member import JOINING_EPOCH, STATIC_LEAVING_EPOCH
from barnabas.node.coordinator.group.modern.timing import heartbeat_interval_ms
from barnabas.node.coordinator.group.shards import GroupShards
from barnabas.node.coordinator.group.step import ClientInfo, Refusal
from barnabas.node.coordinator.group.streams.heartbeat import Heard
from barnabas.node.coordinator.group.streams.requests import refused
from barnabas.node.coordinator.group.view import GroupMetadata
from barnabas.node.loop.promise import Promise
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.streams_groups import (
    DescribedGroup,
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatTopology,
)


class StreamsGroupService:
    """The streams groups that this node coordinates."""

    def __init__(self, config: GroupConfig, metadata: GroupMetadata, shards: GroupShards) -> None:
        self._config = config
        self._metadata = metadata
        self._shards = shards

    def heartbeat(
        self, request: StreamsGroupHeartbeatRequest, client: ClientInfo
    ) -> Heard | Promise[Heard]:
        """Join a streams group, stay in it, follow its assignment, leave it."""
        refusal = _refusal_of(request)
        if refusal is not None:
            return refused(refusal)
        sender = client.sender
        return self._shards.run(
            request.group_id,
            lambda shard, _, now: shard.streams.heartbeat(request, sender, now),
            lambda error: refused(Refusal(error, None)),
        )

    def describe(
        self, group_ids: Iterable[str]
    ) -> list[DescribedGroup] | Promise[list[DescribedGroup]]:
        """State, topology, members and assignments of streams groups."""
        return self._shards.run_for_each(
            group_ids,
            lambda shard, group_id: shard.streams.describe(group_id),
            lambda group_id, error: DescribedGroup(group_id=group_id, error_code=error),
        )

    def heartbeat_interval_ms(self, group_id: str) -> int:
        """The interval between heartbeats of the group's members."""
        return heartbeat_interval_ms(self._config, self._metadata, GroupType.STREAMS, group_id)


def _refusal_of(request: StreamsGroupHeartbeatRequest) -> Refusal | None:
    """Refuse what is not supported yet (nor in Kafka 4.3), and then what is invalid."""
    message = _unsupported(request) or _invalid(request)
    if message:
        return Refusal(ErrorCode.INVALID_REQUEST, message)
    if request.member_epoch == JOINING_EPOCH and request.topology is not None:
        message = _invalid_topology(request.topology)
        if message:
            return Refusal(ErrorCode.STREAMS_INVALID_TOPOLOGY, message)
    message = _inconsistent(request)
    return Refusal(ErrorCode.INVALID_REQUEST, message) if message else None


def _unsupported(request: StreamsGroupHeartbeatRequest) -> str:
    if request.instance_id is not None:
        return "Static membership is not yet supported."
    if request.task_offsets is not None:
        return "TaskOffsets are not supported yet."
    if request.task_end_offsets is not None:
        return "TaskEndOffsets are not supported yet."
    if request.warmup_tasks:
        return "WarmupTasks are not supported yet."
    topology = request.topology
    if topology is not None and any(each.source_topic_regex for each in topology.subtopologies):
        return "Regular expressions for source topics are not supported yet."
    return ""


def _invalid(request: StreamsGroupHeartbeatRequest) -> str:
    blank = blank_field(request.member_id, request.group_id, request.rack_id)
    if blank:
        return blank
    epoch = request.member_epoch
    if epoch == JOINING_EPOCH:
        if request.rebalance_timeout_ms == -1:
            return "RebalanceTimeoutMs must be provided in first request."
        if request.active_tasks:
            return "ActiveTasks must be empty when (re-)joining."
        if request.standby_tasks:
            return "StandbyTasks must be empty when (re-)joining."
        if request.topology is None:
            return "Topology must be non-null when (re-)joining."
    elif epoch == STATIC_LEAVING_EPOCH:
        return "InstanceId can't be null."
    elif epoch < STATIC_LEAVING_EPOCH:
        return f"MemberEpoch is {epoch}, but must be greater than or equal to -2."
    return ""


def _invalid_topology(topology: StreamsGroupHeartbeatTopology) -> str:
    for subtopology in topology.subtopologies:
        for topic in subtopology.state_changelog_topics:
            if topic.partitions:
                return (
                    f"Changelog topic {topic.name} must have an undefined partition count, "
                    f"but it is set to {topic.partitions}."
                )
    return ""


def _inconsistent(request: StreamsGroupHeartbeatRequest) -> str:
    roles = (request.active_tasks, request.standby_tasks, request.warmup_tasks)
    if any(tasks is None for tasks in roles) and any(tasks is not None for tasks in roles):
        return "If one task-type is non-null, all must be non-null."
    if request.member_epoch != JOINING_EPOCH and request.topology is not None:
        return "Topology can only be provided when (re-)joining."
    return ""
