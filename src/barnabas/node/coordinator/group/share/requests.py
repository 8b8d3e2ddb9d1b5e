"""Requests and timers of the share groups of one shard.

Each method makes a step, lets the modules beside this one decide, and returns a `Decision` whose
records change the group as they are replayed. A `Refusal` is a response too.
"""

from collections.abc import Iterable, Mapping
from typing import ClassVar

from barnabas.base.ids import Uuid
from barnabas.node.coordinator.decision import Decision, Moment
from barnabas.node.coordinator.group.config import GroupConfig
from barnabas.node.coordinator.group.modern.requests import ModernGroupRequests
from barnabas.node.coordinator.group.registry import GroupRegistry
from barnabas.node.coordinator.group.share import offsets
from barnabas.node.coordinator.group.share.assignor import NAME
from barnabas.node.coordinator.group.share.group import ShareGroup
from barnabas.node.coordinator.group.share.heartbeat import fence, heartbeat
from barnabas.node.coordinator.group.share.member import ShareMember
from barnabas.node.coordinator.group.share.records import state_record
from barnabas.node.coordinator.group.share.state import RequestTimes
from barnabas.node.coordinator.group.step import Client, GroupTimers, Refusal, Step
from barnabas.node.coordinator.group.view import GroupMetadata
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.consumer_groups import TopicPartitions
from barnabas.protocol.messages.share_groups import (
    AlterShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsRequest,
    DescribedGroup,
    Member,
    ShareGroupDescribeAssignment,
    ShareGroupHeartbeatRequest,
)

Partitions = Mapping[Uuid, Iterable[int]]


class ShareGroupRequests(ModernGroupRequests[ShareGroup, ShareMember]):
    """The door to the share groups of a shard."""

    __slots__ = ("_times",)

    kind: ClassVar[type[ShareGroup]] = ShareGroup
    described_group: ClassVar[type[DescribedGroup]] = DescribedGroup

    def __init__(
        self,
        config: GroupConfig,
        timers: GroupTimers,
        groups: GroupRegistry,
        metadata: GroupMetadata,
    ) -> None:
        super().__init__(config, timers, groups, metadata)
        self._times = RequestTimes()

    def heartbeat(
        self, request: ShareGroupHeartbeatRequest, client: Client, now: Moment
    ) -> Decision:
        """ShareGroupHeartbeat; the response is `Heard` or a `Refusal`."""
        step = self.step(now)
        response = heartbeat(step, self._groups, self._times, request, client)
        if isinstance(response, Refusal):
            return Decision(response=response)
        return step.decide_and_replay(response)

    def _described(self, group: ShareGroup) -> DescribedGroup:
        return DescribedGroup(
            group_id=group.group_id,
            group_state=group.state,
            group_epoch=group.epoch,
            assignment_epoch=group.assignment_epoch,
            assignor_name=NAME,
            members=[self._member(member) for member in group.members.values()],
        )

    # States of share-partitions

    def initialized_partitions(self, group_id: str) -> Decision:
        """Partitions by topic whose state is initialised, as the response."""
        group = self._groups.get_of(ShareGroup, group_id)
        topics = {} if group is None else group.state_metadata.initialized
        return Decision(response={topic_id: topic.partitions for topic_id, topic in topics.items()})

    def initialized(self, group_id: str, partitions: Partitions, now: Moment) -> Decision:
        """The share coordinators have initialised `partitions`."""
        step, group = self.step(now), self._groups.get_of(ShareGroup, group_id)
        if group is not None:
            offsets.initialized(step, group, partitions)
        return step.decide_and_replay(ErrorCode.NONE)

    def given_up(self, group_id: str, partitions: Partitions, now: Moment) -> Decision:
        """The share coordinators could not initialise `partitions`."""
        step, group = self.step(now), self._groups.get_of(ShareGroup, group_id)
        if group is not None:
            offsets.given_up(step, group, partitions)
        return step.decide_and_replay(ErrorCode.NONE)

    def alter(self, request: AlterShareGroupOffsetsRequest, now: Moment) -> Decision:
        """AlterShareGroupOffsets; the response is an `Alteration` or a `Refusal`."""
        step = self.step(now)
        return step.decide_and_replay(offsets.alter(step, self._groups, self._times, request))

    def begin_deletion(self, request: DeleteShareGroupOffsetsRequest, now: Moment) -> Decision:
        """DeleteShareGroupOffsets; the response is a `Deletion` or a `Refusal`."""
        step = self.step(now)
        return step.decide_and_replay(offsets.begin_deletion(step, self._groups, request))

    def end_deletion(self, group_id: str, topic_ids: Iterable[Uuid], now: Moment) -> Decision:
        """The share coordinators have forgotten topics."""
        step, group = self.step(now), self._groups.get_of(ShareGroup, group_id)
        if group is not None:
            offsets.end_deletion(step, group, topic_ids)
        return step.decide_and_replay(ErrorCode.NONE)

    def begin_group_deletions(self, group_ids: Iterable[str], now: Moment) -> Decision:
        """By share group, the partitions that the share coordinators shall forget, or an error.

        Groups of other types are left out.
        """
        step = self.step(now)
        response: dict[str, dict[Uuid, tuple[int, ...]] | ErrorCode] = {}
        for group_id in group_ids:
            group = self._groups.get_of(ShareGroup, group_id)
            if group is None:
                continue
            if not group.is_empty:
                response[group_id] = ErrorCode.NON_EMPTY_GROUP
                continue
            response[group_id] = offsets.begin_group_deletion(step, group)
            self._times.forget(group_id)
        return Decision(step.records, response, is_atomic=False)

    def topics_deleted(self, topic_ids: frozenset[Uuid]) -> Decision:
        """Forget topics that are gone; the share coordinators do so by themselves."""
        records = []
        for group in self._groups.each_of(ShareGroup):
            state = group.state_metadata.without_topics(topic_ids)
            if state != group.state_metadata:
                records.append(state_record(group.group_id, state))
        return Decision(records, len(records), is_atomic=False)

    # Time

    def loaded(self, group: ShareGroup, step: Step) -> None:
        """The group was read from the log: nobody knows since when things are under way."""
        super().loaded(group, step)
        initializing = group.state_metadata.initializing
        if initializing:
            self._times.asked(group.group_id, initializing, initializing, step.now.wall_ms)

    def _fence(self, step: Step, group: ShareGroup, member: ShareMember) -> None:
        fence(step, group, member)

    # Helpers

    def _member(self, member: ShareMember) -> Member:
        return Member(
            member_id=member.member_id,
            rack_id=member.rack_id,
            member_epoch=member.member_epoch,
            client_id=member.client_id,
            client_host=member.client_host,
            subscribed_topic_names=sorted(member.topic_names),
            assignment=ShareGroupDescribeAssignment(
                topic_partitions=[
                    TopicPartitions(topic_id=topic_id, topic_name=name, partitions=list(numbers))
                    for topic_id, numbers in member.assigned.items()
                    if (name := self._metadata.topic_name(topic_id)) is not None
                ]
            ),
        )
