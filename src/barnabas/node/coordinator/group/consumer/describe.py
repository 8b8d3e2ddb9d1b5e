"""ConsumerGroupDescribe: a consumer group as its members and administrators see it."""

from collections.abc import Iterable, Mapping

from barnabas.base.ids import Uuid
from barnabas.node.coordinator.group.consumer.group import ConsumerGroup
from barnabas.node.coordinator.group.consumer.member import ConsumerMember
from barnabas.node.coordinator.group.consumer.target import preferred_assignor
from barnabas.node.coordinator.group.step import Refusal
from barnabas.node.coordinator.group.view import GroupMetadata
from barnabas.protocol.messages.consumer_groups import (
    ConsumerGroupDescribeAssignment,
    DescribedGroup,
    Member,
    TopicPartitions,
)

CLASSIC_MEMBER = 0
CONSUMER_MEMBER = 1


def described(
    group_id: str,
    group: ConsumerGroup | Refusal,
    metadata: GroupMetadata,
    assignors: tuple[str, ...],
) -> DescribedGroup:
    """The group with its members; any other kind of group is not found."""
    if isinstance(group, Refusal):
        return DescribedGroup(
            group_id=group_id,
            error_code=group.error,
            error_message=group.message,
        )
    members = list(group.members.values())
    return DescribedGroup(
        group_id=group_id,
        group_state=group.state,
        group_epoch=group.epoch,
        assignment_epoch=group.assignment_epoch,
        assignor_name=preferred_assignor(members, assignors),
        members=[_member(group, member, metadata) for member in members],
    )


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
