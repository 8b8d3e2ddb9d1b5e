"""Requests and timers of the streams groups of one shard.

Each method makes a step, lets the modules beside this one decide, and returns a `Decision` whose
records change the group as they are replayed. A refused request writes nothing.
"""

from collections.abc import Iterable
from typing import ClassVar

from barnabas.node.coordinator.decision import Decision, Moment
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
from barnabas.node.coordinator.group.streams.topology import InternalTopic, Topology
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import streams_groups as messages
from barnabas.protocol.messages.group_records import StreamsGroupTopologyTopicInfo
from barnabas.protocol.messages.streams_groups import (
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
)


class StreamsGroupRequests(ModernGroupRequests[StreamsGroup, StreamsMember]):
    """The door to the streams groups of a shard."""

    __slots__ = ()

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

    def describe(self, group_id: str) -> Decision:
        """StreamsGroupDescribe of one group."""
        return Decision(response=described(group_id, self._groups.find(StreamsGroup, group_id)))

    def _fence(self, step: Step, group: StreamsGroup, member: StreamsMember) -> None:
        fence(step, group, member)

    def _delay_is_over(self, step: Step, group: StreamsGroup) -> None:
        assign_delayed(step, group)


def refused(refusal: Refusal) -> Heard:
    """The response to a heartbeat that is refused."""
    return Heard(
        StreamsGroupHeartbeatResponse(
            error_code=refusal.error, error_message=refusal.message, status=[]
        )
    )


# -- StreamsGroupDescribe: a streams group as administrators see it


def described(group_id: str, group: StreamsGroup | Refusal) -> messages.DescribedGroup:
    """The group with its members; any other kind of group is not found."""
    if isinstance(group, Refusal):
        return messages.DescribedGroup(
            group_id=group_id,
            error_code=group.error,
            error_message=group.message,
        )
    if group.topology is None:
        return messages.DescribedGroup(group_id=group_id, error_code=ErrorCode.UNKNOWN_SERVER_ERROR)
    return messages.DescribedGroup(
        group_id=group_id,
        group_state=group.state,
        group_epoch=group.epoch,
        assignment_epoch=group.assignment_epoch,
        topology=_topology(group, group.topology),
        members=[_member(group, member) for member in group.members.values()],
    )


def _topology(group: StreamsGroup, topology: Topology) -> messages.StreamsGroupDescribeTopology:
    """With the numbers of partitions where they are decided, else as members sent it."""
    configured = group.configured
    if configured is None or not configured.is_ready or configured.subtopologies is None:
        return messages.StreamsGroupDescribeTopology(
            epoch=topology.epoch,
            subtopologies=[
                messages.StreamsGroupDescribeSubtopology(
                    subtopology_id=subtopology_id,
                    source_topics=sorted(subtopology.source_topics),
                    repartition_sink_topics=sorted(subtopology.repartition_sink_topics),
                    state_changelog_topics=_sorted(
                        _as_sent(topic) for topic in subtopology.state_changelog_topics
                    ),
                    repartition_source_topics=_sorted(
                        _as_sent(topic) for topic in subtopology.repartition_source_topics
                    ),
                )
                for subtopology_id, subtopology in sorted(topology.subtopologies.items())
            ],
        )
    return messages.StreamsGroupDescribeTopology(
        epoch=configured.epoch,
        subtopologies=[
            messages.StreamsGroupDescribeSubtopology(
                subtopology_id=subtopology_id,
                source_topics=sorted(subtopology.source_topics),
                repartition_sink_topics=sorted(subtopology.repartition_sink_topics),
                state_changelog_topics=_sorted(map(_decided, subtopology.changelog_topics)),
                repartition_source_topics=_sorted(
                    map(_decided, subtopology.repartition_source_topics)
                ),
            )
            for subtopology_id, subtopology in configured.subtopologies.items()
        ],
    )


def _as_sent(topic: StreamsGroupTopologyTopicInfo) -> messages.TopicInfo:
    return messages.TopicInfo(
        name=topic.name,
        partitions=topic.partitions,
        replication_factor=topic.replication_factor,
        topic_configs=[
            messages.KeyValue(key=config.key, value=config.value) for config in topic.topic_configs
        ],
    )


def _decided(topic: InternalTopic) -> messages.TopicInfo:
    return messages.TopicInfo(
        name=topic.name,
        partitions=topic.partitions,
        replication_factor=topic.replication_factor,
        topic_configs=[
            messages.KeyValue(key=key, value=value) for key, value in topic.configs.items()
        ],
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
