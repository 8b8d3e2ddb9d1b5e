"""Consumer groups with random members that join, leave, freeze, change subscriptions and commit.

Members of both protocols behave as clients do (`support/consumer_world.py`), and the coordinator is
moved and killed. Checked after each step: no partition belongs to two members that the group knows
in their current epochs. Checked when all is quiet: all members are at rest, each partition has
exactly one owner, and shares differ by one at most. The same runs must find planted defects.
"""

import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from barnabas.node.coordinator.group.classic.group import ClassicGroup
from barnabas.node.coordinator.group.classic.states import GroupState
from barnabas.node.coordinator.group.consumer import reconcile as reconciling
from barnabas.node.coordinator.group.consumer import subscriptions as targeting
from barnabas.node.coordinator.group.consumer.group import ConsumerGroup
from barnabas.node.coordinator.group.modern.group import ModernGroupState
from barnabas.protocol.errors import ErrorCode
from support.consumer_world import ClassicMember, ConsumerWorld, ModernMember
from support.effort import examples

STEPS = 120
QUIET_ROUNDS = 60
ROUND_MS = 3_000
Member = ModernMember | ClassicMember


class Run:
    """One random history."""

    def __init__(self, seed: int, *, has_classic: bool) -> None:
        self.random = random.Random(seed)
        interval_ms = self.random.choice((0, 0, 1_000, 5_000))
        self.world = ConsumerWorld(seed, group_consumer_assignment_interval_ms=interval_ms)
        self.world.set_topics({"a": 5, "b": 3})
        self.has_classic = has_classic
        self.members: list[Member] = []
        self.frozen: set[int] = set()
        self.made = 0

    def play(self) -> None:
        """Random steps, then quiet."""
        for _ in range(STEPS):
            action = self.random.choices(
                (
                    self._come,
                    self._go,
                    self._freeze,
                    self._thaw,
                    self._resubscribe,
                    self._grow,
                    self._move,
                    self._commit,
                    self._heartbeats,
                ),
                (12, 6, 4, 6, 5, 2, 4, 10, 60),
            )[0]
            action()
            self.world.clock.advance(self.random.choice((10, 300, 1_000, 5_000)))
            self.check_owners()
        self.frozen.clear()
        if not self.members:
            self._come()
        for _ in range(QUIET_ROUNDS):
            for member in self.members:
                member.step()
                self.check_owners()
            self.world.clock.advance(ROUND_MS)
        self.check_rest()

    def _come(self) -> None:
        if len(self.members) > 7:
            return
        self.made += 1
        topics = self.random.choice((["a"], ["a", "b"], ["a", "b"], ["b"]))
        member: Member
        if self.has_classic and self.random.random() < 0.4:
            member = ClassicMember(self.world, f"classic{self.made}", ["a", "b"])
        else:
            regex = self.random.choice((None, None, None, "a|b", "[ab].*"))
            member = ModernMember(self.world, f"m{self.made}", topics, regex)
        self.members.append(member)
        member.step()

    def _some(self) -> Member | None:
        return self.random.choice(self.members) if self.members else None

    def _go(self) -> None:
        member = self._some()
        if member is not None:
            if self.random.random() < 0.7:
                member.leave()
            self.members.remove(member)
            self.frozen.discard(id(member))

    def _freeze(self) -> None:
        member = self._some()
        if member is not None:
            self.frozen.add(id(member))

    def _thaw(self) -> None:
        self.frozen.clear()

    def _resubscribe(self) -> None:
        member = self._some()
        if isinstance(member, ModernMember):
            member.subscribe(*self.random.choice((["a"], ["b"], ["a", "b"])))

    def _grow(self) -> None:
        topics = dict(self.world.topics)
        name = self.random.choice(("a", "b", "ax"))
        topics[name] = min(topics.get(name, 0) + 1, 9)
        self.world.set_topics(topics)

    def _move(self) -> None:
        before = state_of(self.world)
        if self.random.random() < 0.5:
            self.world.reload()
        else:
            self.world.crash()
            for member in self.members:
                if isinstance(member, ClassicMember) and (member._join or member._sync):
                    member.lose_everything()  # its connection is gone
        if before is not None:
            assert state_of(self.world) == before

    def _commit(self) -> None:
        member = self._some()
        if member is None or not member.owned or id(member) in self.frozen:
            return
        error = member.commit(min(member.owned))
        assert error in ALLOWED_COMMIT_ERRORS, error

    def _heartbeats(self) -> None:
        for member in self.members:
            if id(member) not in self.frozen:
                member.step()

    def check_owners(self) -> None:
        """No two members that are as the group knows them have the same partition."""
        group = self.world.shard.groups.get("g")
        if not isinstance(group, ConsumerGroup):
            return
        owners: dict[tuple[str, int], str] = {}
        for member in self.members:
            known = group.members.get(member.member_id)
            if known is None or member.epoch <= 0:
                continue
            for partition in member.owned:
                other = owners.setdefault(partition, member.member_id)
                assert other == member.member_id, f"{partition}: {other}, {member.member_id}"

    def check_rest(self) -> None:
        """Everyone has what it should have."""
        group = self.world.shard.groups.get("g")
        if isinstance(group, ConsumerGroup):
            assert group.state is ModernGroupState.STABLE
        else:
            assert isinstance(group, ClassicGroup)
            assert group.state is GroupState.STABLE
        owners = Counter(partition for member in self.members for partition in member.owned)
        names = set(self.world.topics)
        wanted = {topic for member in self.members for topic in topics_of(member, names)}
        if isinstance(group, ConsumerGroup):
            expected = {
                (name, number) for name in wanted for number in range(self.world.topics[name])
            }
            assert owners == dict.fromkeys(expected, 1)
            subscriptions = {frozenset(topics_of(member, names)) for member in self.members}
            if len(subscriptions) == 1:
                shares = [len(member.owned) for member in self.members]
                assert max(shares) - min(shares) <= 1


ALLOWED_COMMIT_ERRORS = (
    ErrorCode.NONE,
    ErrorCode.STALE_MEMBER_EPOCH,
    ErrorCode.ILLEGAL_GENERATION,
    ErrorCode.REBALANCE_IN_PROGRESS,
    ErrorCode.UNKNOWN_MEMBER_ID,
    ErrorCode.GROUP_ID_NOT_FOUND,
)


def topics_of(member: Member, names: set[str]) -> set[str]:
    """Return the existing topics that a member subscribes to."""
    found = set(member.topics) & names
    if isinstance(member, ModernMember) and member.regex:
        found |= {name for name in names if name[0] in "ab" and matches(member.regex, name)}
    return found


def matches(regex: str, name: str) -> bool:
    """Return whether a name matches, for the two regular expressions of these runs."""
    return name in ("a", "b") if regex == "a|b" else True


def state_of(world: ConsumerWorld) -> dict[str, Any] | None:
    """All of the consumer group that must survive a move."""
    group = world.shard.groups.get("g")
    if not isinstance(group, ConsumerGroup):
        return None
    hidden = {"checked_topics", "_names", "_regex_counts"}
    return {name: getattr(group, name) for name in ConsumerGroup.__slots__ if name not in hidden}


@pytest.mark.parametrize("has_classic", [False, True], ids=["modern", "mixed"])
@pytest.mark.parametrize("seed", range(examples(10)))
def test_random_members(seed: int, has_classic: bool) -> None:
    Run(seed, has_classic=has_classic).play()


def gives_taken_partitions(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ConsumerGroup, "owner_epoch", lambda self, topic_id, partition: None)


def does_not_await_revocation(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(reconciling, "_owns_any", lambda owned, partitions: False)


def never_assigns_again(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(
        targeting, "assigns_in_ms", lambda step, group: 1 if group.assignment_timestamp_ms else 0
    )


def loses_released_partitions(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ConsumerGroup, "_release", lambda self, member: None)


def forgets_sessions(patch: pytest.MonkeyPatch) -> None:
    from barnabas.node.coordinator.group.consumer import heartbeat
    from barnabas.node.coordinator.group.modern import timing

    patch.setattr(heartbeat, "reset_session", lambda step, group, member: None)
    patch.setattr(timing, "reset_session", lambda step, group, member: None)


def overlooks_new_topics(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ConsumerGroup, "has_checked", lambda self, topics: True)


DEFECTS: list[Callable[[pytest.MonkeyPatch], None]] = [
    gives_taken_partitions,
    does_not_await_revocation,
    never_assigns_again,
    loses_released_partitions,
    forgets_sessions,
    overlooks_new_topics,
]


@pytest.mark.parametrize("defect", DEFECTS, ids=lambda defect: defect.__name__)
def test_planted_defects_are_found(
    defect: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    defect(monkeypatch)
    for seed in range(40):
        try:
            Run(seed, has_classic=False).play()
        except AssertionError:
            return
    pytest.fail("no run noticed it")
