"""Members of a group as clients behave: they join, sync, send heartbeats, retry and commit.

A `Cohort` is a group of them over one `GroupWorld`. It checks after every answer that the group
never does one of these, for any events of members, coordinator and log:

- two members own a partition in one generation;
- an assignment is seen that a crash can take back;
- a member within its session timeout gets UNKNOWN_MEMBER_ID (except one that a new coordinator
  cannot know);
- a committed offset is lost, or goes back.
"""

from dataclasses import dataclass, field
from typing import Any

from barnabas.node.coordinator.group.classic.group import ClassicGroup
from barnabas.protocol.errors import ErrorCode
from support.group_world import Call, GroupWorld

PARTITIONS = range(8)
HEARTBEAT_INTERVAL_MS = 3_000
TICK_MS = 500
SESSION_TIMEOUT_MS = 10_000
REBALANCE_TIMEOUT_MS = 30_000
RETRY = {
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
}
REJOIN = {ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.ILLEGAL_GENERATION}


@dataclass(eq=False)
class Member:
    """One client. `phase` is what it waits for: nothing, join, sync or heartbeat."""

    name: str
    instance_id: str | None = None
    topics: tuple[str, ...] = ("t",)
    member_id: str = ""
    generation_id: int = -1
    phase: str = "new"
    call: Call[Any] | None = None
    assigned: list[int] = field(default_factory=list)
    is_frozen: bool = False
    is_gone: bool = False
    next_heartbeat_ms: int = 0
    retry_at_ms: int = 0
    risked_at: int = -1
    """When its coordinator was replaced, or it was frozen, on the cohort's count of events."""
    sync_sent_at: int = -1
    synced_at: int = -1
    """When it asked for the last assignment that it got."""

    @property
    def may_be_unknown(self) -> bool:
        """True if the coordinator may have forgotten it, or never have known of it."""
        return self.risked_at > self.synced_at

    @property
    def is_stable(self) -> bool:
        return self.phase == "stable" and not self.is_gone


class Cohort:
    """The members of one group and the promises made to them."""

    def __init__(self, world: GroupWorld) -> None:
        self.world = world
        self.members: dict[str, Member] = {}
        self.owners: dict[int, dict[int, str]] = {}
        """Generation to partition to owner, as the members were told."""
        self.calls: list[tuple[str, Call[Any]]] = []
        self.commits: list[tuple[int, int, Call[Any]]] = []
        self.acknowledged: dict[int, int] = {}
        self.sent: dict[int, int] = {}
        self.next_offset = 0
        self._events = 0

    # What can happen

    def start(self, name: str, *, is_static: bool = False) -> None:
        """A process starts, or starts again: its former self is gone."""
        former = self.members.get(name)
        if former is not None:
            former.is_gone = True
        self.members[name] = Member(name, instance_id=f"i-{name}" if is_static else None)
        self.settle()

    def leave(self, name: str) -> None:
        """A member says goodbye."""
        member = self.members.pop(name, None)
        if member is not None and member.member_id:
            member.is_gone = True
            self._note("leave", self.world.leave((member.member_id, member.instance_id)))
        self.settle()

    def crash_member(self, name: str) -> None:
        """A process dies without a word."""
        member = self.members.pop(name, None)
        if member is not None:
            member.is_gone = True

    def resubscribe(self, name: str) -> None:
        """A member reads other topics from now on."""
        member = self.members.get(name)
        if member is not None and member.is_stable and not member.is_frozen:
            member.topics = (*member.topics, f"t{len(member.topics)}")
            self._join(member)
            self.settle()

    def commit(self, name: str) -> None:
        """A member commits what it owns."""
        member = self.members.get(name)
        if member is None or member.is_frozen or not member.is_stable:
            return
        self.next_offset += 1
        for partition in member.assigned[:1]:
            self.sent[partition] = self.next_offset
            call = self.world.commit(
                {("t", partition): self.next_offset},
                member.member_id,
                member.generation_id,
                instance_id=member.instance_id,
            )
            self._note("commit", call)
            self.commits.append((partition, self.next_offset, call))

    def coordinator_crashed(self) -> None:
        """Nothing that was under way is answered any more; clients notice and ask again."""
        self.calls = []
        self.commits = [commit for commit in self.commits if commit[2].is_done]
        self._count_commits()
        for member in self.members.values():
            self.risk(member)
            if member.call is not None and not member.call.is_done:
                member.call = None
                if member.phase in ("joining", "syncing"):
                    member.phase = "retry"

    def coordinator_moved(self) -> None:
        """Everyone was told; members that were not on record are unknown now."""
        for member in self.members.values():
            self.risk(member)
        self.settle()

    def risk(self, member: Member) -> None:
        """From now until its next assignment the member may turn out to be unknown."""
        member.risked_at = self._count()

    def thaw(self, member: Member) -> None:
        """A frozen member goes on, and knows nothing of what has happened."""
        if member.is_frozen:
            member.is_frozen = False
            self.risk(member)
            self.settle()

    def pass_time(self, duration_ms: int) -> None:
        """Time passes, and members act."""
        for _ in range(0, duration_ms, TICK_MS):
            self.world.clock.advance(TICK_MS)
            self.settle()

    def settle(self) -> None:
        """Let members act until none has anything to do at this moment."""
        for _ in range(1_000):
            acted = [self._step(member) for member in list(self.members.values())]
            if not any(acted):
                self._count_commits()
                return
        raise AssertionError("members never come to rest")

    # How a client acts

    def _step(self, member: Member) -> bool:
        """One reaction; false if the member waits or rests."""
        if member.is_frozen or member.is_gone:
            return False
        if member.phase == "backing off":
            if self.world.clock.monotonic_ms() < member.retry_at_ms:
                return False
            member.phase = "retry"
        if member.phase in ("new", "retry"):
            self._join(member)
            return True
        call = member.call
        if call is not None and call.is_done:
            member.call = None
            getattr(self, f"_after_{member.phase}")(member, call.response)
            return True
        if member.phase == "stable" and call is None:
            now = self.world.clock.monotonic_ms()
            if now >= member.next_heartbeat_ms:
                member.next_heartbeat_ms = now + HEARTBEAT_INTERVAL_MS
                member.call = self._note(
                    "heartbeat",
                    self.world.heartbeat(
                        member.member_id, member.generation_id, instance_id=member.instance_id
                    ),
                )
                return True
        return False

    def _join(self, member: Member) -> None:
        member.phase = "joining"
        member.assigned = []
        member.call = self._note(
            "join",
            self.world.join(
                member.name,
                member.member_id,
                instance_id=member.instance_id,
                topics=member.topics,
                session_timeout_ms=SESSION_TIMEOUT_MS,
                rebalance_timeout_ms=REBALANCE_TIMEOUT_MS,
            ),
        )

    def _after_joining(self, member: Member, response: Any) -> None:
        error = ErrorCode(response.error_code)
        if error is ErrorCode.NONE:
            assert response.leader
            member.member_id = response.member_id
            member.generation_id = response.generation_id
            assignments = {}
            if response.leader == member.member_id and not response.skip_assignment:
                ids = [other.member_id for other in response.members]
                assert member.member_id in ids
                assignments = {
                    other: bytes(p for p in PARTITIONS if p % len(ids) == index)
                    for index, other in enumerate(ids)
                }
            member.phase = "syncing"
            member.sync_sent_at = self._count()
            member.call = self._note(
                "sync",
                self.world.sync(
                    member.member_id,
                    member.generation_id,
                    assignments,
                    instance_id=member.instance_id,
                ),
            )
        elif error is ErrorCode.MEMBER_ID_REQUIRED:
            member.member_id = response.member_id
            self._join(member)
        else:
            self._react(member, error)

    def _after_syncing(self, member: Member, response: Any) -> None:
        error = ErrorCode(response.error_code)
        if error:
            self._react(member, error)
            return
        member.phase = "stable"
        member.synced_at = member.sync_sent_at
        member.assigned = list(response.assignment)
        member.next_heartbeat_ms = self.world.clock.monotonic_ms() + HEARTBEAT_INTERVAL_MS
        owners = self.owners.setdefault(member.generation_id, {})
        for partition in member.assigned:
            owner = owners.setdefault(partition, member.name)
            assert owner == member.name, (
                f"{owner} and {member.name} own {partition} in generation {member.generation_id}"
            )

    def _after_stable(self, member: Member, response: Any) -> None:
        self._react(member, ErrorCode(response.error_code))

    def _react(self, member: Member, error: ErrorCode) -> None:
        if error is ErrorCode.NONE:
            return
        if error in RETRY:
            # A client looks for the coordinator and asks again, after a moment.
            if member.phase != "stable":
                member.phase = "backing off"
                member.retry_at_ms = self.world.clock.monotonic_ms() + TICK_MS
            return
        if error in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID):
            # Fenced by its former self, if a coordinator died before its new id was on record;
            # a real client ends then, and is started again (as with Apache Kafka).
            assert member.may_be_unknown, f"{member.name} was lost"
            member.member_id = ""
        else:
            assert error in REJOIN, f"{member.name} got {error.name}"
        member.phase = "retry"

    # What was promised

    def _count(self) -> int:
        self._events += 1
        return self._events

    def _note(self, what: str, call: Call[Any]) -> Call[Any]:
        self.calls = [entry for entry in self.calls if not entry[1].is_done]
        self.calls.append((what, call))
        return call

    def _count_commits(self) -> None:
        still = []
        for partition, offset, call in self.commits:
            if not call.is_done:
                still.append((partition, offset, call))
                continue
            error = ErrorCode(call.response.topics[0].partitions[0].error_code)
            if error is ErrorCode.NONE:
                self.acknowledged[partition] = max(self.acknowledged.get(partition, 0), offset)
        self.commits = still

    def check_offsets(self) -> None:
        """Every acknowledged offset is there, or one that was sent later."""
        offsets = self.world.shard.offsets
        for partition, offset in self.acknowledged.items():
            found = offsets.get("g", "t", partition)
            assert found is not None, f"the offset of {partition} is lost"
            assert offset <= found.offset <= self.sent[partition]

    def check_group(self) -> None:
        """Invariants of a group between any two events."""
        group = self.world.shard.groups.get_of(ClassicGroup, "g")
        if group is None:
            return
        waiting = [m for m in group.members.values() if m.join_waiter is not None]
        assert group.awaiting_join_count == len(waiting)
        assert not group.members or group.leader_id in group.members
        assert group.pending_syncs <= set(group.members)
        assert not group.pending_joins & set(group.members)
        assert bool(group.members) or group.state in ("Empty", "PreparingRebalance")
        instances = [m.instance_id for m in group.members.values() if m.instance_id]
        assert len(instances) == len(set(instances))
