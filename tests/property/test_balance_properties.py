"""Properties of every balancing plan, for random clusters."""

from __future__ import annotations

from collections import Counter

from hypothesis import event, given, settings
from hypothesis import strategies as st

from barnabas.cli.balance.model import Broker, Move, Partition, PlanError, Standing, loads
from barnabas.cli.balance.planner import plan_drain, plan_rebalance

STANDINGS = st.sampled_from([Standing.TARGET] * 4 + [Standing.PINNED, Standing.LEAVING])


@st.composite
def clusters(
    draw: st.DrawFn, *, standings: st.SearchStrategy[Standing] = STANDINGS, racks: bool = True
) -> tuple[list[Broker], list[Partition]]:
    count = draw(st.integers(1, 7))
    names = st.sampled_from(["a", "b", "c"]) if racks and draw(st.booleans()) else st.none()
    brokers = [
        Broker(number, draw(names), draw(standings) if number else Standing.TARGET)
        for number in range(count)
    ]
    factor = draw(st.integers(1, min(3, count)))
    partitions = []
    for topic in range(draw(st.integers(0, 4))):
        for index in range(draw(st.integers(1, 8))):
            replicas = draw(st.permutations(range(count)))[:factor]
            size = draw(st.integers(0, 1000))
            partitions.append(Partition(f"t{topic}", index, tuple(replicas), size))
    return brokers, partitions


def after(partitions: list[Partition], moves: list[Move]) -> list[tuple[int, ...]]:
    moved = {(move.topic, move.index): move.after for move in moves}
    return [moved.get((item.topic, item.index), item.replicas) for item in partitions]


def check_sound(brokers: list[Broker], partitions: list[Partition], moves: list[Move]) -> None:
    """Check the rules that every plan must keep."""
    standing = {broker.id: broker.standing for broker in brokers}
    assert len({(move.topic, move.index) for move in moves}) == len(moves)
    for partition, placed in zip(partitions, after(partitions, moves), strict=True):
        assert len(set(placed)) == len(placed) == len(partition.replicas)
        assert all(standing[broker] is not Standing.LEAVING for broker in placed)
        for broker in set(placed) - set(partition.replicas):
            assert standing[broker] is Standing.TARGET
        for broker in set(partition.replicas) - set(placed):
            assert standing[broker] is not Standing.PINNED
    assert all(move.before != move.after for move in moves)


def targets(brokers: list[Broker]) -> list[Broker]:
    return [broker for broker in brokers if broker.standing is Standing.TARGET]


def shared_racks(brokers: list[Broker], placed: tuple[int, ...]) -> int:
    """Pairs of replicas in one rack."""
    racks = {broker.id: broker.rack for broker in brokers}
    counts = Counter(racks[broker] for broker in placed)
    return sum(count * (count - 1) // 2 for count in counts.values())


@settings(deadline=None)
@given(clusters())
def test_every_plan_is_sound(cluster: tuple[list[Broker], list[Partition]]) -> None:
    brokers, partitions = cluster
    for plan in (plan_rebalance, plan_drain):
        try:
            moves = plan(brokers, partitions)
        except PlanError:
            spare = len(targets(brokers)) + sum(
                broker.standing is Standing.PINNED for broker in brokers
            )
            event("refused")
            assert any(len(partition.replicas) > 0 for partition in partitions)
            assert spare < len(brokers), "refused though nobody leaves"
            continue
        event(f"{len(moves) > 0}")
        check_sound(brokers, partitions, moves)


@settings(deadline=None)
@given(clusters(standings=st.just(Standing.TARGET), racks=False))
def test_without_racks_replicas_are_even_and_moves_few(
    cluster: tuple[list[Broker], list[Partition]],
) -> None:
    brokers, partitions = cluster
    moves = plan_rebalance(brokers, partitions)
    counts = [load.replicas for load in loads(brokers, partitions, moves)]
    assert max(counts) - min(counts) <= 1
    # Each broker above its share must give the excess away, and nobody else anything.
    before = sorted((load.replicas for load in loads(brokers, partitions)), reverse=True)
    share, rest = divmod(sum(before), len(brokers))
    least = sum(max(0, count - share - (position < rest)) for position, count in enumerate(before))
    copies = sum(len(move.adding) for move in moves)
    event(f"copies beyond the least: {copies - least}")
    assert copies <= 2 * least


@settings(deadline=None)
@given(clusters(standings=st.sampled_from([Standing.TARGET] * 3 + [Standing.PINNED])))
def test_a_second_plan_has_nothing_left_to_do(
    cluster: tuple[list[Broker], list[Partition]],
) -> None:
    brokers, partitions = cluster
    moves = plan_rebalance(brokers, partitions)
    moved = [
        Partition(item.topic, item.index, placed, item.size_bytes)
        for item, placed in zip(partitions, after(partitions, moves), strict=True)
    ]
    assert plan_rebalance(brokers, moved) == []


@settings(deadline=None)
@given(clusters(standings=st.just(Standing.TARGET)))
def test_leaders_are_as_even_as_replicas_allow(
    cluster: tuple[list[Broker], list[Partition]],
) -> None:
    """No single hand-over would make them more even."""
    brokers, partitions = cluster
    moves = plan_rebalance(brokers, partitions)
    led = {load.broker: load.leaders for load in loads(brokers, partitions, moves)}
    for placed in after(partitions, moves):
        for other in placed[1:]:
            assert led[placed[0]] - led[other] < 2


@settings(deadline=None)
@given(clusters(standings=st.just(Standing.TARGET)))
def test_racks_never_get_worse_and_are_as_good_as_can_be(
    cluster: tuple[list[Broker], list[Partition]],
) -> None:
    brokers, partitions = cluster
    racks = Counter(broker.rack for broker in brokers)
    if None in racks or len(racks) < 2:
        return
    moves = plan_rebalance(brokers, partitions)
    for partition, placed in zip(partitions, after(partitions, moves), strict=True):
        filled: Counter[str | None] = Counter()
        for _ in placed:
            emptiest = min(
                (rack for rack in racks if filled[rack] < racks[rack]), key=filled.__getitem__
            )
            filled[emptiest] += 1
        best = sum(count * (count - 1) // 2 for count in filled.values())
        assert shared_racks(brokers, placed) == best
        assert best <= shared_racks(brokers, partition.replicas)


@settings(deadline=None)
@given(clusters())
def test_draining_moves_nothing_else(cluster: tuple[list[Broker], list[Partition]]) -> None:
    brokers, partitions = cluster
    leaving = {broker.id for broker in brokers if broker.standing is Standing.LEAVING}
    try:
        moves = plan_drain(brokers, partitions)
    except PlanError:
        return
    for move in moves:
        assert set(move.removing) == leaving & set(move.before)
    touched = sum(bool(leaving & set(partition.replicas)) for partition in partitions)
    assert len(moves) == touched
