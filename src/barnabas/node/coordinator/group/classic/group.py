"""A classic group: members, generation, and the votes for a protocol.

This module is the group's state with the operations that keep it consistent; what happens to it
and when is in the handlers. Only generation, protocol, leader, members and assignments are ever
written to the log (`GroupMetadataValue`); who waits for what is not. Members are kept in the
order in which they came, so that equal inputs give equal outcomes. Source: Kafka's ClassicGroup.
"""

from collections import Counter
from collections.abc import Iterable
from typing import ClassVar

from barnabas.node.coordinator.decision import CoordinatorRecord, Waiter
from barnabas.node.coordinator.group.classic.member import (
    CONSUMER_PROTOCOL_TYPE,
    Member,
    Protocols,
    subscribed_topics,
)
from barnabas.node.coordinator.group.classic.states import GroupEvent, GroupState, next_state
from barnabas.node.coordinator.group.group_type import GroupType
from barnabas.node.coordinator.group.step import TimerKey, TimerKind
from barnabas.node.coordinator.group.view import GroupMetadata
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.group_records import GroupMetadataKey
from barnabas.protocol.messages.offsets import OffsetCommitRequest
from barnabas.protocol.messages.transactions import TxnOffsetCommitRequest


class ClassicGroup:
    """One group of the classic protocol.

    `pending_joins` are members that were told their id and must join with it (KIP-394);
    `pending_syncs` those that have not yet asked for the assignment of this generation.
    """

    __slots__ = (
        "_static_members",
        "_supporters",
        "awaiting_join_count",
        "generation_id",
        "group_id",
        "has_new_member",
        "initial_delay_left_ms",
        "initial_delay_ms",
        "leader_id",
        "members",
        "pending_joins",
        "pending_syncs",
        "previous_state",
        "protocol_name",
        "protocol_type",
        "state",
        "state_timestamp_ms",
        "subscribed_topics",
    )

    group_type: ClassVar[GroupType] = GroupType.CLASSIC

    def __init__(
        self,
        group_id: str,
        *,
        state: GroupState = GroupState.EMPTY,
        state_timestamp_ms: int = -1,
        generation_id: int = 0,
        protocol_type: str | None = None,
        protocol_name: str | None = None,
        leader_id: str | None = None,
    ) -> None:
        self.group_id = group_id
        self.state = state
        self.previous_state = GroupState.DEAD
        self.state_timestamp_ms = state_timestamp_ms
        """Wall time of the last transition; -1 where an old record does not tell."""
        self.generation_id = generation_id
        self.protocol_type = protocol_type
        """None for a group that only keeps offsets (a 'simple' group)."""
        self.protocol_name = protocol_name
        self.leader_id = leader_id
        self.members: dict[str, Member] = {}
        self.pending_joins: set[str] = set()
        self.pending_syncs: set[str] = set()
        self.awaiting_join_count = 0
        self.has_new_member = False
        self.initial_delay_ms = 0
        self.initial_delay_left_ms = 0
        self.subscribed_topics: frozenset[str] | None = None
        """None where members' subscriptions are not understood."""
        self._static_members: dict[str, str] = {}
        self._supporters: Counter[str] = Counter()

    # State

    def move(self, event: GroupEvent, wall_ms: int) -> None:
        """Make the transition that `event` causes."""
        self.previous_state, self.state = self.state, next_state(self.state, event)
        self.state_timestamp_ms = wall_ms

    @property
    def is_empty(self) -> bool:
        """True if the group has no members (some may be about to join)."""
        return self.state is GroupState.EMPTY

    @property
    def can_rebalance(self) -> bool:
        """True if a rebalance may begin now; not while one is being prepared."""
        return self.state in (
            GroupState.STABLE,
            GroupState.COMPLETING_REBALANCE,
            GroupState.EMPTY,
        )

    @property
    def have_all_joined(self) -> bool:
        """True if nobody is missing: members that wait, and ids that were given out."""
        return self.awaiting_join_count == len(self.members) and not self.pending_joins

    @property
    def rebalance_timeout_ms(self) -> int:
        """The longest that any member asks the others to wait for it."""
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    def begin_generation(self, wall_ms: int) -> None:
        """Close the join phase: next generation, with a protocol if there are members."""
        # Kafka counts in a Java int, and -1 means 'no generation' on the wire.
        self.generation_id = (self.generation_id + 1) & 0x7FFFFFFF
        if self.members:
            self.protocol_name = self.select_protocol()
            self.refresh_subscribed_topics()
            self.move(GroupEvent.MEMBERS_JOINED, wall_ms)
        else:
            self.protocol_name = None
            self.refresh_subscribed_topics()
            self.move(GroupEvent.LAST_MEMBER_GONE, wall_ms)
        self.pending_syncs.clear()

    # Members

    def add(self, member: Member) -> None:
        """Add a member; the first one makes the protocol type and leads."""
        assert member.member_id not in self.members
        if member.instance_id is not None:
            assert member.instance_id not in self._static_members
            self._static_members[member.instance_id] = member.member_id
        if not self.members:
            self.protocol_type = member.protocol_type
        if self.leader_id is None:
            self.leader_id = member.member_id
        self.members[member.member_id] = member
        self._supporters.update({name for name, _ in member.protocols})
        if member.join_waiter is not None:
            self.awaiting_join_count += 1
        self.pending_joins.discard(member.member_id)

    def remove(self, member_id: str) -> None:
        """Take a member or a pending one out; another member becomes leader if need be."""
        member = self.members.pop(member_id, None)
        if member is not None:
            self._supporters.subtract({name for name, _ in member.protocols})
            if member.join_waiter is not None:
                self.awaiting_join_count -= 1
            if member.instance_id is not None:
                self._static_members.pop(member.instance_id, None)
        if self.leader_id == member_id:
            self.leader_id = next(iter(self.members), None)
        self.pending_joins.discard(member_id)
        self.pending_syncs.discard(member_id)

    def update(
        self,
        member: Member,
        protocols: Protocols,
        rebalance_timeout_ms: int,
        session_timeout_ms: int,
    ) -> None:
        """Take over what a member says of itself when it joins again."""
        self._supporters.subtract({name for name, _ in member.protocols})
        member.protocols = protocols
        self._supporters.update({name for name, _ in protocols})
        member.rebalance_timeout_ms = rebalance_timeout_ms
        member.session_timeout_ms = session_timeout_ms

    def rename_static(self, member_id: str, new_member_id: str) -> Member:
        """Give a static member another id; it keeps its place, leadership and assignment."""
        member = self.members[member_id]
        assert member.instance_id is not None
        self.members = {
            new_member_id if key == member_id else key: value for key, value in self.members.items()
        }
        member.member_id = new_member_id
        if self.leader_id == member_id:
            self.leader_id = new_member_id
        self._static_members[member.instance_id] = new_member_id
        if member_id in self.pending_syncs:
            self.pending_syncs.remove(member_id)
            self.pending_syncs.add(new_member_id)
        return member

    def set_join_waiter(self, member: Member, waiter: Waiter | None) -> None:
        """Park a member's JoinGroup, or note that it was answered."""
        self.awaiting_join_count += (waiter is not None) - (member.join_waiter is not None)
        member.join_waiter = waiter

    def static_member_id(self, instance_id: str) -> str | None:
        """The id under which a group.instance.id takes part now."""
        return self._static_members.get(instance_id)

    def check_member(self, member_id: str, instance_id: str | None) -> ErrorCode:
        """NONE, UNKNOWN_MEMBER_ID, or FENCED_INSTANCE_ID if another took over the instance id."""
        if instance_id is not None:
            current = self._static_members.get(instance_id)
            if current is None:
                return ErrorCode.UNKNOWN_MEMBER_ID
            if current != member_id:
                return ErrorCode.FENCED_INSTANCE_ID
        return ErrorCode.NONE if member_id in self.members else ErrorCode.UNKNOWN_MEMBER_ID

    def elect_joined_leader(self) -> bool:
        """See that the leader is a member that waits to join; False if none does."""
        if self.leader_id is None:
            return False
        leader = self.members.get(self.leader_id)
        if leader is not None and leader.join_waiter is not None:
            return True
        for member in self.members.values():
            if member.join_waiter is not None:
                self.leader_id = member.member_id
                return True
        return False

    # Protocols

    def supports(self, protocol_type: str, names: Iterable[str]) -> bool:
        """Whether a member with these protocols may join: one must suit all who are there."""
        if self.state is GroupState.EMPTY:
            return bool(protocol_type) and any(True for _ in names)
        return self.protocol_type == protocol_type and any(
            self._supporters[name] == len(self.members) for name in names
        )

    def select_protocol(self) -> str:
        """The protocol that all support and most like best; the earlier vote wins a tie."""
        everyone = len(self.members)
        candidates = {name for name, count in self._supporters.items() if count == everyone}
        votes = Counter(
            vote
            for member in self.members.values()
            if (vote := member.vote(candidates)) is not None
        )
        assert votes, f"no protocol suits all members of {self.group_id}"
        return max(votes, key=votes.__getitem__)

    @property
    def uses_consumer_protocol(self) -> bool:
        """True if the members are consumers, whose subscriptions can be read."""
        return self.protocol_type == CONSUMER_PROTOCOL_TYPE

    def refresh_subscribed_topics(self) -> None:
        """Read the members' subscriptions again."""
        self.subscribed_topics = None
        if not self.uses_consumer_protocol:
            return
        if not self.members:
            self.subscribed_topics = frozenset()
        elif self.protocol_name is not None:
            name = self.protocol_name
            self.subscribed_topics = subscribed_topics(
                member.metadata(name) or b"" for member in self.members.values()
            )

    def is_subscribed(self, topic: str) -> bool:
        """Return whether a member reads `topic`, or might."""
        if self.subscribed_topics is None:
            return self.uses_consumer_protocol
        return topic in self.subscribed_topics

    # Offsets

    def check_commit(self, request: OffsetCommitRequest, version: int) -> ErrorCode:
        """Check whether the sender may commit offsets.

        Commits of members must name the current generation; those without a generation are for
        groups without members. Source: Kafka's ClassicGroup.validateOffsetCommit.
        """
        generation = request.generation_id_or_member_epoch
        if generation < 0 and self.is_empty:
            return ErrorCode.NONE
        if generation >= 0 or request.member_id or request.group_instance_id is not None:
            error = self._check_generation(request.member_id, request.group_instance_id, generation)
            if error:
                return error
        elif not self.is_empty:
            return ErrorCode.UNKNOWN_MEMBER_ID
        if self.state is GroupState.COMPLETING_REBALANCE:
            # It has heard of the new generation, but has not got its assignment yet.
            return ErrorCode.REBALANCE_IN_PROGRESS
        return ErrorCode.NONE

    def check_transactional_commit(
        self, request: TxnOffsetCommitRequest, metadata: GroupMetadata
    ) -> ErrorCode:
        """Check whether the producer may commit; the group's state does not matter."""
        generation = request.generation_id
        if generation < 0 and self.is_empty:
            return ErrorCode.NONE
        if generation >= 0 or request.member_id or request.group_instance_id is not None:
            return self._check_generation(request.member_id, request.group_instance_id, generation)
        return ErrorCode.NONE

    def check_fetch(self, member_id: str | None, epoch: int) -> ErrorCode:
        """Anybody may read offsets."""
        return ErrorCode.NONE

    def check_delete(self) -> ErrorCode:
        """Only of consumers it is known what they read."""
        is_unknown = not self.is_empty and not self.uses_consumer_protocol
        return ErrorCode.NON_EMPTY_GROUP if is_unknown else ErrorCode.NONE

    @property
    def keeps_offsets(self) -> bool:
        """True if members may read any topic, and so keep all offsets."""
        return not (
            self.protocol_type is None
            or self.is_empty
            or (
                self.state is GroupState.STABLE
                and self.uses_consumer_protocol
                and self.subscribed_topics is not None
            )
        )

    @property
    def retention_since_ms(self) -> int | None:
        """When the group lost its last member; None for one with members or without protocol."""
        if self.protocol_type is None or not self.is_empty or self.state_timestamp_ms == -1:
            return None
        return self.state_timestamp_ms

    @property
    def is_awaited(self) -> bool:
        """True if a member got its id and has not joined with it yet."""
        return bool(self.pending_joins)

    def _check_generation(
        self, member_id: str, instance_id: str | None, generation: int
    ) -> ErrorCode:
        error = self.check_member(member_id, instance_id)
        if error:
            return error
        return ErrorCode.NONE if generation == self.generation_id else ErrorCode.ILLEGAL_GENERATION

    # Records and timers

    def tombstones(self) -> list[CoordinatorRecord]:
        """The records that delete the group."""
        return [CoordinatorRecord(GroupMetadataKey(group=self.group_id), None)]

    def timer_keys(self) -> list[TimerKey]:
        """Every timer that may run for the group or its members."""
        return [
            TimerKey(TimerKind.JOIN, self.group_id),
            TimerKey(TimerKind.SYNC, self.group_id),
            *(
                TimerKey(TimerKind.CLASSIC_SESSION, self.group_id, member_id)
                for member_id in (*self.members, *self.pending_joins)
            ),
        ]

    def dropped(self) -> None:
        """The group was deleted or has moved to another node: nobody shall use it any more."""
        self.move(GroupEvent.GROUP_GONE, self.state_timestamp_ms)
