"""Simulated clusters whose clients work in transactions, in groups, in both, or share."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from barnabas.base.ids import TopicPartition
from sim.campaign import run_campaign
from sim.changes import reassign
from sim.changing import ChangingSimulation
from sim.exchange import ExchangeSimulation
from sim.plan import draw_plan
from sim.sim_history import Outcome
from sim.simulation import run_simulation
from sim.transactions import TransactionalSimulation
from sim.workloads import WORKLOADS
from support.effort import EFFORT, examples, first_of

if TYPE_CHECKING:
    import asyncio

SEEDS = {
    "transactions": first_of(
        [
            7,  # a batch of the next transaction came before the marker of the one before
            1,
            13,
            20,
        ],
        1,
    ),
    "exchange": range(examples(1)),
    "groups": range(examples(1)),
    "chains": range(examples(1)),
    "changes": range(examples(1)),
    "directories": range(examples(1)),
    "shares": range(1, 1 + examples(1)),
    "logins": [1],
    "tokens": [1],
    "quotas": [7],
    "acls": [1],
}


REGRESSIONS = {
    (9, "three", "transactions"): "an end was confirmed to a client whose id another had taken",
    (18, "", "shares"): "a silent member stayed, as the log took no records when its time was up",
    (4_242_765_598, "", "shares"): "an end of log at 6 was taken for the error with that number",
    (4_242_764_566, "", "shares"): "a node that was cut off knew of no initialisation",
    (4_242_764_881, "", "shares"): "a late initialisation took back what had been acknowledged",
    (4_242_765_105, "", "shares"): "a member let go of a hold by what it said of the one before",
    (7_700_006, "", "shares"): "a coordinator whose directory had just failed raised",
    (7_500_058, "", "changes"): "a new disk was taken for one that is offline",
    (622_263_389, "", "transactions"): "a batch whose offset had lost a bit hid all behind it",
}
"""Seeds that found something once, and what."""


@pytest.mark.timeout(300 * EFFORT)
@pytest.mark.parametrize("workload", SEEDS)
def test_seeds_come_to_a_good_end(workload: str) -> None:
    campaign = run_campaign((seed, "three", workload) for seed in SEEDS[workload])
    assert not campaign.bad, "\n".join(verdict.text for verdict in campaign.bad)
    assert campaign.operations > 0


@pytest.mark.timeout(600)
def test_what_was_wrong_once_is_good() -> None:
    campaign = run_campaign(first_of(REGRESSIONS, 1))
    assert not campaign.bad, "\n".join(verdict.text for verdict in campaign.bad)


def test_transactions_end_both_ways() -> None:
    simulation = TransactionalSimulation(draw_plan(3, "three"))
    assert run_simulation(simulation).is_good
    done = [one for one in simulation.transactions if one.outcome is Outcome.OK]
    assert any(one.is_commit for one in done)
    assert any(not one.is_commit for one in done)


def test_transactions_see_something_of_one_another() -> None:
    simulation = ExchangeSimulation(draw_plan(3, "three"))
    assert run_simulation(simulation).is_good
    there = {one.name for one in simulation.transactions if one.is_there}
    seen = [one.seen & there for one in simulation.transactions if one.is_there]
    assert len([others for others in seen if others]) > 10


class _OneOfTwoRetires(ChangingSimulation):
    """The leader of a partition retires that has only one other replica.

    It does so before the other one hears that the last records are committed.
    """

    async def _finish(self, working: list[asyncio.Task[None]]) -> None:
        await reassign(self.nemesis, "topic0", 0, [1, 2])
        await super()._finish(working)
        self.watch.distrusted.update(
            machine.name for machine in self.machines if machine.leads(TopicPartition("topic0", 0))
        )


@pytest.mark.parametrize("seed", first_of([4, 8, 13, 24], 1))
def test_what_is_left_on_too_few_brokers_gets_others(seed: int) -> None:
    simulation = _OneOfTwoRetires(replace(draw_plan(seed, "three"), duration_s=2.0))
    simulation.plan.faults.clear()
    assert run_simulation(simulation).is_good
    (retired,) = simulation.watch.distrusted
    assert retired in ("node1", "node2")


def test_every_workload_is_named() -> None:
    assert set(SEEDS) == set(WORKLOADS) - {""}
