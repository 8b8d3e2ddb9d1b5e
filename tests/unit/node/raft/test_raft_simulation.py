"""The quorum's machine under faults drawn from seeds, and whether its defects would be found."""

from collections.abc import Callable

import pytest
from machine_chaos import Chaos
from machine_world import RuleBrokenError, World
from raft_defects import (
    DEFECTS,
    Defect,
    Upgrading,
    five,
    growing,
    ragged,
    restless,
    three,
    upgrading,
    upgrading_five,
)

from barnabas.node.raft.core.following import QuorumError
from barnabas.node.raft.core.state import TransitionError

DURATION_MS = 20_000
SEEDS = 6
SOAK_SEEDS = 500


def static(seed: int) -> Chaos:
    return Chaos(World(seed, 3, drop=0.05, kraft_version=0))


def static_five(seed: int) -> Chaos:
    return Chaos(World(seed, 5, drop=0.02, kraft_version=0), snapshots=True)


WORLDS = [three, five, static, static_five, growing, restless, ragged, upgrading, upgrading_five]


@pytest.mark.parametrize(
    "seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(2, SEEDS))]
)
@pytest.mark.parametrize("world", WORLDS, ids=lambda world: world.__name__)
def test_the_rules_of_raft_hold(world: Callable[[int], Chaos], seed: int) -> None:
    chaos = world(seed)
    chaos.run(DURATION_MS)
    assert chaos.world.committed


def test_a_raised_kraft_version_is_lost_with_its_leader_in_some_runs() -> None:
    """Otherwise nobody would know whether what is undone can be done again."""

    def raised(seed: int) -> int:
        chaos: Upgrading = upgrading(seed)
        chaos.run(DURATION_MS)
        return chaos.raised

    counts = [raised(seed) for seed in range(SEEDS)]
    assert min(counts) >= 1
    assert max(counts) > 1


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("world", WORLDS, ids=lambda world: world.__name__)
def test_the_rules_of_raft_hold_for_long(world: Callable[[int], Chaos]) -> None:
    for seed in range(SEEDS, SEEDS + SOAK_SEEDS):
        world(seed).run(DURATION_MS)


@pytest.mark.parametrize("defect", DEFECTS, ids=lambda defect: defect.name)
def test_a_planted_defect_is_found(defect: Defect, monkeypatch: pytest.MonkeyPatch) -> None:
    defect.plant(monkeypatch)
    for seed in defect.seeds:
        try:
            defect.world(seed).run(DURATION_MS)
        except (RuleBrokenError, QuorumError, TransitionError, AssertionError):
            return
    pytest.fail(f"{defect.name}: not found by {defect.seeds}")
