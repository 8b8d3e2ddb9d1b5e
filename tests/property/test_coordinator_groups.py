"""Members come, go, freeze and restart; the log stalls and fails; the coordinator moves and dies.

`support.group_members` says what must never happen. Here is what may happen, what must hold
between any two events, and that all ends well once the troubles end.
"""

import itertools
import random
import time

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from barnabas.node.coordinator.group.classic.group import ClassicGroup
from barnabas.node.coordinator.group.classic.states import GroupState
from barnabas.node.coordinator.group.config import GroupConfig
from barnabas.node.coordinator.group.records import RECORD_TYPES
from barnabas.node.coordinator.group.shard import GroupShard
from barnabas.node.coordinator.record_codec import replay_batches
from barnabas.protocol.errors import ErrorCode
from support.effort import examples
from support.group_members import PARTITIONS, Cohort
from support.group_world import GroupWorld

NAMES = st.sampled_from("abcdef")
DURATIONS = st.sampled_from([500, 1_000, 3_000, 5_500, 11_000, 31_000])


class GroupsUnderTrouble(RuleBasedStateMachine):
    """One group, six possible members."""

    @initialize()
    def begin(self) -> None:
        self.world = GroupWorld()
        self.cohort = Cohort(self.world)
        self.has_failed_append = False

    @rule(name=NAMES, is_static=st.booleans())
    def start(self, name: str, is_static: bool) -> None:
        self.cohort.start(name, is_static=is_static)

    @rule(name=NAMES)
    def leave(self, name: str) -> None:
        self.cohort.leave(name)

    @rule(name=NAMES)
    def die(self, name: str) -> None:
        self.cohort.crash_member(name)

    @rule(name=NAMES)
    def freeze(self, name: str) -> None:
        if name in self.cohort.members:
            self.cohort.members[name].is_frozen = True

    @rule(name=NAMES)
    def thaw(self, name: str) -> None:
        member = self.cohort.members.get(name)
        if member is not None:
            self.cohort.thaw(member)

    @rule(name=NAMES)
    def resubscribe(self, name: str) -> None:
        self.cohort.resubscribe(name)

    @rule(name=NAMES)
    def commit(self, name: str) -> None:
        self.cohort.commit(name)

    @rule(duration_ms=DURATIONS)
    def pass_time(self, duration_ms: int) -> None:
        self.cohort.pass_time(duration_ms)

    @rule()
    def hold_commits(self) -> None:
        self.world.log.holds_commits = True

    @rule()
    def release_commits(self) -> None:
        self.world.log.holds_commits = False
        self.world.log.commit()
        self.cohort.settle()

    @rule()
    def fail_appends(self) -> None:
        self.world.log.append_error = ErrorCode.NOT_ENOUGH_REPLICAS
        self.has_failed_append = True

    @rule()
    def heal_appends(self) -> None:
        self.world.log.append_error = None

    @rule()
    def move(self) -> None:
        self.world.reload()
        self.cohort.coordinator_moved()

    @rule()
    def crash(self) -> None:
        self.world.crash()
        self.has_failed_append = self.world.log.append_error is not None
        self.cohort.coordinator_crashed()
        self.cohort.check_offsets()
        self.cohort.settle()

    @invariant()
    def group_is_consistent(self) -> None:
        if hasattr(self, "world"):
            self.cohort.check_group()
            self.cohort.check_offsets()

    @precondition(lambda self: hasattr(self, "world") and not self.has_failed_append)
    @invariant()
    def replay_gives_the_same_state(self) -> None:
        live = self.world.shard
        replayed = GroupShard(GroupConfig())
        for batch in self.world.log[0].batches:
            replay_batches(batch, replayed, RECORD_TYPES)
        assert replayed.offsets.group("g") == live.offsets.group("g")
        group = live.groups.get_of(ClassicGroup, "g")
        again = replayed.groups.get_of(ClassicGroup, "g")
        assert (group is None) == (again is None)
        if group is not None and again is not None and _is_on_record(group):
            assert _on_record(group) == _on_record(again)

    def teardown(self) -> None:
        """The troubles end: everyone is answered, and the group comes to rest."""
        if not hasattr(self, "world"):
            return
        self.world.log.holds_commits = False
        self.world.log.append_error = None
        self.world.log.commit()
        for member in self.cohort.members.values():
            self.cohort.thaw(member)
        self.cohort.pass_time(75_000)
        members = self.cohort.members
        assert all(member.is_stable for member in members.values())
        waiting = [what for what, call in self.cohort.calls if not call.is_done]
        assert not waiting, f"never answered: {waiting}"
        group = self.world.shard.groups.get_of(ClassicGroup, "g")
        if members:
            assert group is not None
            assert group.state is GroupState.STABLE
            assert set(group.members) == {member.member_id for member in members.values()}
            assert {m.generation_id for m in members.values()} == {group.generation_id}
            owned = sorted(p for member in members.values() for p in member.assigned)
            assert owned == list(PARTITIONS)
        elif group is not None:
            assert group.state is GroupState.EMPTY
        self.cohort.check_offsets()


def _is_on_record(group: ClassicGroup) -> bool:
    """Return whether memory and log say the same, as they do outside rebalances."""
    if group.state is GroupState.STABLE:
        return all(member.join_waiter is None for member in group.members.values())
    return group.state is GroupState.EMPTY


def _on_record(group: ClassicGroup) -> tuple:
    return (
        group.state,
        group.generation_id,
        group.protocol_type,
        group.protocol_name,
        group.leader_id,
        group.subscribed_topics,
        [
            (
                member.member_id,
                member.instance_id,
                member.client_id,
                member.rebalance_timeout_ms,
                member.session_timeout_ms,
                member.metadata(group.protocol_name or ""),
                member.assignment,
            )
            for member in group.members.values()
        ],
    )


GroupsUnderTrouble.TestCase.settings = settings(
    max_examples=examples(25),
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
TestGroupsUnderTrouble = GroupsUnderTrouble.TestCase


WEIGHTS = {
    "start": 4.0,
    "leave": 1.0,
    "die": 1.0,
    "freeze": 1.0,
    "thaw": 1.5,
    "resubscribe": 1.0,
    "commit": 3.0,
    "pass_time": 5.0,
    "hold_commits": 1.0,
    "release_commits": 2.0,
    "fail_appends": 0.5,
    "heal_appends": 1.5,
    "move": 0.7,
    "crash": 0.7,
}
Steps = list[tuple[str, dict[str, object]]]


def random_steps(seed: int) -> Steps:
    """A run in which things mostly work: the log is healed more often than it is broken."""
    source = random.Random(seed)
    steps: Steps = []
    for name in source.choices(list(WEIGHTS), list(WEIGHTS.values()), k=source.randrange(5, 70)):
        arguments: dict[str, object] = {}
        if name in ("start", "leave", "die", "freeze", "thaw", "resubscribe", "commit"):
            arguments["name"] = source.choice("abcdef")
        if name == "start":
            arguments["is_static"] = source.random() < 0.4
        if name == "pass_time":
            arguments["duration_ms"] = source.choice([500, 1_000, 3_000, 5_500, 11_000, 31_000])
        steps.append((name, arguments))
    return steps


def run(steps: Steps) -> None:
    """Run steps, with every check between them and at the end."""
    machine = GroupsUnderTrouble()
    machine.begin()
    for name, arguments in steps:
        getattr(machine, name)(**arguments)
        machine.group_is_consistent()
        if not machine.has_failed_append:
            machine.replay_gives_the_same_state()
    machine.teardown()


@pytest.mark.parametrize("first_seed", range(0, examples(50), 50))
def test_seeds(first_seed):
    for seed in range(first_seed, first_seed + 50):
        run(random_steps(seed))


@pytest.mark.soak
def test_many_seeds(soak_minutes):
    end = time.monotonic() + 60 * soak_minutes
    for seed in itertools.count(1_000):
        run(random_steps(seed))
        if time.monotonic() > end:
            break


REGRESSIONS: dict[str, Steps] = {
    "a static member's other topics are on record": [
        ("start", {"name": "b", "is_static": True}),
        ("pass_time", {"duration_ms": 3_000}),
        ("resubscribe", {"name": "b"}),
        ("start", {"name": "b", "is_static": True}),
    ],
    "a static member that is replaced while it joins has no session to lose": [
        ("start", {"name": "c", "is_static": False}),
        ("pass_time", {"duration_ms": 5_500}),
        ("commit", {"name": "c"}),
        ("start", {"name": "c", "is_static": False}),
        ("start", {"name": "e", "is_static": True}),
        ("start", {"name": "e", "is_static": True}),
    ],
    "a loaded assignment is not shown before it is committed": [
        ("start", {"name": "a", "is_static": False}),
        ("start", {"name": "c", "is_static": False}),
        ("start", {"name": "d", "is_static": True}),
        ("hold_commits", {}),
        ("pass_time", {"duration_ms": 11_000}),
        ("freeze", {"name": "a"}),
        ("move", {}),
        ("pass_time", {"duration_ms": 500}),
        ("crash", {}),
    ],
    "a static member's id stays when its record may yet be committed": [
        ("start", {"name": "a", "is_static": True}),
        ("pass_time", {"duration_ms": 3_000}),
        ("hold_commits", {}),
        ("start", {"name": "a", "is_static": True}),
        ("move", {}),
        ("pass_time", {"duration_ms": 5_500}),
    ],
    "members hear of a rebalance while the log is stalled": [
        ("start", {"name": "b", "is_static": False}),
        ("pass_time", {"duration_ms": 3_000}),
        ("start", {"name": "a", "is_static": False}),
        ("hold_commits", {}),
        ("commit", {"name": "b"}),
        ("pass_time", {"duration_ms": 31_000}),
    ],
    "a join that waits is not given up while the log is stalled": [
        ("start", {"name": "d", "is_static": False}),
        ("hold_commits", {}),
        ("pass_time", {"duration_ms": 3_000}),
        ("fail_appends", {}),
        ("start", {"name": "a", "is_static": False}),
        ("pass_time", {"duration_ms": 31_000}),
    ],
    "asking for the assignment late is a sign of life": [
        ("hold_commits", {}),
        ("start", {"name": "a", "is_static": False}),
        ("pass_time", {"duration_ms": 5_500}),
        ("start", {"name": "e", "is_static": False}),
        ("pass_time", {"duration_ms": 500}),
        ("release_commits", {}),
        ("freeze", {"name": "e"}),
        ("pass_time", {"duration_ms": 11_000}),
    ],
}


@pytest.mark.parametrize("name", REGRESSIONS)
def test_regression(name):
    run(REGRESSIONS[name])
