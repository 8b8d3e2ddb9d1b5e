"""Simulated clusters whose producers work in transactions."""

from __future__ import annotations

import pytest

from sim.plan import draw_plan
from sim.sim_history import Outcome
from sim.transactions import TransactionalSimulation

SEEDS = [
    ("three", 1),
    ("three", 7),
    ("three", 13),
    # A batch of the next transaction came before the marker of the one before.
    ("three", 20),
]


def simulate(seed: int, topology: str) -> TransactionalSimulation:
    simulation = TransactionalSimulation(draw_plan(seed, topology))
    with simulation.listening(verbose=False):
        simulation.loop.run_until_complete(simulation.main())
    simulation.is_over = True
    return simulation


@pytest.mark.parametrize(("topology", "seed"), SEEDS)
def test_transactions_are_whole(topology: str, seed: int) -> None:
    simulation = simulate(seed, topology)
    assert [str(anomaly) for anomaly in simulation.history.observed] == []
    done = [one for one in simulation.transactions if one.outcome is Outcome.OK]
    assert any(one.is_commit for one in done)
    assert any(not one.is_commit for one in done)
    simulation.loop.close()
