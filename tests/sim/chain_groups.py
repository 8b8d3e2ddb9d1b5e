"""Groups whose members consume, transform and produce, each in its own transactions."""

import asyncio
from dataclasses import replace

from barnabas.base.ids import TopicPartition
from sim.audit import Auditor
from sim.chains import OUTPUT, Chain, check_output
from sim.clients import Client
from sim.groups import GroupSimulation, Slot
from sim.members import GroupPlan, Work
from sim.plan import Plan, TopicPlan
from sim.transactional_client import TIMEOUT_MS
from sim.transactions import transaction_properties


class ChainSimulation(GroupSimulation):
    """One group, of either protocol."""

    def adapt(self, plan: Plan) -> Plan:
        plan = super().adapt(plan)
        count = max(topic.partitions for topic in plan.topics)
        first = plan.topics[0]
        return replace(
            plan,
            properties={**plan.properties, **transaction_properties(plan)},
            topics=[
                *plan.topics,
                TopicPlan(OUTPUT, count, first.replication_factor, first.configs),
            ],
        )

    def draw_groups(self) -> list[GroupPlan]:
        """The output is not read by it, nor written to by the producers."""
        self.outputs = [each for each in self.partitions if each.topic == OUTPUT]
        self.partitions = [each for each in self.partitions if each.topic != OUTPUT]
        protocol = "classic" if self.plan.seed % 2 else "consumer"
        return [self.draw_group("chain", protocol)]

    def work(self, client: Client, slot: Slot) -> Work:
        return Chain(client, slot.name)

    async def _converge(self) -> None:
        await super()._converge()
        # Abandoned transactions are aborted after their timeout.
        await asyncio.sleep(3 * TIMEOUT_MS / 1000 + 5)

    async def _audit(self) -> None:
        await super()._audit()
        client = self._client("chain-auditor")
        await self._in(client, self._check(client))

    async def _check(self, client: Client) -> None:
        committed = (await self._read_final(client))["chain"]
        auditor = Auditor(client)
        outputs: list[str] = []
        for partition in self.outputs:
            outputs += [value for _, value in await auditor.read(partition)]
        inputs: dict[TopicPartition, dict[int, str]] = {each: {} for each in self.partitions}
        for poll in self.history.polls:
            if poll.is_final:
                inputs[poll.topic_partition].update(poll.records)
        if self.plan.is_durable:
            check_output(client, inputs, committed, outputs)
