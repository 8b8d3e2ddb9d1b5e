"""The base of groups whose coordinator assigns: all that their records say, and what follows.

Nothing here decides. Handlers read a group and make records; `replay` alone changes it, live and
at load. Three numbers lead each other: the *group epoch* rises whenever the group's members,
their subscriptions or the topics change; the *assignment epoch* is the group epoch for which the
target assignment was made; each *member epoch* is the assignment epoch that the member has come
to.

Replay takes what it finds. Compaction may have taken tombstones away, so records of what is gone
are passed over. Each kind adds its own records, what its members have, and what it checks.
Source: Kafka's ModernGroup.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from enum import StrEnum
from typing import Any, ClassVar, Final, Generic, NamedTuple, TypeVar

from barnabas.base.ids import ZERO_UUID, Uuid
from barnabas.node.coordinator.decision import CoordinatorRecord
from barnabas.node.coordinator.group.group_type import GroupType
from barnabas.node.coordinator.group.modern.member import LEAVING_EPOCH, ModernMember
from barnabas.node.coordinator.group.modern.records import ModernRecords
from barnabas.node.coordinator.group.step import MEMBER_TIMERS, TimerKey, TimerKind
from barnabas.node.coordinator.group.view import GroupMetadata
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.offsets import OffsetCommitRequest
from barnabas.protocol.messages.transactions import TxnOffsetCommitRequest
from barnabas.protocol.schema import Message

FIRST_EPOCH: Final = 1
NO_ASSIGNMENT_EPOCH: Final = -1
MEMBER_EPOCH_FROM_VERSION: Final = 9
"""OffsetCommit knows member epochs from this version on (KIP-848)."""

M = TypeVar("M", bound=ModernMember)
T = TypeVar("T")
"""The target assignment of a member."""


class ModernGroupState(StrEnum):
    """The state of a group; the values are what clients see."""

    EMPTY = "Empty"
    NOT_READY = "NotReady"
    """Of streams groups: topics that the topology needs are missing or do not fit."""
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    STABLE = "Stable"


class CommittedPartition(NamedTuple):
    """A partition for which a member commits; ZERO_UUID where the topic's id is not known."""

    topic_id: Uuid
    topic: str
    partition: int


class ModernGroup(ABC, Generic[M, T]):
    """One group: its epochs, members and target assignment."""

    __slots__ = (
        "assignment_epoch",
        "assignment_timestamp_ms",
        "checked_topics",
        "epoch",
        "group_id",
        "members",
        "metadata_hash",
        "target",
    )

    group_type: ClassVar[GroupType]
    protocol_type: ClassVar[str]
    records: ClassVar[ModernRecords]
    replays: ClassVar[Mapping[type[Message], Callable[[Any, Any, Any], None]]]
    """The functions that apply records to a group, by the type of the record's key."""

    keeps_offsets = False
    retention_since_ms: int | None = None
    is_awaited = False

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.epoch = FIRST_EPOCH
        self.metadata_hash = 0
        self.assignment_epoch = FIRST_EPOCH
        self.assignment_timestamp_ms = 0
        """Wall time of the last assignment; 0 before the first."""
        self.members: dict[str, M] = {}
        self.target: dict[str, T] = {}
        self.checked_topics: tuple[object, int] | None = None
        """Not in the log: the topics that a handler has looked at last, and the group epoch that
        came of it."""

    # What follows from the records

    @property
    def is_empty(self) -> bool:
        """True if the group has no members."""
        return not self.members

    @property
    def state(self) -> ModernGroupState:
        """The state of the group."""
        if not self.members:
            return ModernGroupState.EMPTY
        if self.epoch > self.assignment_epoch:
            return ModernGroupState.ASSIGNING
        if all(member.is_reconciled_to(self.assignment_epoch) for member in self.members.values()):
            return ModernGroupState.STABLE
        return ModernGroupState.RECONCILING

    @abstractmethod
    def is_subscribed(self, topic: str) -> bool:
        """Return whether a member reads `topic`, for which its offsets are kept."""

    def has_checked(self, topics: object) -> bool:
        """Return whether a handler has looked at these topics, and what came of it was not lost.

        If the group has not reached the epoch that came of it, the look was in vain.
        """
        checked = self.checked_topics
        return checked is not None and checked[0] is topics and self.epoch >= checked[1]

    # Offsets

    def check_commit(self, request: OffsetCommitRequest, version: int) -> ErrorCode:
        """Check whether a member may commit offsets.

        A member that is behind may commit what it has had since the epoch that it names: its
        commit may have been under way when its epoch rose (KIP-1251).
        """
        epoch = request.generation_id_or_member_epoch
        if epoch < 0 and self.is_empty:
            return ErrorCode.NONE
        member = self.members.get(request.member_id)
        if member is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        if version < MEMBER_EPOCH_FROM_VERSION and not member.is_classic:
            return ErrorCode.UNSUPPORTED_VERSION
        partitions = (
            CommittedPartition(topic.topic_id, topic.name, partition.partition_index)
            for topic in request.topics
            for partition in topic.partitions
        )
        return self._check_epoch(member, epoch, partitions)

    def check_transactional_commit(
        self, request: TxnOffsetCommitRequest, metadata: GroupMetadata
    ) -> ErrorCode:
        """As `check_commit`; producers of before KIP-447 name no member, and are not checked."""
        epoch = request.generation_id
        if epoch < 0 and (self.is_empty or not request.member_id):
            return ErrorCode.NONE
        member = self.members.get(request.member_id)
        if member is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        # Those of a topic that is gone have no owner, so only the current epoch commits them.
        partitions = (
            CommittedPartition(
                metadata.topic_id(topic.name) or ZERO_UUID, topic.name, partition.partition_index
            )
            for topic in request.topics
            for partition in topic.partitions
        )
        error = self._check_epoch(member, epoch, partitions)
        return ErrorCode.ILLEGAL_GENERATION if error is ErrorCode.STALE_MEMBER_EPOCH else error

    def check_fetch(self, member_id: str | None, epoch: int) -> ErrorCode:
        """Check whether offsets may be read; without member id and epoch, every client may."""
        if member_id is None and epoch < 0:
            return ErrorCode.NONE
        member = self.members.get(member_id or "")
        if member is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        return ErrorCode.NONE if epoch == member.member_epoch else _stale(member)

    def check_delete(self) -> ErrorCode:
        """Offsets of topics that nobody reads may go at any time."""
        return ErrorCode.NONE

    def held_since(self, member: M, partition: CommittedPartition) -> int | None:
        """Since which epoch the member has a partition; None where it does not have it."""
        return None

    def _check_epoch(
        self, member: M, epoch: int, partitions: Iterable[CommittedPartition]
    ) -> ErrorCode:
        """Check whether a member that names `epoch` may commit partitions."""
        if epoch == member.member_epoch:
            return ErrorCode.NONE
        if epoch > member.member_epoch:
            return _stale(member)
        for partition in partitions:
            since = self.held_since(member, partition)
            if since is None or epoch < since:
                return _stale(member)
        return ErrorCode.NONE

    # Records

    def tombstones(self, renamed: Mapping[str, str] | None = None) -> list[CoordinatorRecord]:
        """The records that delete the group: members first, as Kafka's own replay requires.

        `renamed` gives members that are being replaced the ids under which records name them.
        """
        member_ids = [
            renamed.get(member_id, member_id) if renamed else member_id
            for member_id in self.members
        ]
        return [
            *self.records.members_tombstones(self.group_id, member_ids),
            *self._last_tombstones(),
        ]

    @abstractmethod
    def _last_tombstones(self) -> list[CoordinatorRecord]:
        """The records that delete the group once its members are gone."""

    def replay(self, record: CoordinatorRecord) -> None:
        """Apply a record of the group, but for the tombstone that ends it."""
        self.replays[type(record.key)](self, record.key, record.value)

    def put_member(self, member: M) -> None:
        """Take a member in as it is now."""
        old = self.members.get(member.member_id)
        if old is not None:
            self._release(old)
        self._take(member)
        self.members[member.member_id] = member
        self._member_changed(old, member)

    def remove_member(self, member_id: str) -> None:
        """Forget a member."""
        member = self.members.pop(member_id, None)
        if member is not None:
            self._release(member)
            self._member_changed(member, None)

    def _take(self, member: M) -> None:
        """Note who has what the member has."""

    def _release(self, member: M) -> None:
        """Forget that the member has what it has."""

    def _member_changed(self, old: M | None, new: M | None) -> None:
        """A member has come, changed or gone: forget what was concluded from it."""

    @abstractmethod
    def _new_member(self, member_id: str) -> M:
        """A member of which nothing is known yet."""

    @abstractmethod
    def _described(self, member: M, value: Any) -> M:
        """The member as the record of who it is says."""

    @abstractmethod
    def _assigned(self, member: M, value: Any) -> M:
        """The member with what the record says that it has, but for epochs; None: nothing."""

    @abstractmethod
    def _target_of(self, value: Any) -> T:
        """The target assignment in the record."""

    def _replay_epoch(self, key: Message, value: Any) -> None:
        assert value is not None, "the end of a group is its registry's business"
        self.epoch = value.epoch
        self.metadata_hash = value.metadata_hash

    def _replay_member(self, key: Any, value: Any) -> None:
        if value is None:
            self.remove_member(key.member_id)
            return
        old = self.members.get(key.member_id) or self._new_member(key.member_id)
        self.put_member(self._described(old, value))

    def _replay_target_epoch(self, key: Message, value: Any) -> None:
        self.assignment_epoch = NO_ASSIGNMENT_EPOCH if value is None else value.assignment_epoch
        self.assignment_timestamp_ms = 0 if value is None else value.assignment_timestamp

    def _replay_target(self, key: Any, value: Any) -> None:
        if value is None:
            self.target.pop(key.member_id, None)
        else:
            self.target[key.member_id] = self._target_of(value)

    def _replay_current(self, key: Any, value: Any) -> None:
        old = self.members.get(key.member_id)
        if value is None:
            if old is None:
                return
            epoch = previous_epoch = LEAVING_EPOCH
        else:
            old = old or self._new_member(key.member_id)
            epoch, previous_epoch = value.member_epoch, value.previous_member_epoch
        self.put_member(
            replace(
                self._assigned(old, value),
                member_epoch=epoch,
                previous_member_epoch=previous_epoch,
            )
        )

    # Timers

    def timer_keys(self) -> list[TimerKey]:
        """Every timer that may run for the group or its members."""
        return [
            TimerKey(TimerKind.INITIAL_DELAY, self.group_id),
            *(key for member_id in self.members for key in self.member_timer_keys(member_id)),
        ]

    def member_timer_keys(self, member_id: str) -> list[TimerKey]:
        """Every timer that may run for a member."""
        return [TimerKey(kind, self.group_id, member_id) for kind in MEMBER_TIMERS]

    def dropped(self) -> None:
        """The group is forgotten, and nobody waits in it."""


def common_replays(
    kind: type[ModernGroup[Any, Any]],
) -> dict[type[Message], Callable[[Any, Any, Any], None]]:
    """The functions that apply those records to a group of `kind` that all kinds have."""
    records = kind.records
    return {
        records.epoch_key: kind._replay_epoch,
        records.member_key: kind._replay_member,
        records.target_epoch_key: kind._replay_target_epoch,
        records.target_key: kind._replay_target,
        records.current_key: kind._replay_current,
    }


def _stale(member: ModernMember) -> ErrorCode:
    return ErrorCode.ILLEGAL_GENERATION if member.is_classic else ErrorCode.STALE_MEMBER_EPOCH
