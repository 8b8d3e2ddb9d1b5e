"""The group machine of one partition of `__consumer_offsets`: every request, event and record.

Requests find their group here, and go to the requests of its kind (`GroupRequests`); what they
gather becomes a `Decision`. All kinds commit offsets in the same way.
Source: Kafka's GroupCoordinatorShard.
"""

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, Final

from barnabas.node.coordinator.decision import (
    Answer,
    CoordinatorRecord,
    Decision,
    Moment,
    Shard,
    Transactional,
    Waiter,
)
from barnabas.node.coordinator.group import offset_requests
from barnabas.node.coordinator.group.classic.group import ClassicGroup
from barnabas.node.coordinator.group.classic.join import Join
from barnabas.node.coordinator.group.classic.records import replay_classic
from barnabas.node.coordinator.group.classic.requests import ClassicGroupRequests
from barnabas.node.coordinator.group.classic.responses import unknown_members
from barnabas.node.coordinator.group.config import GroupConfig
from barnabas.node.coordinator.group.consumer.group import ConsumerGroup
from barnabas.node.coordinator.group.consumer.requests import ConsumerGroupRequests
from barnabas.node.coordinator.group.group import Group
from barnabas.node.coordinator.group.group_type import GroupType
from barnabas.node.coordinator.group.modern.group import ModernGroup
from barnabas.node.coordinator.group.offset_record import OffsetRecord
from barnabas.node.coordinator.group.offsets import OffsetStore
from barnabas.node.coordinator.group.records import offset_tombstone
from barnabas.node.coordinator.group.registry import Continuation, GroupRegistry
from barnabas.node.coordinator.group.requests import GroupRequests
from barnabas.node.coordinator.group.share.group import ShareGroup
from barnabas.node.coordinator.group.share.requests import ShareGroupRequests
from barnabas.node.coordinator.group.step import Client, GroupTimers, Step
from barnabas.node.coordinator.group.streams.group import StreamsGroup
from barnabas.node.coordinator.group.streams.requests import StreamsGroupRequests
from barnabas.node.coordinator.group.view import GroupMetadata
from barnabas.node.log.producers.verification import Verification
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.group_records import (
    GroupMetadataKey,
    LegacyOffsetCommitKey,
    LegacyOffsetCommitValue,
    OffsetCommitKey,
    OffsetCommitValue,
)
from barnabas.protocol.messages.groups import (
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    ListedGroup,
    ListGroupsRequest,
    MemberIdentity,
    SyncGroupRequest,
    SyncGroupResponse,
)
from barnabas.protocol.messages.offsets import (
    OffsetCommitRequest,
    OffsetDeleteRequest,
    OffsetFetchRequestGroup,
)
from barnabas.protocol.messages.transactions import TxnOffsetCommitRequest
from barnabas.protocol.schema import Message


class GroupShard(Shard):
    """Groups and offsets of one partition. Pure: see `decision.Shard` for who calls it."""

    def __init__(self, config: GroupConfig, metadata: GroupMetadata | None = None) -> None:
        self._config = config
        self._timers: GroupTimers = GroupTimers()
        self._metadata = metadata or GroupMetadata()
        self.groups = GroupRegistry(self._timers)
        self.offsets = OffsetStore()
        parts = config, self._timers, self.groups, self._metadata
        self.classics = ClassicGroupRequests(*parts)
        self.consumers = ConsumerGroupRequests(*parts)
        self.shares = ShareGroupRequests(*parts)
        self.streams = StreamsGroupRequests(*parts)
        self._of_type: dict[GroupType, GroupRequests] = {
            GroupType.CLASSIC: self.classics,
            GroupType.CONSUMER: self.consumers,
            GroupType.SHARE: self.shares,
            GroupType.STREAMS: self.streams,
        }

    # The classic protocol

    def join_group(
        self,
        request: JoinGroupRequest,
        client: Client,
        id_suffix: str,
        waiter: Waiter,
        now: Moment,
    ) -> Decision:
        """JoinGroup; a member without an id creates the group if need be."""
        join = Join(request, client, waiter, id_suffix)
        group = self.groups.get(request.group_id)
        if group is None:
            return self.classics.create(join, now)
        requests = self._requests(group)
        if group.is_empty and requests.makes_way:
            return self.classics.create(join, now, replaced=group)
        return requests.join(group, join, now)

    def sync_group(self, request: SyncGroupRequest, waiter: Waiter, now: Moment) -> Decision:
        """SyncGroup."""
        group = self.groups.get(request.group_id)
        if group is None:
            return Decision(response=SyncGroupResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID))
        return self._requests(group).sync(group, request, waiter, now)

    def heartbeat(self, request: HeartbeatRequest, now: Moment) -> Decision:
        """Heartbeat."""
        group = self.groups.get(request.group_id)
        if group is None:
            return Decision(response=HeartbeatResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID))
        return self._requests(group).classic_heartbeat(group, request, now)

    def leave_group(self, group_id: str, leaving: list[MemberIdentity], now: Moment) -> Decision:
        """LeaveGroup."""
        group = self.groups.get(group_id)
        if group is None:
            return Decision(response=unknown_members(leaving))
        return self._requests(group).leave(group, leaving, now)

    # Offsets

    def commit_offsets(self, request: OffsetCommitRequest, version: int, now: Moment) -> Decision:
        """OffsetCommit; the response is an error code if the commit is not allowed."""
        error = self.check_commit(request, version, now)
        if error:
            return Decision(response=error)
        records, response = offset_requests.commit(request, self._config, now)
        return Decision(records, response)

    def check_commit(self, request: OffsetCommitRequest, version: int, now: Moment) -> ErrorCode:
        """Check whether the sender may commit; if so, its session restarts at `now`."""
        group = self.groups.get(request.group_id)
        error = offset_requests.check_commit(group, request, version)
        if not error and group is not None:
            self._requests(group).committed(group, request.member_id, now)
        return error

    def commit_transactional_offsets(
        self, request: TxnOffsetCommitRequest, verification: Verification | None, now: Moment
    ) -> Decision:
        """TxnOffsetCommit; the response is an error code if the commit is not allowed."""
        error = offset_requests.check_transactional_commit(
            self.groups.get(request.group_id), request, self._metadata
        )
        if error:
            return Decision(response=error)
        records, response = offset_requests.transactional_commit(request, self._config, now)
        producer = Transactional(request.producer_id, request.producer_epoch, verification)
        return Decision(records, response, transactional=producer)

    def fetch_offsets(self, request: OffsetFetchRequestGroup, require_stable: bool) -> Decision:
        """OffsetFetch of one group."""
        group = self.groups.get(request.group_id)
        response = offset_requests.fetch(self.offsets, group, request, require_stable)
        return Decision(response=response)

    def delete_offsets(self, request: OffsetDeleteRequest) -> Decision:
        """OffsetDelete."""
        group = self.groups.get(request.group_id)
        records, response = offset_requests.delete(self.offsets, group, request)
        return Decision(records, response, is_atomic=False)

    def topics_deleted(self, topics: frozenset[str]) -> Decision:
        """Forget the offsets of topics that are gone."""
        partitions = self.offsets.partitions_of_topics(topics)
        records = [offset_tombstone(*partition) for partition in partitions]
        return Decision(records, len(records), is_atomic=False)

    def expire_offsets(self, now: Moment) -> Decision:
        """Forget what has outlived its retention, and groups that nothing keeps any more."""
        records: list[CoordinatorRecord] = []
        for group in self.groups:
            tombstones, is_all = offset_requests.expired(self.offsets, group, self._config, now)
            records += tombstones
            if is_all and group.is_empty and not group.is_awaited:
                records += group.tombstones()
        return Decision(records, len(records), is_atomic=False)

    # Administration

    def list_groups(self, request: ListGroupsRequest) -> Decision:
        """ListGroups: the groups of this shard."""
        return Decision(response=listed(self.groups, request))

    def delete_groups(self, group_ids: Iterable[str]) -> Decision:
        """DeleteGroups; the response gives an error code for each group."""
        records, outcomes = deletion(group_ids, self.groups, self.offsets)
        return Decision(records, outcomes, is_atomic=False)

    # Records

    def replay(self, offset: int, producer_id: int, record: CoordinatorRecord) -> None:
        """Apply one record of the partition."""
        if isinstance(record, OffsetRecord):
            committed = record.committed
            committed.record_offset = offset
            self._make_simple_group(record.group_id, committed.commit_timestamp_ms)
            self.offsets.put(
                producer_id, record.group_id, record.topic, record.partition, committed
            )
            return
        key, value = record.key, record.value
        if isinstance(key, OffsetCommitKey):
            assert value is None or isinstance(value, OffsetCommitValue)
            self._replay_offset(offset, producer_id, key, value)
        elif isinstance(key, LegacyOffsetCommitKey):
            assert value is None or isinstance(value, LegacyOffsetCommitValue)
            self._replay_offset(offset, producer_id, *_modern(key, value))
        else:
            replay(self.groups, record)

    def replay_end_transaction(self, producer_id: int, is_commit: bool) -> None:
        """Apply the end of a transaction that committed offsets."""
        self.offsets.replay_end_transaction(producer_id, is_commit)

    def loaded(self, now: Moment) -> Decision:
        """Give every member a whole session from now, since nobody knows its last heartbeat."""
        step = self._step(now)
        for group in self.groups:
            self._requests(group).loaded(group, step)
        return step.decide()

    def unloaded(self, error: ErrorCode) -> list[Answer]:
        """Answer all waiting requests of a group; the shard is not used again."""
        answers = []
        for group in self.groups:
            answers += self._requests(group).unloaded(group, error)
            self.groups.drop(group.group_id)
        return answers

    def stored(
        self, continuation: Continuation, error: ErrorCode, is_appended: bool, now: Moment
    ) -> Decision:
        """Go on after records that somebody waits for were committed or failed."""
        step = self._step(now)
        continuation.stored(step, self.groups, error, is_appended)
        return step.decide()

    # Time

    def next_deadline_ms(self) -> int | None:
        """Return when the next timer may be due."""
        return self._timers.next_deadline_ms()

    def expire(self, now: Moment) -> Iterator[Decision]:
        """Run the timers that are due."""
        while (key := self._timers.pop_due(now.monotonic_ms)) is not None:
            group = self.groups.get(key.group_id)
            if group is not None:
                yield self._requests(group).timer_is_up(group, key, now)

    def _replay_offset(
        self,
        offset: int,
        producer_id: int,
        key: OffsetCommitKey,
        value: OffsetCommitValue | None,
    ) -> None:
        if value is not None:
            self._make_simple_group(key.group, value.commit_timestamp)
        self.offsets.replay(offset, producer_id, key, value)

    def _make_simple_group(self, group_id: str, commit_timestamp_ms: int) -> None:
        """Create the 'simple' group of offsets committed without members; it is not recorded."""
        if self.groups.get(group_id) is None:
            self.groups.put(ClassicGroup(group_id, state_timestamp_ms=commit_timestamp_ms))

    def _requests(self, group: Group) -> GroupRequests:
        return self._of_type[group.group_type]

    def _step(self, now: Moment) -> Step:
        self.groups.cancel_ended()
        return Step(now, self._config, self._timers, self._metadata)


def _modern(
    key: LegacyOffsetCommitKey, value: LegacyOffsetCommitValue | None
) -> tuple[OffsetCommitKey, OffsetCommitValue | None]:
    """A record of Kafka 0.8 in today's form."""
    modern_key = OffsetCommitKey(group=key.group, topic=key.topic, partition=key.partition)
    if value is None:
        return modern_key, None
    return modern_key, OffsetCommitValue(
        offset=value.offset, metadata=value.metadata, commit_timestamp=value.commit_timestamp
    )


# -- admin requests on groups of every kind: list and delete


def listed(groups: GroupRegistry, request: ListGroupsRequest) -> list[ListedGroup]:
    """The groups that pass the filters; case does not count (KIP-518, KIP-848)."""
    states = {state.strip().lower() for state in request.states_filter}
    types = {kind.strip().lower() for kind in request.types_filter}
    groups_listed = []
    for group in groups:
        state, kind = group.state, group.group_type
        if (states and state.lower() not in states) or (types and kind not in types):
            continue
        groups_listed.append(
            ListedGroup(
                group_id=group.group_id,
                protocol_type=group.protocol_type or "",
                group_state=state,
                group_type=kind,
            )
        )
    return groups_listed


def deletion(
    group_ids: Iterable[str], groups: GroupRegistry, store: OffsetStore
) -> tuple[list[CoordinatorRecord], dict[str, ErrorCode]]:
    """Tombstones of groups without members and of their offsets, and the outcome for each."""
    records: list[CoordinatorRecord] = []
    outcomes: dict[str, ErrorCode] = {}
    for group_id in group_ids:
        if group_id in outcomes:
            continue
        group = groups.get(group_id)
        if group is None:
            outcomes[group_id] = ErrorCode.GROUP_ID_NOT_FOUND
        elif not group.is_empty:
            outcomes[group_id] = ErrorCode.NON_EMPTY_GROUP
        else:
            outcomes[group_id] = ErrorCode.NONE
            records += [
                offset_tombstone(group_id, *partition)
                for partition in store.all_partitions(group_id)
            ]
            records += group.tombstones()
    return records, outcomes


# -- replay of the records of a shard: one table for all kinds of groups
#
# Offsets are not here: they are many, belong to no kind, and go from the shard to the
# `OffsetStore`.


def replay_modern(
    kind: type[ModernGroup[Any, Any]], groups: GroupRegistry, record: CoordinatorRecord
) -> None:
    """Apply a record of a group of `kind`; the first makes it, the epoch's tombstone ends it."""
    key: Any = record.key
    is_tombstone = record.value is None
    group = groups.get_of(kind, key.group_id)
    if group is None:
        if is_tombstone:
            return
        groups.drop(key.group_id)
        group = kind(key.group_id)
        groups.put(group)
    if is_tombstone and isinstance(key, kind.records.epoch_key):
        groups.drop(key.group_id)
        return
    group.replay(record)
    if is_tombstone and isinstance(key, kind.records.member_key):
        groups.member_ended(group.member_timer_keys(key.member_id))


MODERN_KINDS: Final[tuple[type[ModernGroup[Any, Any]], ...]] = (
    ConsumerGroup,
    ShareGroup,
    StreamsGroup,
)
REPLAYS: Final[dict[type[Message], Callable[[GroupRegistry, CoordinatorRecord], None]]] = {
    GroupMetadataKey: replay_classic,
    **{key: partial(replay_modern, kind) for kind in MODERN_KINDS for key in kind.replays},
}
"""The functions that apply a group's records, by the type of the record's key."""


def replay(groups: GroupRegistry, record: CoordinatorRecord) -> None:
    """Apply a record of a group."""
    REPLAYS[type(record.key)](groups, record)
