"""Share groups under random members, and the assignor over random subscriptions."""

from collections import Counter
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from barnabas.base.ids import Uuid
from barnabas.node.coordinator.group.share.assignor import assign
from barnabas.node.coordinator.group.share.group import ShareGroup
from barnabas.protocol.errors import ErrorCode
from support.consumer_world import topic_id
from support.effort import examples
from support.share_group_world import ShareGroupWorld

NAMES = ("a", "b", "c")
IDS = {name: Uuid(name.encode() * 16) for name in NAMES}
QUIET_ROUNDS = 8
ROUND_MS = 5_000

subscriptions = st.dictionaries(
    st.sampled_from([f"m{number}" for number in range(8)]),
    st.sets(st.sampled_from(NAMES), min_size=1),
    max_size=8,
)
partition_counts = st.dictionaries(st.sampled_from(NAMES), st.integers(0, 6))


@given(st.lists(st.tuples(subscriptions, partition_counts), min_size=1, max_size=5))
@settings(max_examples=examples(23), deadline=None)
def test_the_assignor_is_fair_complete_and_sticky(
    rounds: list[tuple[dict[str, set[str]], dict[str, int]]],
) -> None:
    former: dict[str, Any] = {}
    for members, counts in rounds:
        wanted = {key: frozenset(IDS[name] for name in names) for key, names in members.items()}
        assignable = {IDS[name]: tuple(range(count)) for name, count in counts.items()}
        targets = assign(wanted, former, assignable)
        assert targets.keys() == members.keys()
        holders = Counter(
            (topic, number)
            for target in targets.values()
            for topic, numbers in target.items()
            for number in numbers
        )
        for member_id, target in targets.items():
            for topic, numbers in target.items():
                assert topic in wanted[member_id]
                assert set(numbers) <= set(assignable.get(topic, ()))
        for topic, numbers in assignable.items():
            readers = [key for key, topics in wanted.items() if topic in topics]
            shared = [holders[topic, number] for number in numbers]
            if readers and numbers:
                assert min(shared) >= 1, "every partition has somebody"
                per_reader = Counter(len(targets[key].get(topic, ())) for key in readers)
                if len(set(wanted.values())) > 1:
                    assert max(shared) <= -(-len(readers) // len(numbers))
                    assert max(per_reader) - min(per_reader) <= 1
        if len(set(wanted.values())) == 1:
            sizes = [sum(map(len, target.values())) for target in targets.values()]
            assert max(sizes) - min(sizes) <= 1
        assert assign(wanted, targets, assignable) == targets, "nothing moves for nothing"
        former = targets


class ShareGroupHistory(RuleBasedStateMachine):
    """Members come, go, freeze and change their minds; coordinators move; states come or not."""

    def __init__(self) -> None:
        super().__init__()
        self.world = ShareGroupWorld()
        self.world.set_topics({"a": 2, "b": 1})
        self.epochs: dict[str, int] = {}
        self.wanted: dict[str, tuple[str, ...]] = {}

    def beat(self, member_id: str) -> None:
        epoch = self.epochs.get(member_id, 0)
        names = list(self.wanted[member_id])
        response = self.world.share_beat(
            member_id=member_id, member_epoch=epoch, subscribed_topic_names=names
        )
        error = ErrorCode.of(response.error_code)
        if error in (
            ErrorCode.UNKNOWN_MEMBER_ID,
            ErrorCode.FENCED_MEMBER_EPOCH,
            ErrorCode.GROUP_ID_NOT_FOUND,
        ):
            self.epochs.pop(member_id, None)
            return
        assert error is ErrorCode.NONE, response
        assert response.member_epoch >= epoch
        self.epochs[member_id] = response.member_epoch

    @rule(number=st.integers(0, 4), names=st.sets(st.sampled_from(NAMES), min_size=1))
    def come_or_change(self, number: int, names: set[str]) -> None:
        self.wanted[f"m{number}"] = tuple(sorted(names))
        self.beat(f"m{number}")

    @rule(number=st.integers(0, 4))
    def go(self, number: int) -> None:
        member_id = f"m{number}"
        if self.epochs.pop(member_id, None) is not None:
            self.world.share_beat(member_id=member_id, member_epoch=-1)
        self.wanted.pop(member_id, None)

    @rule(skipped=st.integers(0, 4))
    def all_but_one_beat(self, skipped: int) -> None:
        self.world.clock.advance(ROUND_MS)
        for member_id in list(self.wanted):
            if member_id != f"m{skipped}":
                self.beat(member_id)

    @rule()
    def silence(self) -> None:
        self.world.clock.advance(40_000)

    @rule(count=st.integers(2, 5))
    def grow(self, count: int) -> None:
        topics = self.world.topics
        self.world.set_topics({**topics, "a": max(topics.get("a", 0), count), "c": 1})

    @rule()
    def states_come(self) -> None:
        self.world.initialized()

    @rule()
    def states_do_not_come(self) -> None:
        self.world.given_up()

    @rule()
    def move(self) -> None:
        before = self.snapshot()
        self.world.reload()
        assert self.snapshot() == before

    @invariant()
    def assigns_only_what_is_initialised_and_wanted(self) -> None:
        group = self.world.shard.groups.get("g")
        if not isinstance(group, ShareGroup):
            return
        for member in group.members.values():
            subscribed = {topic_id(name) for name in member.topic_names}
            for topic, numbers in member.assigned.items():
                assert topic in subscribed
                assert set(numbers) <= set(group.state_metadata.initialized[topic].partitions)

    def teardown(self) -> None:
        for _ in range(QUIET_ROUNDS):
            self.world.clock.advance(ROUND_MS)
            for member_id in list(self.wanted):
                self.beat(member_id)
            self.world.initialized()
        group = self.world.shard.groups.get("g")
        if not self.wanted:
            assert group is None or group.is_empty
            return
        assert isinstance(group, ShareGroup)
        assert group.members.keys() == self.wanted.keys()
        assert group.epoch == group.assignment_epoch
        everything = {
            (name, number)
            for name in set().union(*self.wanted.values())
            for number in range(self.world.topics.get(name, 0))
        }
        names = {topic_id(name): name for name in self.world.topics}
        assert everything == {
            (names[topic], number)
            for member in group.members.values()
            for topic, numbers in member.assigned.items()
            for number in numbers
        }

    def snapshot(self) -> Any:
        group = self.world.shard.groups.get("g")
        if not isinstance(group, ShareGroup):
            return None
        return (
            group.epoch,
            group.metadata_hash,
            group.assignment_epoch,
            group.assignment_timestamp_ms,
            group.members,
            group.target,
            group.state_metadata,
        )


TestShareGroupHistory = ShareGroupHistory.TestCase
TestShareGroupHistory.settings = settings(
    max_examples=examples(7), stateful_step_count=25, deadline=None
)
