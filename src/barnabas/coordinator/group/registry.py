"""The groups of one shard, of every type, and how records change them."""

import logging
from collections.abc import Iterator

from barnabas.coordinator.decision import CoordinatorRecord
from barnabas.coordinator.group.classic.group import ClassicGroup
from barnabas.coordinator.group.classic.member import Member
from barnabas.coordinator.group.classic.states import GroupEvent, GroupState
from barnabas.coordinator.group.consumer.group import ConsumerGroup
from barnabas.coordinator.group.share.group import ShareGroup
from barnabas.coordinator.group.step import MEMBER_TIMERS, GroupTimers, TimerKey, TimerKind
from barnabas.coordinator.group.streams.group import StreamsGroup
from barnabas.protocol.messages.group_records import (
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMetadataKey,
    GroupMetadataKey,
    GroupMetadataValue,
)
from barnabas.protocol.messages.share_group_records import (
    ShareGroupMemberMetadataKey,
    ShareGroupMetadataKey,
)
from barnabas.protocol.messages.streams_group_records import (
    StreamsGroupMemberMetadataKey,
    StreamsGroupMetadataKey,
)

Group = ClassicGroup | ConsumerGroup | ShareGroup | StreamsGroup

telemetry = logging.getLogger(__name__)


class GroupRegistry:
    """Groups by id."""

    __slots__ = ("_groups", "_timers")

    def __init__(self, timers: GroupTimers) -> None:
        self._groups: dict[str, Group] = {}
        self._timers = timers

    def __iter__(self) -> Iterator[Group]:
        return iter(list(self._groups.values()))

    def __len__(self) -> int:
        return len(self._groups)

    def get(self, group_id: str) -> Group | None:
        """The group of any type."""
        return self._groups.get(group_id)

    def classic(self, group_id: str) -> ClassicGroup | None:
        """The group, if it is a classic one."""
        group = self._groups.get(group_id)
        return group if isinstance(group, ClassicGroup) else None

    def put(self, group: Group) -> None:
        """Take a group in, in place of whatever had its id."""
        if isinstance(self._groups.get(group.group_id), StreamsGroup):
            self._timers.cancel(TimerKey(TimerKind.INITIAL_DELAY, group.group_id))
        self._groups[group.group_id] = group

    def drop(self, group_id: str) -> None:
        """Forget a group and its timers."""
        group = self._groups.pop(group_id, None)
        if isinstance(group, ClassicGroup):
            self._timers.cancel(TimerKey(TimerKind.JOIN, group_id))
            self._timers.cancel(TimerKey(TimerKind.SYNC, group_id))
            for member_id in (*group.members, *group.pending_joins):
                self._timers.cancel(TimerKey(TimerKind.SESSION, group_id, member_id))
            group.move(GroupEvent.GROUP_GONE, group.state_timestamp_ms)
        elif isinstance(group, ConsumerGroup | ShareGroup | StreamsGroup):
            self._timers.cancel(TimerKey(TimerKind.INITIAL_DELAY, group_id))
            for member_id in group.members:
                self._cancel_member_timers(group_id, member_id)

    def replay_classic(self, key: GroupMetadataKey, value: GroupMetadataValue | None) -> None:
        """Apply the record of a classic group, which says all that is kept of it."""
        if value is None:
            if isinstance(self._groups.get(key.group), ClassicGroup):
                self.drop(key.group)
            return
        self.put(group_from_record(key.group, value))

    def replay_consumer(self, group_id: str, record: CoordinatorRecord) -> None:
        """Apply a record of a consumer group; the first makes it, the last ends it."""
        group = self._groups.get(group_id)
        key, is_tombstone = record.key, record.value is None
        if not isinstance(group, ConsumerGroup):
            if is_tombstone:
                return
            self.drop(group_id)
            group = ConsumerGroup(group_id)
            self._groups[group_id] = group
        if is_tombstone and isinstance(key, ConsumerGroupMetadataKey):
            self.drop(group_id)
            return
        group.replay(record)
        if is_tombstone and isinstance(key, ConsumerGroupMemberMetadataKey):
            self._cancel_member_timers(group_id, key.member_id)

    def replay_streams(self, group_id: str, record: CoordinatorRecord) -> None:
        """Apply a record of a streams group; the first makes it, the epoch's tombstone ends it."""
        group = self._groups.get(group_id)
        key, is_tombstone = record.key, record.value is None
        if not isinstance(group, StreamsGroup):
            if is_tombstone:
                return
            self.drop(group_id)
            group = StreamsGroup(group_id)
            self._groups[group_id] = group
        if is_tombstone and isinstance(key, StreamsGroupMetadataKey):
            self.drop(group_id)
            return
        group.replay(record)
        if is_tombstone and isinstance(key, StreamsGroupMemberMetadataKey):
            self._cancel_member_timers(group_id, key.member_id)

    def _cancel_member_timers(self, group_id: str, member_id: str) -> None:
        for kind in MEMBER_TIMERS:
            self._timers.cancel(TimerKey(kind, group_id, member_id))

    def replay_share(self, group_id: str, record: CoordinatorRecord) -> None:
        """Apply a record of a share group; the first makes it, the epoch's tombstone ends it."""
        group = self._groups.get(group_id)
        key, is_tombstone = record.key, record.value is None
        if not isinstance(group, ShareGroup):
            if is_tombstone:
                return
            self.drop(group_id)
            group = ShareGroup(group_id)
            self._groups[group_id] = group
        if is_tombstone and isinstance(key, ShareGroupMetadataKey):
            self.drop(group_id)
            return
        group.replay(record)
        if is_tombstone and isinstance(key, ShareGroupMemberMetadataKey):
            self._cancel_member_timers(group_id, key.member_id)


def group_from_record(group_id: str, value: GroupMetadataValue) -> ClassicGroup:
    """The group as the log tells of it: without members empty, otherwise stable."""
    group = ClassicGroup(
        group_id,
        state=GroupState.STABLE if value.members else GroupState.EMPTY,
        state_timestamp_ms=value.current_state_timestamp,
        generation_id=value.generation,
        protocol_type=value.protocol_type or None,
        protocol_name=value.protocol,
        leader_id=value.leader,
    )
    for member in value.members:
        rebalance_timeout_ms = member.rebalance_timeout
        group.add(
            Member(
                member_id=member.member_id,
                instance_id=member.group_instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                rebalance_timeout_ms=(
                    member.session_timeout if rebalance_timeout_ms == -1 else rebalance_timeout_ms
                ),
                session_timeout_ms=member.session_timeout,
                protocol_type=value.protocol_type,
                protocols=[(value.protocol or "", member.subscription)],
                assignment=member.assignment,
            )
        )
    group.refresh_subscribed_topics()
    return group
