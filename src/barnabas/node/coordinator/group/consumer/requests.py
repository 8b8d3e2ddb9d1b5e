"""Requests and timers of the consumer groups of one shard.

Each method makes a step, lets the modules beside this one decide, and returns a `Decision` whose
records change the group as they are replayed. A refused request writes nothing.
"""

from collections.abc import Iterable, Mapping
from typing import ClassVar

from barnabas.base.ids import Uuid
from barnabas.node.coordinator.decision import Decision, Moment, Waiter
from barnabas.node.coordinator.group.classic.join import Join
from barnabas.node.coordinator.group.classic.responses import join_error
from barnabas.node.coordinator.group.consumer import classic_members
from barnabas.node.coordinator.group.consumer.fencing import fence
from barnabas.node.coordinator.group.consumer.group import ConsumerGroup
from barnabas.node.coordinator.group.consumer.heartbeat import heartbeat
from barnabas.node.coordinator.group.consumer.member import ConsumerMember
from barnabas.node.coordinator.group.consumer.subscriptions import preferred_assignor
from barnabas.node.coordinator.group.modern.requests import ModernGroupRequests
from barnabas.node.coordinator.group.step import Client, Refusal, Step
from barnabas.node.coordinator.group.view import GroupMetadata
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.consumer_groups import (
    ConsumerGroupDescribeAssignment,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    DescribedGroup,
    Member,
    TopicPartitions,
)
from barnabas.protocol.messages.groups import HeartbeatRequest, MemberIdentity, SyncGroupRequest


class ConsumerGroupRequests(ModernGroupRequests[ConsumerGroup, ConsumerMember]):
    """The door to the consumer groups of a shard."""

    __slots__ = ()

    kind: ClassVar[type[ConsumerGroup]] = ConsumerGroup
    described_group: ClassVar[type[DescribedGroup]] = DescribedGroup
    makes_way: ClassVar[bool] = True

    def heartbeat(
        self,
        request: ConsumerGroupHeartbeatRequest,
        client: Client,
        new_member_id: str,
        now: Moment,
    ) -> Decision:
        """ConsumerGroupHeartbeat."""
        step = self.step(now)
        step.keep_visible = client.keep_visible
        response = heartbeat(step, self._groups, request, client, new_member_id)
        if isinstance(response, Refusal):
            return Decision(response=refused(response))
        return step.decide_and_replay(response)

    def _described(self, group: ConsumerGroup) -> DescribedGroup:
        members = list(group.members.values())
        return DescribedGroup(
            group_id=group.group_id,
            group_state=group.state,
            group_epoch=group.epoch,
            assignment_epoch=group.assignment_epoch,
            assignor_name=preferred_assignor(members, self._config.consumer_assignors),
            members=[_member(group, member, self._metadata) for member in members],
        )

    # Classic members

    def join(self, group: ConsumerGroup, request: Join, now: Moment) -> Decision:
        """JoinGroup to a consumer group that has members."""
        step = self.step(now)
        step.keep_visible = request.client.keep_visible
        response = classic_members.join(step, self._groups, group, request)
        if isinstance(response, ErrorCode):
            return Decision(response=join_error(response, request.request.member_id))
        needs_id = response.error_code == ErrorCode.MEMBER_ID_REQUIRED
        return step.decide_and_replay(response, is_soft=needs_id)

    def sync(
        self, group: ConsumerGroup, request: SyncGroupRequest, waiter: Waiter, now: Moment
    ) -> Decision:
        """SyncGroup to a consumer group."""
        return Decision(response=classic_members.sync(self.step(now), group, request))

    def classic_heartbeat(
        self, group: ConsumerGroup, request: HeartbeatRequest, now: Moment
    ) -> Decision:
        """Heartbeat to a consumer group."""
        response = classic_members.heartbeat(self.step(now), group, request)
        return Decision(response=response, is_soft=True)

    def leave(self, group: ConsumerGroup, leaving: list[MemberIdentity], now: Moment) -> Decision:
        """LeaveGroup to a consumer group."""
        step = self.step(now)
        response = classic_members.leave(step, self._groups, group, leaving)
        return step.decide_and_replay(response)

    # Time

    def _fence(self, step: Step, group: ConsumerGroup, member: ConsumerMember) -> None:
        fence(step, self._groups, group, [member])


def refused(refusal: Refusal) -> ConsumerGroupHeartbeatResponse:
    """The response to a heartbeat that is refused."""
    return ConsumerGroupHeartbeatResponse(error_code=refusal.error, error_message=refusal.message)


# -- ConsumerGroupDescribe: a consumer group as its members and administrators see it


CLASSIC_MEMBER = 0
CONSUMER_MEMBER = 1


def _member(group: ConsumerGroup, member: ConsumerMember, metadata: GroupMetadata) -> Member:
    has: dict[Uuid, list[int]] = {}
    for partitions in (member.assigned, member.pending_revocation):
        for topic_id, numbers in partitions.items():
            has.setdefault(topic_id, []).extend(numbers)
    return Member(
        member_id=member.member_id,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        member_epoch=member.member_epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted(member.topic_names),
        subscribed_topic_regex=member.topic_regex,
        assignment=_assignment(has, metadata),
        target_assignment=_assignment(group.target.get(member.member_id, {}), metadata),
        member_type=CLASSIC_MEMBER if member.is_classic else CONSUMER_MEMBER,
    )


def _assignment(
    partitions: Mapping[Uuid, Iterable[int]], metadata: GroupMetadata
) -> ConsumerGroupDescribeAssignment:
    """Topics that are gone are left out."""
    return ConsumerGroupDescribeAssignment(
        topic_partitions=[
            TopicPartitions(topic_id=topic_id, topic_name=name, partitions=sorted(numbers))
            for topic_id, numbers in partitions.items()
            if (name := metadata.topic_name(topic_id)) is not None
        ]
    )
