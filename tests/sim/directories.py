"""Clusters whose replicas move between log directories while other things go wrong.

When all is repaired every move must come to its end by itself, and the controller must know of each
replica in which directory it lies.
"""

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from random import Random
from typing import Any

from barnabas.node.replication.throttle import UNLIMITED
from sim.moves import MOVE_REPLICA, limit_moves
from sim.plan import Fault, Plan
from sim.simulation import Simulation

SETTLED_WITHIN_S = 60.0
LOOK_EVERY_S = 0.2


def with_moves(plan: Plan) -> Plan:
    """The plan, with several directories for each node, and moves among its faults."""
    random = Random(f"{plan.seed}/directories")
    count = random.choice((2, 2, 3))
    properties = {
        **plan.properties,
        "log.dirs": ",".join(f"/data/{index}" for index in range(count)),
    }
    faults = [
        Fault(
            at_s=random.uniform(0.5, plan.duration_s * 0.95),
            kind=MOVE_REPLICA,
            lasts_s=random.choice((0.01, 0.05, 0.5, 3.0)) * random.uniform(0.5, 1.5),
        )
        for _ in range(random.randint(5, 10 + 2 * int(plan.duration_s)))
    ]
    return replace(
        plan,
        properties=properties,
        faults=sorted([*plan.faults, *faults], key=lambda each: each.at_s),
    )


class DirectoriesSimulation(Simulation):
    """A run with moves among its faults."""

    def __init__(self, plan: Plan) -> None:
        super().__init__(with_moves(plan))

    async def _converge(self) -> None:
        await super()._converge()
        deadline_s = self.loop.time() + SETTLED_WITHIN_S
        while left := list(self._unsettled()):
            for machine in self.machines:
                limit_moves(machine, UNLIMITED)
            if self.loop.time() >= deadline_s:
                self.history.saw("unsettled-directories", "; ".join(left[:5]))
                return
            await asyncio.sleep(LOOK_EVERY_S)

    def _unsettled(self) -> Iterator[str]:
        for machine in self.machines:
            node: Any = machine.node
            if node is None or not machine.is_serving or "broker" not in machine.roles:
                continue
            if len(node.broker.replicas.moves) or len(node.broker.logs.futures):
                yield f"{machine} still moves replicas"
            for partition in node.broker.replicas:
                state = node.metadata.image.topics.partition(*partition.topic_partition)
                directory_id = node.broker.logs.directory_ids[partition.log.log_dir]
                if state is not None and state.directory_of(machine.node_id) != directory_id:
                    yield (
                        f"{partition.topic_partition} is in {partition.log.log_dir} of {machine}, "
                        "which the controller does not know"
                    )
