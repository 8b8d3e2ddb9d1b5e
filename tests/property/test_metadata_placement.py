"""Placement of replicas: always possible where it can be, even, and spread over racks."""

import random
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from barnabas.base.ids import ZERO_UUID, Uuid
from barnabas.node.metadata.controller.decision import Failure
from barnabas.node.metadata.controller.placement import place_replicas
from barnabas.node.metadata.image import BrokerImage


def broker(broker_id: int, rack: str | None, fenced: bool) -> BrokerImage:
    return BrokerImage(
        id=broker_id,
        epoch=1,
        incarnation_id=ZERO_UUID,
        listeners={},
        rack=rack,
        fenced=fenced,
        in_controlled_shutdown=False,
        log_dirs=(Uuid(bytes([1] * 12) + broker_id.to_bytes(4, "big")),),
    )


brokers_strategy = st.lists(
    st.tuples(st.sampled_from([None, "r1", "r2", "r3", "r4"]), st.booleans()),
    min_size=1,
    max_size=12,
).map(lambda shapes: [broker(number, rack, fenced) for number, (rack, fenced) in enumerate(shapes)])


@given(
    brokers=brokers_strategy,
    partition_count=st.integers(1, 60),
    factor=st.integers(1, 13),
    seed=st.integers(0, 1000),
)
def test_every_placement_holds_the_rules(
    brokers: list[BrokerImage], partition_count: int, factor: int, seed: int
) -> None:
    placed = place_replicas(
        brokers,
        partition_count=partition_count,
        replication_factor=factor,
        random=random.Random(seed),
    )
    unfenced = {b.id for b in brokers if not b.fenced}
    if factor > len(brokers) or not unfenced:
        assert isinstance(placed, Failure)
        return
    assert not isinstance(placed, Failure)
    assert len(placed) == partition_count
    racks = {b.id: b.rack or "" for b in brokers}
    for replicas in placed:
        assert len(set(replicas)) == len(replicas) == factor
        assert replicas[0] in unfenced, "a fenced broker never comes first"
        spread = Counter(racks[replica] for replica in replicas)
        if factor <= len(set(racks.values())):
            assert max(spread.values()) == 1, "no two share a rack while there is another"
        else:
            assert len(spread) == len(set(racks.values())), "no rack is left out"


@given(
    broker_count=st.integers(1, 12),
    rounds=st.integers(1, 8),
    factor=st.integers(1, 5),
    seed=st.integers(0, 1000),
)
def test_load_is_even(broker_count: int, rounds: int, factor: int, seed: int) -> None:
    """Equal brokers lead equally often, and hold equally many replicas, after whole rounds."""
    factor = min(factor, broker_count)
    placed = place_replicas(
        [broker(number, None, fenced=False) for number in range(broker_count)],
        partition_count=broker_count * rounds,
        replication_factor=factor,
        random=random.Random(seed),
    )
    assert not isinstance(placed, Failure)
    leaders = Counter(replicas[0] for replicas in placed)
    held = Counter(replica for replicas in placed for replica in replicas)
    assert set(leaders.values()) == {rounds}
    assert set(held.values()) == {rounds * factor}


@given(seed=st.integers(0, 1000), per_rack=st.integers(1, 4), rounds=st.integers(1, 5))
def test_leaders_are_even_over_equal_racks(seed: int, per_rack: int, rounds: int) -> None:
    brokers = [broker(number, f"r{number % 3}", fenced=False) for number in range(3 * per_rack)]
    placed = place_replicas(
        brokers,
        partition_count=len(brokers) * rounds,
        replication_factor=3,
        random=random.Random(seed),
    )
    assert not isinstance(placed, Failure)
    leaders = Counter(f"r{replicas[0] % 3}" for replicas in placed)
    assert set(leaders.values()) == {per_rack * rounds}


@given(seed=st.integers(0, 1000))
def test_brokers_that_leave_or_are_full_get_nothing(seed: int) -> None:
    from dataclasses import replace

    leaving = replace(broker(0, None, fenced=False), in_controlled_shutdown=True)
    full = broker(1, None, fenced=False)
    full = replace(full, cordoned_log_dirs=full.log_dirs)
    brokers = [leaving, full, broker(2, None, fenced=False)]
    placed = place_replicas(
        brokers, partition_count=5, replication_factor=1, random=random.Random(seed)
    )
    assert placed == [[2]] * 5
