"""A consumer group: all that its records say, and what follows from it.

Its base has what all groups share. A partition belongs to one member at a time:
`owner_epoch` tells whether somebody still has it. If the log names two owners, the one with the
later epoch counts. Source: Kafka's ConsumerGroup.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from typing import ClassVar

from barnabas.base.ids import Uuid
from barnabas.node.coordinator.decision import CoordinatorRecord
from barnabas.node.coordinator.group.classic.member import CONSUMER_PROTOCOL_TYPE
from barnabas.node.coordinator.group.consumer import records
from barnabas.node.coordinator.group.consumer.member import ConsumerMember, MemberState, Partitions
from barnabas.node.coordinator.group.consumer.records import ResolvedRegex, Target
from barnabas.node.coordinator.group.group_type import GroupType
from barnabas.node.coordinator.group.modern.group import (
    CommittedPartition,
    ModernGroup,
    common_replays,
)
from barnabas.node.coordinator.group.modern.records import ModernRecords
from barnabas.protocol.messages import group_records as messages
from barnabas.protocol.schema import Message


class ConsumerGroup(ModernGroup[ConsumerMember, Target]):
    """One group of the consumer protocol."""

    __slots__ = (
        "_names",
        "_owner_epochs",
        "_regex_counts",
        "has_partition_metadata_record",
        "resolved_regexes",
        "static_members",
    )

    group_type: ClassVar[GroupType] = GroupType.CONSUMER
    protocol_type: ClassVar[str] = CONSUMER_PROTOCOL_TYPE
    records: ClassVar[ModernRecords] = records.RECORDS

    def __init__(self, group_id: str) -> None:
        super().__init__(group_id)
        self.static_members: dict[str, str] = {}
        """Member ids by instance id."""
        self.resolved_regexes: dict[str, ResolvedRegex] = {}
        self.has_partition_metadata_record = False
        self._owner_epochs: dict[Uuid, dict[int, int]] = {}
        self._names: frozenset[str] | None = None
        self._regex_counts: Counter[str] | None = None

    # What follows from the records

    @property
    def classic_count(self) -> int:
        """The number of members that use the classic protocol."""
        return sum(member.is_classic for member in self.members.values())

    @property
    def regex_counts(self) -> Counter[str]:
        """Regular expressions with the number of members that subscribe by them."""
        if self._regex_counts is None:
            self._regex_counts = Counter(
                member.topic_regex for member in self.members.values() if member.topic_regex
            )
        return self._regex_counts

    @property
    def subscribed_names(self) -> frozenset[str]:
        """Topics that members name, and those that their regular expressions were resolved to."""
        if self._names is None:
            self._names = names_of(self.members.values(), self.resolved_regexes)
        return self._names

    def is_subscribed(self, topic: str) -> bool:
        """Return whether a member reads `topic`."""
        return topic in self.subscribed_names

    def static_member(self, instance_id: str | None) -> ConsumerMember | None:
        """The current member of an instance id."""
        member_id = None if instance_id is None else self.static_members.get(instance_id)
        return None if member_id is None else self.members.get(member_id)

    def owner_epoch(self, topic_id: Uuid, partition: int) -> int | None:
        """The member epoch of the partition's owner; None where it is free."""
        return self._owner_epochs.get(topic_id, {}).get(partition)

    def awaits_others(self, member: ConsumerMember) -> bool:
        """Return whether a partition of the member's target still belongs to another member."""
        if member.state is not MemberState.UNRELEASED_PARTITIONS:
            return False
        return any(
            partition not in member.assigned.get(topic_id, {})
            and self.owner_epoch(topic_id, partition) is not None
            for topic_id, partitions in self.target.get(member.member_id, {}).items()
            for partition in partitions
        )

    def held_since(self, member: ConsumerMember, partition: CommittedPartition) -> int | None:
        """Since which member epoch the member has a partition."""
        return member.assignment_epoch(partition.topic_id, partition.partition)

    # Records

    def creation_records(self) -> list[CoordinatorRecord]:
        """The whole group, for one that was converted from the classic protocol."""
        group_id, members = self.group_id, self.members.values()
        return [
            *(records.member_record(group_id, member) for member in members),
            records.epoch_record(group_id, self.epoch, self.metadata_hash),
            *(
                records.target_record(group_id, member_id, self.target.get(member_id, {}))
                for member_id in self.members
            ),
            self.records.target_epoch(
                group_id, self.assignment_epoch, self.assignment_timestamp_ms
            ),
            *(records.current_record(group_id, member) for member in members),
        ]

    def _last_tombstones(self) -> list[CoordinatorRecord]:
        return [
            *(records.regex_tombstone(self.group_id, regex) for regex in self.resolved_regexes),
            records.partition_metadata_tombstone(self.group_id),
            self.records.epoch_tombstone(self.group_id),
        ]

    def _member_changed(self, old: ConsumerMember | None, new: ConsumerMember | None) -> None:
        member = new or old
        instance_id = None if member is None else member.instance_id
        if member is not None and instance_id is not None:
            if new is not None:
                self.static_members[instance_id] = member.member_id
            elif self.static_members.get(instance_id) == member.member_id:
                del self.static_members[instance_id]
        if (
            old is None
            or new is None
            or old.topic_names != new.topic_names
            or old.topic_regex != new.topic_regex
        ):
            self._names = None
            self._regex_counts = None

    def _take(self, member: ConsumerMember) -> None:
        epoch = member.member_epoch
        for partitions in (member.assigned, member.pending_revocation):
            for topic_id, numbers in partitions.items():
                epochs = self._owner_epochs.setdefault(topic_id, {})
                for number in numbers:
                    epochs[number] = max(epochs.get(number, epoch), epoch)

    def _release(self, member: ConsumerMember) -> None:
        for partitions in (member.assigned, member.pending_revocation):
            for topic_id, numbers in partitions.items():
                epochs = self._owner_epochs.get(topic_id)
                if epochs is None:
                    continue
                for number in numbers:
                    # If another member has it at a later epoch, it belongs to that member.
                    if epochs.get(number) == member.member_epoch:
                        del epochs[number]
                if not epochs:
                    del self._owner_epochs[topic_id]

    def _new_member(self, member_id: str) -> ConsumerMember:
        return ConsumerMember(member_id)

    def _described(
        self, member: ConsumerMember, value: messages.ConsumerGroupMemberMetadataValue
    ) -> ConsumerMember:
        return replace(
            member,
            instance_id=value.instance_id,
            rack_id=value.rack_id,
            client_id=value.client_id,
            client_host=value.client_host,
            topic_names=frozenset(value.subscribed_topic_names),
            topic_regex=value.subscribed_topic_regex,
            rebalance_timeout_ms=value.rebalance_timeout_ms,
            assignor=value.server_assignor,
            classic=value.classic_member_metadata,
        )

    def _assigned(
        self,
        member: ConsumerMember,
        value: messages.ConsumerGroupCurrentMemberAssignmentValue | None,
    ) -> ConsumerMember:
        if value is None:
            return replace(member, assigned={}, pending_revocation={})
        epoch = value.member_epoch
        return replace(
            member,
            state=_member_state(value.state),
            assigned=_partitions(value.assigned_partitions, epoch),
            pending_revocation=_partitions(value.partitions_pending_revocation, epoch),
        )

    def _target_of(self, value: messages.ConsumerGroupTargetAssignmentMemberValue) -> Target:
        return {topic.topic_id: tuple(sorted(topic.partitions)) for topic in value.topic_partitions}

    def _replay_partition_metadata(self, key: Message, value: Message | None) -> None:
        self.has_partition_metadata_record = value is not None

    def _replay_regex(
        self,
        key: messages.ConsumerGroupRegularExpressionKey,
        value: messages.ConsumerGroupRegularExpressionValue | None,
    ) -> None:
        if value is None:
            self.resolved_regexes.pop(key.regular_expression, None)
        else:
            self.resolved_regexes[key.regular_expression] = ResolvedRegex(
                frozenset(value.topics), value.version, value.timestamp
            )
        self._names = None


ConsumerGroup.replays = {
    **common_replays(ConsumerGroup),
    messages.ConsumerGroupPartitionMetadataKey: ConsumerGroup._replay_partition_metadata,
    messages.ConsumerGroupRegularExpressionKey: ConsumerGroup._replay_regex,
}


def names_of(
    members: Iterable[ConsumerMember], resolved: dict[str, ResolvedRegex]
) -> frozenset[str]:
    """The topics that `members` subscribe to, by name or by a regular expression."""
    names: set[str] = set()
    for member in members:
        names |= member.topic_names
    for regex in resolved.values():
        names |= regex.topics
    return frozenset(names)


def _member_state(number: int) -> MemberState:
    try:
        return MemberState(number)
    except ValueError:
        return MemberState.UNKNOWN


def _partitions(
    topics: list[messages.ConsumerGroupCurrentMemberAssignmentTopicPartitions], member_epoch: int
) -> Partitions:
    """Partitions with assignment epochs; records of Kafka before 4.3 have none."""
    partitions: dict[Uuid, dict[int, int]] = {}
    for topic in topics:
        epochs = topic.assignment_epochs
        if epochs is None or len(epochs) != len(topic.partitions):
            epochs = [max(member_epoch, 0)] * len(topic.partitions)
        partitions[topic.topic_id] = dict(sorted(zip(topic.partitions, epochs, strict=True)))
    return partitions
