"""Plans for clusters that one can draw."""

from __future__ import annotations

import pytest

from barnabas.cli.balance.model import (
    Broker,
    Load,
    Move,
    Partition,
    PlanError,
    Standing,
    loads,
    moved_bytes,
)
from barnabas.cli.balance.planner import Layout, plan_drain, plan_rebalance, standing_of

LEAVING, PINNED = Standing.LEAVING, Standing.PINNED


def brokers(*ids: int, **racks: str) -> list[Broker]:
    """Living brokers; `n3="b"` names the rack of broker 3."""
    return [Broker(number, racks.get(f"n{number}")) for number in ids]


def topic(name: str, *replicas: tuple[int, ...], size_bytes: int = 10) -> list[Partition]:
    return [Partition(name, index, placed, size_bytes) for index, placed in enumerate(replicas)]


def placed(partitions: list[Partition], moves: list[Move]) -> dict[str, tuple[int, ...]]:
    """Return the replicas of each partition after `moves`."""
    after = {str(partition): partition.replicas for partition in partitions}
    return after | {str(move): move.after for move in moves}


def replica_counts(
    nodes: list[Broker], partitions: list[Partition], moves: list[Move]
) -> list[int]:
    return [load.replicas for load in loads(nodes, partitions, moves)]


def leader_counts(nodes: list[Broker], partitions: list[Partition], moves: list[Move]) -> list[int]:
    return [load.leaders for load in loads(nodes, partitions, moves)]


def test_what_is_even_stays() -> None:
    partitions = topic("t", (1, 2), (2, 3), (3, 1))
    assert plan_rebalance(brokers(1, 2, 3), partitions) == []


def test_a_new_node_takes_its_share_and_no_more() -> None:
    partitions = topic("t", (1, 2), (2, 3), (3, 1), (1, 3), (2, 1), (3, 2))
    nodes = brokers(1, 2, 3, 4)
    moves = plan_rebalance(nodes, partitions)
    assert replica_counts(nodes, partitions, moves) == [3, 3, 3, 3]
    assert sum(len(move.adding) for move in moves) == 3
    assert {broker for move in moves for broker in move.adding} == {4}
    assert set(leader_counts(nodes, partitions, moves)) == {1, 2}


def test_small_partitions_move_rather_than_large_ones() -> None:
    partitions = [Partition(f"t{size}", 0, (1,), size) for size in (500, 1, 300, 2)]
    moves = plan_rebalance(brokers(1, 2), partitions)
    assert sorted(str(move) for move in moves) == ["t1-0", "t2-0"]
    assert moved_bytes(moves) == 3


def test_a_topic_on_one_node_is_spread_before_one_that_is_spread() -> None:
    heavy = topic("heavy", (1,), (1,), (1,), (1,), size_bytes=100)
    spread = topic("spread", (1,), (2,), size_bytes=1)
    moves = plan_rebalance(brokers(1, 2), heavy + spread)
    assert {move.topic for move in moves} == {"heavy"}
    assert len(moves) == 2


def test_leaders_are_evened_without_moving_data() -> None:
    partitions = topic("t", (1, 2), (1, 2), (1, 2), (1, 2))
    nodes = brokers(1, 2)
    moves = plan_rebalance(nodes, partitions)
    assert moved_bytes(moves) == 0
    assert all(move.adding == move.removing == () for move in moves)
    assert leader_counts(nodes, partitions, moves) == [2, 2]


def test_leaders_are_evened_through_a_third_node() -> None:
    """Nodes 1 and 3 share no partition: leadership has to pass through 2."""
    partitions = topic("t", (1, 2), (1, 2), (1, 2), (2, 3), (2, 3), (3, 2))
    nodes = brokers(1, 2, 3)
    moves = plan_rebalance(nodes, partitions)
    assert leader_counts(nodes, partitions, moves) == [2, 2, 2]


def test_a_node_that_is_down_keeps_what_it_has_and_gets_nothing() -> None:
    partitions = topic("t", (3, 1), (1, 3), (1, 2), (1, 2))
    nodes = [*brokers(1, 2), Broker(3, None, PINNED), *brokers(4)]
    moves = plan_rebalance(nodes, partitions)
    after = placed(partitions, moves)
    assert [name for name, replicas in after.items() if 3 in replicas] == ["t-0", "t-1"]
    assert max(replica_counts(brokers(1, 2, 4), partitions, moves)) == 2


def test_racks_are_repaired() -> None:
    nodes = brokers(1, 2, 3, 4, n1="a", n2="a", n3="b", n4="b")
    partitions = topic("t", (1, 2), (3, 4), (1, 3), (2, 4))
    moves = plan_rebalance(nodes, partitions)
    for replicas in placed(partitions, moves).values():
        assert len({"a" if broker < 3 else "b" for broker in replicas}) == 2
    assert sum(len(move.adding) for move in moves) == 2
    assert replica_counts(nodes, partitions, moves) == [2, 2, 2, 2]


def test_racks_count_more_than_evenness() -> None:
    """One node alone in its rack holds a replica of everything."""
    nodes = brokers(1, 2, 3, n1="a", n2="b", n3="b")
    partitions = topic("t", (1, 2), (1, 3), (1, 2), (1, 3))
    moves = plan_rebalance(nodes, partitions)
    assert replica_counts(nodes, partitions, moves) == [4, 2, 2]
    assert leader_counts(nodes, partitions, moves) == [2, 1, 1]


def test_racks_are_no_matter_where_a_node_has_none() -> None:
    nodes = brokers(1, 2, 3, n1="a", n2="a")
    partitions = topic("t", (1, 2), (1, 2), (1, 2))
    moves = plan_rebalance(nodes, partitions)
    assert replica_counts(nodes, partitions, moves) == [2, 2, 2]


def test_draining_moves_only_what_has_to() -> None:
    partitions = topic("t", (1, 2), (2, 3), (3, 1)) + topic("u", (1, 2), (1, 2))
    nodes = [*brokers(1, 2), Broker(3, None, LEAVING), *brokers(4)]
    moves = plan_drain(nodes, partitions)
    assert sorted(str(move) for move in moves) == ["t-1", "t-2"]
    assert all(move.removing == (3,) for move in moves)
    assert {move.adding for move in moves} == {(4,)}


def test_draining_the_last_node_for_a_replica_is_refused() -> None:
    partitions = topic("t", (1, 2, 3), (2, 3, 1)) + topic("u", *[(1, 2, 3)] * 4)
    nodes = [*brokers(1, 2), Broker(3, None, LEAVING)]
    with pytest.raises(PlanError, match=r"t-0, t-1, u-0 and 3 more.*add a broker first"):
        plan_drain(nodes, partitions)
    with pytest.raises(PlanError, match="no broker is left"):
        plan_rebalance(nodes, partitions)


def test_a_lost_node_can_be_drained() -> None:
    """Its replicas are rebuilt elsewhere, although it is down."""
    partitions = topic("t", (3, 1), (1, 3))
    moves = plan_drain([*brokers(1, 2), Broker(3, None, LEAVING)], partitions)
    assert placed(partitions, moves) == {"t-0": (2, 1), "t-1": (1, 2)}


def test_a_drained_node_takes_leaders_along_evenly() -> None:
    partitions = topic("t", *[(1, 2)] * 6, *[(2, 1)] * 6)
    nodes = [Broker(1, None, LEAVING), *brokers(2, 3, 4)]
    moves = plan_drain(nodes, partitions)
    assert leader_counts(brokers(2, 3, 4), partitions, moves) == [4, 4, 4]
    assert replica_counts(brokers(2, 3, 4), partitions, moves) == [12, 6, 6]


def test_nothing_to_plan() -> None:
    assert plan_rebalance([], []) == []
    assert plan_rebalance(brokers(1), topic("t", (1,))) == []
    assert plan_rebalance(brokers(1, 2), topic("t", ())) == []


def test_moves_tell_what_they_do() -> None:
    move = Move("t", 3, (1, 2), (2, 4), 100)
    assert (move.adding, move.removing, move.moved_bytes, str(move)) == ((4,), (1,), 100, "t-3")
    assert loads(brokers(1, 2, 4), [Partition("t", 3, (1, 2), 100)], [move]) == [
        Load(1, 0, 0, 0),
        Load(2, 1, 1, 100),
        Load(4, 1, 0, 100),
    ]


@pytest.mark.parametrize(
    ("is_alive", "leaving", "expected"),
    [
        (True, {2}, Standing.TARGET),
        (False, {2}, Standing.PINNED),
        (True, {1}, Standing.LEAVING),
        (False, {1}, Standing.LEAVING),
    ],
)
def test_standings(is_alive: bool, leaving: set[int], expected: Standing) -> None:
    assert standing_of(1, is_alive=is_alive, leaving=leaving) is expected


def test_the_work_for_replicas_grows_with_their_number_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls = 0
    compare = Layout.preference

    def counted(self: Layout, number: int, old: int, new: int) -> tuple[int, int, int]:
        nonlocal calls
        calls += 1
        return compare(self, number, old, new)

    monkeypatch.setattr(Layout, "preference", counted)
    work = {}
    for count in (600, 2400):
        partitions = topic("t", *[(1 + at % 3, 1 + (at + 1) % 3) for at in range(count)])
        nodes = brokers(1, 2, 3, 4)
        calls = 0
        moves = plan_rebalance(nodes, partitions)
        work[count] = calls
        assert replica_counts(nodes, partitions, moves) == [count // 2] * 4
        assert sum(len(move.adding) for move in moves) == count // 2
    assert work[2400] < 6 * work[600]
