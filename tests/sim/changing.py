"""Clusters that administrators change while they work and while other things go wrong."""

import asyncio

from sim.changes import UNDO_WITHIN_S, reassign, with_changes
from sim.plan import Plan, TopicPlan
from sim.simulation import Simulation

LOOK_EVERY_S = 1.0


class ChangingSimulation(Simulation):
    """A run with changes among its faults."""

    def __init__(self, plan: Plan) -> None:
        super().__init__(with_changes(plan))
        self.nemesis.admin = self._client("changes-admin")

    async def _converge(self) -> None:
        changes = self.nemesis.changes
        if changes:
            await asyncio.wait(changes, timeout=2 * UNDO_WITHIN_S)
        moving = self.loop.create_task(self._replace_the_retired())
        await super()._converge()
        moving.cancel()

    async def _replace_the_retired(self) -> None:
        """Give other replicas to what changes left on too few brokers, one of which has retired.

        A partition with fewer replicas in sync than `min.insync.replicas` commits nothing: what
        its leader has above the high watermark is there, and is read when the partition has other
        replicas. In a real cluster, too, somebody must see to that.
        """
        while self.watch.distrusted:
            for topic in self.plan.topics:
                for index in range(topic.partitions):
                    replicas = self._replacement(topic, index)
                    if replicas:
                        await reassign(self.nemesis, topic.name, index, replicas)
            await asyncio.sleep(LOOK_EVERY_S)

    def _replacement(self, topic: TopicPlan, index: int) -> list[int]:
        """What replicas a partition is to have instead; none if those that it has will do."""
        brokers = {
            machine.node_id: machine.node
            for machine in self.machines
            if machine.is_wanted and "broker" in machine.roles
        }
        node = next((each for each in brokers.values() if each is not None), None)
        metadata = getattr(node, "metadata", None)
        if metadata is None:
            return []
        state = metadata.image.topics.partition(topic.name, index)
        if state is None:
            return []
        staying = [each for each in state.replicas if each not in state.removing]
        needed = min(int(topic.configs["min.insync.replicas"]), len(staying))
        if sum(each in brokers for each in staying) >= needed:
            return []
        return list(brokers)[: topic.replication_factor]
