"""Clusters that administrators change while they work and while other things go wrong."""

import asyncio

from sim.changes import UNDO_WITHIN_S, with_changes
from sim.plan import Plan
from sim.simulation import Simulation


class ChangingSimulation(Simulation):
    """A run with changes among its faults."""

    def __init__(self, plan: Plan) -> None:
        super().__init__(with_changes(plan))
        self.nemesis.admin = self._client("changes-admin")

    async def _converge(self) -> None:
        changes = self.nemesis.changes
        if changes:
            await asyncio.wait(changes, timeout=2 * UNDO_WITHIN_S)
        await super()._converge()
