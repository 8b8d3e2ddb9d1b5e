"""The group machine of one partition of `__consumer_offsets`: every request, event and record.

Requests find their group here, and what they gather becomes a `Decision`. Offsets follow the
plain shape: decide, then replay. A classic group's own state runs ahead of its records, because
only the outcome of a rebalance is ever written; its decisions say so (`replays=False`), and a
continuation tells the group how its record fared.
Source: Kafka's GroupCoordinatorShard.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from barnabas.coordinator.decision import (
    Answer,
    CoordinatorRecord,
    Decision,
    Moment,
    Transactional,
    Waiter,
)
from barnabas.coordinator.group import admin, offset_requests
from barnabas.coordinator.group.classic.group import ClassicGroup
from barnabas.coordinator.group.classic.join import (
    Join,
    StaticMemberStored,
    join,
    static_member_stored,
)
from barnabas.coordinator.group.classic.membership import heartbeat, leave, session_ended
from barnabas.coordinator.group.classic.rebalance import (
    join_time_is_up,
    prepare_rebalance,
    reset_session,
    sync_time_is_up,
)
from barnabas.coordinator.group.classic.records import new_group_record
from barnabas.coordinator.group.classic.sync import AssignmentStored, assignment_stored, sync
from barnabas.coordinator.group.config import GroupConfig
from barnabas.coordinator.group.consumer.group import ConsumerGroup
from barnabas.coordinator.group.consumer.migration import Downgraded
from barnabas.coordinator.group.consumer.requests import ConsumerGroups
from barnabas.coordinator.group.group_type import GroupType, group_type_of
from barnabas.coordinator.group.offset_record import OffsetRecord
from barnabas.coordinator.group.offsets import OffsetStore
from barnabas.coordinator.group.records import offset_tombstone
from barnabas.coordinator.group.registry import GroupRegistry
from barnabas.coordinator.group.share.group import ShareGroup
from barnabas.coordinator.group.share.requests import ShareGroups
from barnabas.coordinator.group.step import (
    MEMBER_TIMERS,
    Client,
    GroupTimers,
    Step,
    TimerKey,
    TimerKind,
)
from barnabas.coordinator.group.streams.group import StreamsGroup
from barnabas.coordinator.group.streams.requests import StreamsGroups
from barnabas.coordinator.group.view import GroupMetadata
from barnabas.log.producers.verification import Verification
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.group_records import (
    GroupMetadataKey,
    GroupMetadataValue,
    LegacyOffsetCommitKey,
    LegacyOffsetCommitValue,
    OffsetCommitKey,
    OffsetCommitValue,
)
from barnabas.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from barnabas.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from barnabas.protocol.messages.leave_group import (
    LeaveGroupResponse,
    MemberIdentity,
    MemberResponse,
)
from barnabas.protocol.messages.list_groups import ListGroupsRequest
from barnabas.protocol.messages.offset_commit import OffsetCommitRequest
from barnabas.protocol.messages.offset_delete import OffsetDeleteRequest
from barnabas.protocol.messages.offset_fetch import OffsetFetchRequestGroup
from barnabas.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from barnabas.protocol.messages.txn_offset_commit import TxnOffsetCommitRequest

TIMER_RETRY_MS = 500
"""Until a timer whose records could not be appended is up again, as in Kafka."""


@dataclass(slots=True)
class GroupCreated:
    """Continuation: the first record of a group that a JoinGroup created."""

    group: ClassicGroup
    replaced: ConsumerGroup | StreamsGroup | None


@dataclass(slots=True)
class TimerWasUp:
    """Continuation: a timer's records, after which it is not needed any more."""

    key: TimerKey
    then: Any
    """What else is to be continued."""


class GroupShard:
    """Groups and offsets of one partition. Pure: see `decision.Shard` for who calls it."""

    def __init__(self, config: GroupConfig, metadata: GroupMetadata | None = None) -> None:
        self._config = config
        self._timers: GroupTimers = GroupTimers()
        self.groups = GroupRegistry(self._timers)
        self.offsets = OffsetStore()
        metadata = metadata or GroupMetadata()
        self.consumers = ConsumerGroups(config, self._timers, self.groups, metadata)
        self.shares = ShareGroups(config, self._timers, self.groups, metadata)
        self.streams = StreamsGroups(config, self._timers, self.groups, metadata)

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
        group = self.groups.get(request.group_id)
        step = self._step(now)
        if isinstance(group, ConsumerGroup) and not group.is_empty:
            return self.consumers.join(group, Join(request, client, waiter, id_suffix), now)
        if isinstance(group, ShareGroup | ConsumerGroup | StreamsGroup):
            if isinstance(group, ShareGroup) or not group.is_empty:
                response = JoinGroupResponse(
                    error_code=ErrorCode.INCONSISTENT_GROUP_PROTOCOL, protocol_name=None
                )
                return Decision(response=response)
            step.records += group.tombstones()
        elif group is not None:
            answer = join(step, group, Join(request, client, waiter, id_suffix))
            needs_id = answer is not None and answer.error_code == ErrorCode.MEMBER_ID_REQUIRED
            return step.decide(answer, is_soft=needs_id)
        if request.member_id:
            return Decision(
                response=JoinGroupResponse(
                    error_code=ErrorCode.UNKNOWN_MEMBER_ID,
                    member_id=request.member_id,
                    protocol_name=None,
                )
            )
        created = ClassicGroup(request.group_id, state_timestamp_ms=now.wall_ms)
        answer = join(step, created, Join(request, client, waiter, id_suffix))
        if answer is not None and answer.error_code != ErrorCode.MEMBER_ID_REQUIRED:
            return Decision(response=answer)
        self.groups.put(created)
        step.records.append(new_group_record(created))
        step.continuation = GroupCreated(created, group)
        return step.decide(answer)

    def sync_group(self, request: SyncGroupRequest, waiter: Waiter, now: Moment) -> Decision:
        """SyncGroup."""
        other = self.groups.get(request.group_id)
        if isinstance(other, ConsumerGroup):
            return self.consumers.sync(other, request, now)
        group = self.groups.classic(request.group_id)
        if group is None:
            return Decision(response=SyncGroupResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID))
        step = self._step(now)
        return step.decide(sync(step, group, request, waiter))

    def heartbeat(self, request: HeartbeatRequest, now: Moment) -> Decision:
        """Heartbeat."""
        other = self.groups.get(request.group_id)
        if isinstance(other, ConsumerGroup):
            return self.consumers.classic_heartbeat(other, request, now)
        group = self.groups.classic(request.group_id)
        if group is None:
            return Decision(response=HeartbeatResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID))
        step = self._step(now)
        return step.decide(heartbeat(step, group, request), is_soft=True)

    def leave_group(self, group_id: str, leaving: list[MemberIdentity], now: Moment) -> Decision:
        """LeaveGroup."""
        other = self.groups.get(group_id)
        if isinstance(other, ConsumerGroup):
            return self.consumers.leave(other, leaving, now)
        group = self.groups.classic(group_id)
        if group is None:
            return Decision(response=unknown_members(leaving))
        step = self._step(now)
        return step.decide(leave(step, group, leaving), is_soft=True)

    # Offsets

    def commit_offsets(self, request: OffsetCommitRequest, version: int, now: Moment) -> Decision:
        """OffsetCommit; the response is an error code where nothing may be committed."""
        error = self.check_commit(request, version, now)
        if error:
            return Decision(response=error)
        records, response = offset_requests.commit(request, self._config, now)
        return Decision(records, response)

    def check_commit(self, request: OffsetCommitRequest, version: int, now: Moment) -> ErrorCode:
        """Whether the committer may commit; if so, its session counts from now."""
        group = self.groups.get(request.group_id)
        error = offset_requests.check_commit(group, request, version)
        if not error and isinstance(group, ClassicGroup) and group.members:
            member = group.members.get(request.member_id)
            if member is not None:
                reset_session(self._step(now), group, member)
        return error

    def commit_transactional_offsets(
        self, request: TxnOffsetCommitRequest, verification: Verification | None, now: Moment
    ) -> Decision:
        """TxnOffsetCommit; the response is an error code where nothing may be committed."""
        error = offset_requests.check_transactional_commit(
            self.groups.get(request.group_id), request, self.consumers.metadata
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
            is_expected = isinstance(group, ClassicGroup) and bool(group.pending_joins)
            if is_all and group.is_empty and not is_expected:
                records += admin.group_tombstones(group)
        return Decision(records, len(records), is_atomic=False)

    # Administration

    def list_groups(self, request: ListGroupsRequest) -> Decision:
        """ListGroups: the groups of this shard."""
        return Decision(response=admin.listed(self.groups, request))

    def describe_groups(self, group_ids: Iterable[str], version: int) -> Decision:
        """DescribeGroups."""
        return Decision(
            response=[
                admin.described(group_id, self.groups.get(group_id), version)
                for group_id in group_ids
            ]
        )

    def delete_groups(self, group_ids: Iterable[str]) -> Decision:
        """DeleteGroups; the response gives an error code for each group."""
        records, outcomes = admin.deletion(group_ids, self.groups, self.offsets)
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
        elif isinstance(key, GroupMetadataKey):
            assert value is None or isinstance(value, GroupMetadataValue)
            self.groups.replay_classic(key, value)
        elif isinstance(key, LegacyOffsetCommitKey):
            assert value is None or isinstance(value, LegacyOffsetCommitValue)
            self._replay_offset(offset, producer_id, *_modern(key, value))
        else:
            group_id: str = getattr(key, "group_id")  # noqa: B009  # every other key has one
            match group_type_of(key):
                case None:
                    self.groups.replay_consumer(group_id, record)
                case GroupType.STREAMS:
                    self.groups.replay_streams(group_id, record)
                case _:
                    self.groups.replay_share(group_id, record)

    def replay_end_transaction(self, producer_id: int, is_commit: bool) -> None:
        """Apply the end of a transaction that committed offsets."""
        self.offsets.replay_end_transaction(producer_id, is_commit)

    def loaded(self, now: Moment) -> Decision:
        """Give every member a whole session from now, since nobody knows its last heartbeat."""
        step = self._step(now)
        for group in self.groups:
            if isinstance(group, ShareGroup):
                self.shares.loaded(group, step)
                continue
            if isinstance(group, ConsumerGroup):
                self.consumers.loaded(group, step)
                continue
            if isinstance(group, StreamsGroup):
                self.streams.loaded(group, step)
                continue
            for member in group.members.values():
                reset_session(step, group, member)
            if len(group.members) > self._config.size_max:
                prepare_rebalance(step, group, "it is larger than group.max.size")
        return step.decide()

    def unloaded(self, error: ErrorCode) -> list[Answer]:
        """Answer whoever waits in a group; the shard is not used again."""
        answers = []
        for group in self.groups:
            if not isinstance(group, ClassicGroup):
                continue
            for member in group.members.values():
                if member.join_waiter is not None:
                    response = JoinGroupResponse(
                        error_code=error, member_id=member.member_id, protocol_name=None
                    )
                    answers.append(Answer(member.join_waiter, response))
                if member.sync_waiter is not None:
                    answers.append(Answer(member.sync_waiter, SyncGroupResponse(error_code=error)))
            self.groups.drop(group.group_id)
        return answers

    def stored(
        self, continuation: Any, error: ErrorCode, is_appended: bool, now: Moment
    ) -> Decision:
        """Go on after records that somebody waits for were committed or failed."""
        step = self._step(now)
        if isinstance(continuation, TimerWasUp):
            if error and not is_appended and continuation.key not in self._timers:
                # Nobody else would do it; the log may take records again soon.
                self._timers.schedule(continuation.key, now.monotonic_ms + TIMER_RETRY_MS)
            continuation = continuation.then
        if continuation is None:
            return step.decide()
        if isinstance(continuation, GroupCreated):
            created = continuation.group
            if error and not is_appended and self.groups.get(created.group_id) is created:
                self.groups.drop(created.group_id)
                if continuation.replaced is not None:
                    self.groups.put(continuation.replaced)
            return step.decide()
        if isinstance(continuation, Downgraded):
            is_lost = bool(error) and not is_appended
            self.consumers.downgraded(continuation, is_lost=is_lost, now=now)
            return step.decide()
        group = self.groups.classic(continuation.group_id)
        if group is not None:
            if isinstance(continuation, AssignmentStored):
                assignment_stored(step, group, continuation, error)
            else:
                assert isinstance(continuation, StaticMemberStored)
                static_member_stored(step, group, continuation, error, is_appended)
        return step.decide()

    # Time

    def next_deadline_ms(self) -> int | None:
        """When the next timer may be due."""
        return self._timers.next_deadline_ms()

    def expire(self, now: Moment) -> Iterator[Decision]:
        """Run the timers that are due."""
        while (key := self._timers.pop_due(now.monotonic_ms)) is not None:
            owner = self.groups.get(key.group_id)
            match key.kind:
                case _ if isinstance(owner, StreamsGroup):
                    yield _again_if_lost(key, self.streams.timer_is_up(key, now))
                case _ if isinstance(owner, ShareGroup):
                    yield _again_if_lost(key, self.shares.session_ended(owner, key, now))
                case kind if kind in MEMBER_TIMERS:
                    yield _again_if_lost(key, self.consumers.timer_is_up(key, now))
                case _:
                    group = self.groups.classic(key.group_id)
                    if group is not None:
                        step = self._step(now)
                        _EXPIRED[key.kind](step, group, key.member_id)
                        yield step.decide()

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
        """Offsets without members make a 'simple' group, which has no record of its own."""
        if self.groups.get(group_id) is None:
            self.groups.put(ClassicGroup(group_id, state_timestamp_ms=commit_timestamp_ms))

    def _step(self, now: Moment) -> Step:
        return Step(now, self._config, self._timers, self.consumers.metadata)


def _again_if_lost(key: TimerKey, decision: Decision) -> Decision:
    """See that the timer comes again if its records cannot be appended."""
    if decision.records:
        decision.continuation = TimerWasUp(key, decision.continuation)
    return decision


def unknown_members(leaving: list[MemberIdentity]) -> LeaveGroupResponse:
    """LeaveGroup for a group that is not there."""
    return LeaveGroupResponse(
        members=[
            MemberResponse(
                member_id=member.member_id,
                group_instance_id=member.group_instance_id,
                error_code=ErrorCode.UNKNOWN_MEMBER_ID,
            )
            for member in leaving
        ]
    )


_EXPIRED: dict[TimerKind, Callable[[Step, ClassicGroup, str], None]] = {
    TimerKind.SESSION: session_ended,
    TimerKind.JOIN: lambda step, group, _: join_time_is_up(step, group),
    TimerKind.SYNC: lambda step, group, _: sync_time_is_up(step, group),
}


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
