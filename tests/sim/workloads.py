"""The workloads of a run's clients by name; `run` runs a seed with one of them."""

from collections.abc import Callable

from sim.acls import AclSimulation
from sim.chain_groups import ChainSimulation
from sim.changing import ChangingSimulation
from sim.directories import DirectoriesSimulation
from sim.exchange import ExchangeSimulation
from sim.groups import GroupSimulation
from sim.logins import LoginSimulation, TokenLoginSimulation
from sim.plan import Plan, draw_plan
from sim.quotas import QuotaSimulation
from sim.shares import ShareSimulation
from sim.simulation import Outcome, Simulation, run_simulation
from sim.transactions import TransactionalSimulation

WORKLOADS: dict[str, Callable[[Plan], Simulation]] = {
    "": Simulation,
    "transactions": TransactionalSimulation,
    "exchange": ExchangeSimulation,
    "groups": GroupSimulation,
    "chains": ChainSimulation,
    "changes": ChangingSimulation,
    "directories": DirectoriesSimulation,
    "shares": ShareSimulation,
    "logins": LoginSimulation,
    "tokens": TokenLoginSimulation,
    "quotas": QuotaSimulation,
    "acls": AclSimulation,
}
"""The default, "", is plain producers and consumers."""


def run(seed: int, topology: str = "", workload: str = "", *, verbose: bool = False) -> Outcome:
    """Run one seed to its end; `topology` as in `draw_plan`."""
    return run_plan(draw_plan(seed, topology), workload, verbose=verbose)


def run_plan(plan: Plan, workload: str = "", *, verbose: bool = False) -> Outcome:
    """Run one plan to its end."""
    return run_simulation(WORKLOADS[workload](plan), verbose=verbose)
