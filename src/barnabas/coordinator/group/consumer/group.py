"""A consumer group: all that its records say, and what follows from it.

Nothing here decides. Handlers read a group and make records; `replay` alone changes it, live and
at load. Three numbers lead each other: the *group epoch* rises whenever the group's members,
their subscriptions or the topics change; the *assignment epoch* is the group epoch for which the
target assignment was made; each *member epoch* is the assignment epoch that the member has come
to. A partition belongs to one member at a time: `owner_epoch` tells whether somebody still has it.

Replay takes what it finds. Compaction may have taken tombstones away, so records of what is gone
are passed over, and of two owners of a partition the one with the later epoch counts.
Source: Kafka's ModernGroup and ConsumerGroup.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace
from enum import StrEnum
from typing import Any, Final

from barnabas.base.ids import Uuid
from barnabas.coordinator.decision import CoordinatorRecord
from barnabas.coordinator.group.consumer import records
from barnabas.coordinator.group.consumer.member import (
    LEAVING_EPOCH,
    ConsumerMember,
    MemberState,
    Partitions,
)
from barnabas.coordinator.group.consumer.records import ResolvedRegex, Target
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import group_records as messages
from barnabas.protocol.schema import Message

FIRST_EPOCH = 1
NO_ASSIGNMENT_EPOCH = -1


class ConsumerGroupState(StrEnum):
    """Where a consumer group stands; the values are what clients see."""

    EMPTY = "Empty"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    STABLE = "Stable"


class ConsumerGroup:
    """One group of the consumer protocol."""

    __slots__ = (
        "_names",
        "_owner_epochs",
        "_regex_counts",
        "assignment_epoch",
        "assignment_timestamp_ms",
        "checked_topics",
        "epoch",
        "group_id",
        "has_partition_metadata_record",
        "members",
        "metadata_hash",
        "resolved_regexes",
        "static_members",
        "target",
    )

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.epoch = FIRST_EPOCH
        self.metadata_hash = 0
        self.assignment_epoch = FIRST_EPOCH
        self.assignment_timestamp_ms = 0
        """Wall time of the last assignment; 0 before the first."""
        self.members: dict[str, ConsumerMember] = {}
        self.static_members: dict[str, str] = {}
        """Member ids by instance id."""
        self.target: dict[str, Target] = {}
        self.resolved_regexes: dict[str, ResolvedRegex] = {}
        self.has_partition_metadata_record = False
        self.checked_topics: tuple[object, int] | None = None
        """Not in the log: the topics that a handler has looked at last, and the group epoch that
        came of it. If the group has not reached that epoch, the look was in vain."""
        self._owner_epochs: dict[Uuid, dict[int, int]] = {}
        self._names: frozenset[str] | None = None
        self._regex_counts: Counter[str] | None = None

    # What follows from the records

    @property
    def is_empty(self) -> bool:
        """Whether the group has no members."""
        return not self.members

    @property
    def state(self) -> ConsumerGroupState:
        """Where the group stands."""
        if not self.members:
            return ConsumerGroupState.EMPTY
        if self.epoch > self.assignment_epoch:
            return ConsumerGroupState.ASSIGNING
        if all(member.is_reconciled_to(self.assignment_epoch) for member in self.members.values()):
            return ConsumerGroupState.STABLE
        return ConsumerGroupState.RECONCILING

    @property
    def classic_count(self) -> int:
        """How many members speak the classic protocol."""
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
        """Whether a member reads `topic`."""
        return topic in self.subscribed_names

    def static_member(self, instance_id: str | None) -> ConsumerMember | None:
        """Who takes part under an instance id now."""
        member_id = None if instance_id is None else self.static_members.get(instance_id)
        return None if member_id is None else self.members.get(member_id)

    def owner_epoch(self, topic_id: Uuid, partition: int) -> int | None:
        """The member epoch of the partition's owner; None where it is free."""
        return self._owner_epochs.get(topic_id, {}).get(partition)

    def awaits_others(self, member: ConsumerMember) -> bool:
        """Whether a partition that the member shall get still belongs to someone."""
        if member.state is not MemberState.UNRELEASED_PARTITIONS:
            return False
        return any(
            partition not in member.assigned.get(topic_id, {})
            and self.owner_epoch(topic_id, partition) is not None
            for topic_id, partitions in self.target.get(member.member_id, {}).items()
            for partition in partitions
        )

    # Offsets

    def check_commit(
        self, member_id: str, epoch: int, partitions: Iterable[tuple[Uuid, int]], version: int
    ) -> ErrorCode:
        """Whether a member may commit `partitions`.

        A member that is behind may commit what it has had since the epoch that it names: its
        commit may have been under way when its epoch rose (KIP-1251).
        """
        if epoch < 0 and self.is_empty:
            return ErrorCode.NONE
        member = self.members.get(member_id)
        if member is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        if not member.is_classic and version < MEMBER_EPOCH_FROM_VERSION:
            return ErrorCode.UNSUPPORTED_VERSION
        return _check_epoch(member, epoch, partitions)

    def check_transactional_commit(
        self, member_id: str, epoch: int, partitions: Iterable[tuple[Uuid, int]]
    ) -> ErrorCode:
        """As `check_commit`; producers of before KIP-447 name no member, and are not checked."""
        if epoch < 0 and (self.is_empty or not member_id):
            return ErrorCode.NONE
        member = self.members.get(member_id)
        if member is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        return _check_epoch(member, epoch, partitions)

    def check_fetch(self, member_id: str | None, epoch: int) -> ErrorCode:
        """Whether offsets may be read; without member id and epoch anyone may."""
        if member_id is None and epoch < 0:
            return ErrorCode.NONE
        member = self.members.get(member_id or "")
        if member is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        if epoch == member.member_epoch:
            return ErrorCode.NONE
        return ErrorCode.ILLEGAL_GENERATION if member.is_classic else ErrorCode.STALE_MEMBER_EPOCH

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
            records.target_epoch_record(
                group_id, self.assignment_epoch, self.assignment_timestamp_ms
            ),
            *(records.current_record(group_id, member) for member in members),
        ]

    def tombstones(self, renamed: dict[str, str] | None = None) -> list[CoordinatorRecord]:
        """What deletes the group: members first, as Kafka's own replay demands.

        `renamed` gives members that are being replaced the ids under which records name them.
        """
        group_id = self.group_id
        ids = [
            renamed.get(member_id, member_id) if renamed else member_id
            for member_id in self.members
        ]
        return [
            *(records.current_tombstone(group_id, member_id) for member_id in ids),
            *(records.target_tombstone(group_id, member_id) for member_id in ids),
            records.target_epoch_tombstone(group_id),
            *(records.member_tombstone(group_id, member_id) for member_id in ids),
            *(records.regex_tombstone(group_id, regex) for regex in self.resolved_regexes),
            records.partition_metadata_tombstone(group_id),
            records.epoch_tombstone(group_id),
        ]

    def replay(self, record: CoordinatorRecord) -> None:
        """Apply a record of the group, but for the tombstone that ends it."""
        _REPLAY[type(record.key)](self, record.key, record.value)

    def put_member(self, member: ConsumerMember) -> None:
        """Take a member in as it is now."""
        old = self.members.get(member.member_id)
        if old is not None:
            self._release(old)
        self._take(member.assigned, member.member_epoch)
        self._take(member.pending_revocation, member.member_epoch)
        self.members[member.member_id] = member
        if member.instance_id is not None:
            self.static_members[member.instance_id] = member.member_id
        if (
            old is None
            or old.topic_names != member.topic_names
            or old.topic_regex != member.topic_regex
        ):
            self._forget_subscriptions()

    def remove_member(self, member_id: str) -> None:
        """Forget a member."""
        member = self.members.pop(member_id, None)
        if member is None:
            return
        self._release(member)
        instance_id = member.instance_id
        if instance_id is not None and self.static_members.get(instance_id) == member_id:
            del self.static_members[instance_id]
        self._forget_subscriptions()

    def _forget_subscriptions(self) -> None:
        self._names = None
        self._regex_counts = None

    def _take(self, partitions: Partitions, epoch: int) -> None:
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
                    # Where another member has it at a later epoch, it is that one's.
                    if epochs.get(number) == member.member_epoch:
                        del epochs[number]
                if not epochs:
                    del self._owner_epochs[topic_id]

    def _replay_epoch(
        self, key: Message, value: messages.ConsumerGroupMetadataValue | None
    ) -> None:
        assert value is not None, "the end of a group is its registry's business"
        self.epoch = value.epoch
        self.metadata_hash = value.metadata_hash

    def _replay_partition_metadata(self, key: Message, value: Message | None) -> None:
        self.has_partition_metadata_record = value is not None

    def _replay_member(
        self,
        key: messages.ConsumerGroupMemberMetadataKey,
        value: messages.ConsumerGroupMemberMetadataValue | None,
    ) -> None:
        if value is None:
            self.remove_member(key.member_id)
            return
        old = self.members.get(key.member_id) or ConsumerMember(key.member_id)
        self.put_member(
            replace(
                old,
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
        )

    def _replay_target_epoch(
        self, key: Message, value: messages.ConsumerGroupTargetAssignmentMetadataValue | None
    ) -> None:
        self.assignment_epoch = NO_ASSIGNMENT_EPOCH if value is None else value.assignment_epoch
        self.assignment_timestamp_ms = 0 if value is None else value.assignment_timestamp

    def _replay_target(
        self,
        key: messages.ConsumerGroupTargetAssignmentMemberKey,
        value: messages.ConsumerGroupTargetAssignmentMemberValue | None,
    ) -> None:
        if value is None:
            self.target.pop(key.member_id, None)
        else:
            self.target[key.member_id] = {
                topic.topic_id: tuple(sorted(topic.partitions)) for topic in value.topic_partitions
            }

    def _replay_current(
        self,
        key: messages.ConsumerGroupCurrentMemberAssignmentKey,
        value: messages.ConsumerGroupCurrentMemberAssignmentValue | None,
    ) -> None:
        old = self.members.get(key.member_id)
        if value is None:
            if old is not None:
                self.put_member(
                    replace(
                        old,
                        member_epoch=LEAVING_EPOCH,
                        previous_member_epoch=LEAVING_EPOCH,
                        assigned={},
                        pending_revocation={},
                    )
                )
            return
        self.put_member(
            replace(
                old or ConsumerMember(key.member_id),
                member_epoch=value.member_epoch,
                previous_member_epoch=value.previous_member_epoch,
                state=_member_state(value.state),
                assigned=_partitions(value.assigned_partitions, value.member_epoch),
                pending_revocation=_partitions(
                    value.partitions_pending_revocation, value.member_epoch
                ),
            )
        )

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


MEMBER_EPOCH_FROM_VERSION: Final = 9
"""OffsetCommit knows member epochs from this version on (KIP-848)."""


def names_of(
    members: Iterable[ConsumerMember], resolved: dict[str, ResolvedRegex]
) -> frozenset[str]:
    """The topics that `members` subscribe to, by name or by a regular expression."""
    found: set[str] = set()
    for member in members:
        found |= member.topic_names
    for regex in resolved.values():
        found |= regex.topics
    return frozenset(found)


def _check_epoch(
    member: ConsumerMember, epoch: int, partitions: Iterable[tuple[Uuid, int]]
) -> ErrorCode:
    """Whether a member that names `epoch` may commit partitions, given by topic id."""
    if epoch == member.member_epoch:
        return ErrorCode.NONE
    wrong = ErrorCode.ILLEGAL_GENERATION if member.is_classic else ErrorCode.STALE_MEMBER_EPOCH
    if epoch > member.member_epoch:
        return wrong
    for topic_id, partition in partitions:
        since = member.assignment_epoch(topic_id, partition)
        if since is None or epoch < since:
            return wrong
    return ErrorCode.NONE


def _member_state(number: int) -> MemberState:
    try:
        return MemberState(number)
    except ValueError:
        return MemberState.UNKNOWN


def _partitions(topics: list[messages.TopicPartitions], member_epoch: int) -> Partitions:
    """Partitions with assignment epochs; records of Kafka before 4.3 have none."""
    found: dict[Uuid, dict[int, int]] = {}
    for topic in topics:
        epochs = topic.assignment_epochs
        if epochs is None or len(epochs) != len(topic.partitions):
            epochs = [max(member_epoch, 0)] * len(topic.partitions)
        found[topic.topic_id] = dict(sorted(zip(topic.partitions, epochs, strict=True)))
    return found


_REPLAY: Final[dict[type[Message], Callable[[ConsumerGroup, Any, Any], None]]] = {
    messages.ConsumerGroupMetadataKey: ConsumerGroup._replay_epoch,
    messages.ConsumerGroupPartitionMetadataKey: ConsumerGroup._replay_partition_metadata,
    messages.ConsumerGroupMemberMetadataKey: ConsumerGroup._replay_member,
    messages.ConsumerGroupTargetAssignmentMetadataKey: ConsumerGroup._replay_target_epoch,
    messages.ConsumerGroupTargetAssignmentMemberKey: ConsumerGroup._replay_target,
    messages.ConsumerGroupCurrentMemberAssignmentKey: ConsumerGroup._replay_current,
    messages.ConsumerGroupRegularExpressionKey: ConsumerGroup._replay_regex,
}
