"""Requests and timers of the streams groups of one shard.

Each method makes a step, lets the modules beside this one decide, and returns a `Decision` whose
records change the group as they are replayed. A refused request writes nothing.
"""

from collections.abc import Iterable
from typing import ClassVar

from barnabas.node.coordinator.decision import Decision, Moment
from barnabas.node.coordinator.group.modern.heartbeat import blank_field
from barnabas.node.coordinator.group.modern.member import JOINING_EPOCH, STATIC_LEAVING_EPOCH
from barnabas.node.coordinator.group.modern.requests import ModernGroupRequests
from barnabas.node.coordinator.group.step import Client, Refusal, Step, TimerKind
from barnabas.node.coordinator.group.streams.group import StreamsGroup
from barnabas.node.coordinator.group.streams.heartbeat import Heard, heartbeat
from barnabas.node.coordinator.group.streams.member import StreamsMember
from barnabas.node.coordinator.group.streams.target import assign_delayed, fence
from barnabas.node.coordinator.group.streams.tasks import (
    AssignedTasks,
    Tasks,
    task_ids,
)
from barnabas.node.coordinator.group.streams.topology import (
    ConfiguredSubtopology,
    InternalTopic,
    Topology,
)
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import streams_groups as messages
from barnabas.protocol.messages.group_records import StreamsGroupTopologyTopicInfo, Subtopology
from barnabas.protocol.messages.streams_groups import (
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
    StreamsGroupHeartbeatTopology,
)


class StreamsGroupRequests(ModernGroupRequests[StreamsGroup, StreamsMember]):
    """The door to the streams groups of a shard."""

    __slots__ = ()

    kind: ClassVar[type[StreamsGroup]] = StreamsGroup
    described_group: ClassVar[type[messages.DescribedGroup]] = messages.DescribedGroup
    makes_way: ClassVar[bool] = True
    reasons: ClassVar[dict[TimerKind, str]] = {
        **ModernGroupRequests.reasons,
        TimerKind.REVOCATION: "it did not give its tasks up in time",
    }

    def heartbeat(
        self, request: StreamsGroupHeartbeatRequest, client: Client, now: Moment
    ) -> Decision:
        """StreamsGroupHeartbeat; the response is `Heard`."""
        step = self.step(now)
        heard = heartbeat(step, self._groups, request, client)
        if isinstance(heard, Refusal):
            return Decision(response=refused(heard))
        return step.decide_and_replay(heard)

    def _described(self, group: StreamsGroup) -> messages.DescribedGroup:
        if group.topology is None:
            return messages.DescribedGroup(
                group_id=group.group_id, error_code=ErrorCode.UNKNOWN_SERVER_ERROR
            )
        return messages.DescribedGroup(
            group_id=group.group_id,
            group_state=group.state,
            group_epoch=group.epoch,
            assignment_epoch=group.assignment_epoch,
            topology=_topology(group, group.topology),
            members=[_member(group, member) for member in group.members.values()],
        )

    def _fence(self, step: Step, group: StreamsGroup, member: StreamsMember) -> None:
        fence(step, group, member)

    def _delay_is_over(self, step: Step, group: StreamsGroup) -> None:
        assign_delayed(step, group)


# -- StreamsGroupHeartbeat: the checks that need no group


def refused(refusal: Refusal) -> Heard:
    """The response to a heartbeat that is refused."""
    return Heard(
        StreamsGroupHeartbeatResponse(
            error_code=refusal.error, error_message=refusal.message, status=[]
        )
    )


def check_request(request: StreamsGroupHeartbeatRequest) -> Refusal | None:
    """The errors of a request that are visible without its group, in Kafka's words.

    Fields that neither Kafka 4.3 nor Barnabas supports are refused first.
    """
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


# -- StreamsGroupDescribe: a streams group as administrators see it


def _topology(group: StreamsGroup, topology: Topology) -> messages.StreamsGroupDescribeTopology:
    """With the numbers of partitions where they are decided, else as members sent it."""
    configured = group.configured
    if configured is None or not configured.is_ready or configured.subtopologies is None:
        return messages.StreamsGroupDescribeTopology(
            epoch=topology.epoch,
            subtopologies=[
                _subtopology(
                    subtopology_id,
                    sent,
                    map(_as_sent, sent.state_changelog_topics),
                    map(_as_sent, sent.repartition_source_topics),
                )
                for subtopology_id, sent in sorted(topology.subtopologies.items())
            ],
        )
    return messages.StreamsGroupDescribeTopology(
        epoch=configured.epoch,
        subtopologies=[
            _subtopology(
                subtopology_id,
                decided,
                map(_decided, decided.changelog_topics),
                map(_decided, decided.repartition_source_topics),
            )
            for subtopology_id, decided in configured.subtopologies.items()
        ],
    )


def _subtopology(
    subtopology_id: str,
    subtopology: Subtopology | ConfiguredSubtopology,
    changelog_topics: Iterable[messages.TopicInfo],
    repartition_source_topics: Iterable[messages.TopicInfo],
) -> messages.StreamsGroupDescribeSubtopology:
    return messages.StreamsGroupDescribeSubtopology(
        subtopology_id=subtopology_id,
        source_topics=sorted(subtopology.source_topics),
        repartition_sink_topics=sorted(subtopology.repartition_sink_topics),
        state_changelog_topics=_sorted(changelog_topics),
        repartition_source_topics=_sorted(repartition_source_topics),
    )


def _as_sent(topic: StreamsGroupTopologyTopicInfo) -> messages.TopicInfo:
    return _topic(topic, ((config.key, config.value) for config in topic.topic_configs))


def _decided(topic: InternalTopic) -> messages.TopicInfo:
    return _topic(topic, topic.configs.items())


def _topic(
    topic: StreamsGroupTopologyTopicInfo | InternalTopic, configs: Iterable[tuple[str, str]]
) -> messages.TopicInfo:
    return messages.TopicInfo(
        name=topic.name,
        partitions=topic.partitions,
        replication_factor=topic.replication_factor,
        topic_configs=[messages.KeyValue(key=key, value=value) for key, value in configs],
    )


def _member(group: StreamsGroup, member: StreamsMember) -> messages.Member:
    endpoint = member.user_endpoint
    return messages.Member(
        member_id=member.member_id,
        member_epoch=member.member_epoch,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        topology_epoch=member.topology_epoch,
        process_id=member.process_id,
        user_endpoint=(
            None if endpoint is None else messages.Endpoint(host=endpoint.host, port=endpoint.port)
        ),
        client_tags=[
            messages.KeyValue(key=key, value=value) for key, value in member.client_tags.items()
        ],
        assignment=_assignment(member.assigned),
        target_assignment=_assignment(group.target.get(member.member_id, Tasks())),
    )


def _assignment(tasks: AssignedTasks | Tasks) -> messages.Assignment:
    return messages.Assignment(
        active_tasks=task_ids(tasks.active),
        standby_tasks=task_ids(tasks.standby),
        warmup_tasks=task_ids(tasks.warmup),
    )


def _sorted(topics: Iterable[messages.TopicInfo]) -> list[messages.TopicInfo]:
    return sorted(topics, key=lambda topic: topic.name)
