"""The assignors: balanced, sticky, and `range` co-partitioned; random groups and tables."""

import random
from collections import Counter

import pytest

from barnabas.node.coordinator.group.consumer.assignors import (
    ASSIGNORS,
    Assignment,
    GroupSpec,
    MemberSpec,
)
from support.consumer_world import topic_id

A, B, C = topic_id("a"), topic_id("b"), topic_id("c")


def spec(counts, members, targets=None, instances=None) -> GroupSpec:
    return GroupSpec(
        {
            name: MemberSpec(
                frozenset(topics), (targets or {}).get(name, {}), (instances or {}).get(name)
            )
            for name, topics in members.items()
        },
        counts,
    )


def loads(assignment: Assignment) -> dict[str, int]:
    return {name: sum(map(len, topics.values())) for name, topics in assignment.items()}


def partitions(assignment: Assignment) -> Counter:
    return Counter(
        (topic, number)
        for topics in assignment.values()
        for topic, numbers in topics.items()
        for number in numbers
    )


def test_uniform_alike():
    found = ASSIGNORS["uniform"](spec({A: 3, B: 4}, {"1": [A, B], "2": [A, B], "3": [A, B]}))
    assert sorted(loads(found).values()) == [2, 2, 3]
    assert max(partitions(found).values()) == 1
    assert len(partitions(found)) == 7


def test_uniform_leaves_the_extra_partition_where_it_is():
    targets = {"1": {A: (0,)}, "2": {A: (1, 2)}}
    found = ASSIGNORS["uniform"](spec({A: 3}, {"1": [A], "2": [A]}, targets))
    assert found == targets


def test_uniform_moves_no_more_than_it_must():
    targets = {"1": {A: (0, 1, 2)}, "2": {A: (3, 4, 5)}}
    found = ASSIGNORS["uniform"](spec({A: 6}, {"1": [A], "2": [A], "3": [A]}, targets))
    assert set(found["1"][A]) < {0, 1, 2}
    assert set(found["2"][A]) < {3, 4, 5}
    assert loads(found) == {"1": 2, "2": 2, "3": 2}


def test_uniform_drops_topics_and_partitions_that_are_gone():
    targets = {"1": {A: (0, 1), B: (0, 1)}}
    found = ASSIGNORS["uniform"](spec({A: 1}, {"1": [A]}, targets))
    assert found == {"1": {A: (0,)}}


def test_uniform_unlike():
    found = ASSIGNORS["uniform"](spec({A: 4, B: 2}, {"1": [A, B], "2": [A], "3": [B]}))
    assert len(partitions(found)) == 6
    assert loads(found) == {"1": 2, "2": 2, "3": 2}
    assert set(found["3"]) <= {B}


def test_range_is_copartitioned():
    found = ASSIGNORS["range"](spec({A: 3, B: 3}, {"1": [A, B], "2": [A, B]}))
    assert found == {"1": {A: (0, 1), B: (0, 1)}, "2": {A: (2,), B: (2,)}}


def test_range_puts_static_members_first():
    instances = {"z": "i1", "y": "i2"}
    found = ASSIGNORS["range"](spec({A: 3}, {"a": [A], "y": [A], "z": [A]}, None, instances))
    assert found == {"z": {A: (0,)}, "y": {A: (1,)}, "a": {A: (2,)}}


@pytest.mark.parametrize("name", ASSIGNORS)
@pytest.mark.parametrize("seed", range(60))
def test_random_groups(name, seed):
    """Complete, never twice, to subscribers only; balanced; `uniform` is stable and sticky."""
    source = random.Random(seed)
    topics = {A: source.randint(0, 9), B: source.randint(1, 9), C: source.randint(1, 20)}
    is_alike = source.random() < 0.5
    members = {
        str(n): list(topics)
        if is_alike
        else source.sample(list(topics), source.randint(1, len(topics)))
        for n in range(source.randint(1, 9))
    }
    targets: Assignment = {}
    for _ in range(3):
        subscribed = {topic for wanted in members.values() for topic in wanted}
        counts = {topic: count for topic, count in topics.items() if topic in subscribed}
        found = ASSIGNORS[name](spec(counts, members, targets))
        assert found.keys() == members.keys()
        everything = {(t, n) for t, count in counts.items() for n in range(count)}
        assert partitions(found) == dict.fromkeys(everything, 1)
        assert all(set(found[m]) <= set(wanted) for m, wanted in members.items())
        if is_alike and name == "uniform":
            assert max(loads(found).values()) - min(loads(found).values()) <= 1
        if name == "uniform":
            again = ASSIGNORS[name](spec(counts, members, found))
            assert again == found, "what is balanced stays"
            for topic in counts:
                takers = [m for m, wanted in members.items() if topic in wanted]
                for giver in takers:
                    if topic in found[giver]:
                        lightest = min(loads(found)[m] for m in takers)
                        assert loads(found)[giver] - lightest <= 1 or not is_alike
        targets = found
        if len(members) > 1 and source.random() < 0.5:
            del members[source.choice(list(members))]
        else:
            members[f"n{source.randint(0, 999)}"] = list(topics)
