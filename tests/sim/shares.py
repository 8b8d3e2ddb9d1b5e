"""Share groups under faults: members acquire records, say what became of them, freeze and die.

Plain producers fill the topics; one or two share groups read them. In the end, with all repaired,
every group must be through with every partition by itself.
"""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from random import Random
from typing import Any

from barnabas.base.ids import TopicPartition
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from barnabas.protocol.messages.share_groups import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsRequestTopic,
)
from sim.audit import fetch_once
from sim.clients import Client
from sim.coordinated import Coordinated
from sim.groups import SESSION_MS, GroupSimulation, Running, Slot
from sim.members import GroupPlan, by_topic
from sim.plan import Plan
from sim.share_checkers import check_shares
from sim.share_history import ShareHistory, StartSeen
from sim.share_member import ShareMember

GROUP_RESOURCE = 32
KNOWN_EVERYWHERE_S = 3.0
"""Until all nodes know what was configured, while nothing has failed yet."""


class ShareSimulation(GroupSimulation):
    """See the module."""

    def __init__(self, plan: Plan) -> None:
        super().__init__(plan)
        properties = self.plan.properties
        self.shares = ShareHistory(
            int(properties["group.share.record.lock.duration.ms"]),
            int(properties["group.share.delivery.count.limit"]),
        )

    def adapt(self, plan: Plan) -> Plan:
        plan = super().adapt(plan)
        return replace(plan, properties={**plan.properties, **share_properties(plan)})

    def draw_groups(self) -> list[GroupPlan]:
        """One group, or two."""
        count = self.group_random.choice((1, 1, 2))
        return [self.draw_group(f"share{index}", "share") for index in range(count)]

    def new_member(self, client: Client, slot: Slot) -> Running:
        return ShareMember(client, slot.group, self.shares, lambda: self._is_settling)

    @contextmanager
    def listening(self, *, verbose: bool) -> Iterator[None]:
        with super().listening(verbose=verbose), self.shares.noting(self.loop):
            yield

    # The course of a run

    async def _create_topics(self) -> bool:
        if not await super()._create_topics():
            return False
        admin = self._client("share-admin")
        await self._in(admin, self._begin_at_the_start(admin))
        await asyncio.sleep(KNOWN_EVERYWHERE_S)
        return True

    async def _begin_at_the_start(self, client: Client) -> None:
        request = IncrementalAlterConfigsRequest(
            resources=[
                AlterConfigsResource(
                    resource_type=GROUP_RESOURCE,
                    resource_name=group.group_id,
                    configs=[AlterableConfig(name="share.auto.offset.reset", value="earliest")],
                )
                for group in self.groups
            ]
        )
        while True:
            try:
                response = await client.ask_any(request)
                if not any(entry.error_code for entry in response.responses):
                    return
            except OSError:
                client.mistrust_metadata()
            await client.back_off()

    def _start_clients(self) -> list["asyncio.Task[None]"]:
        working = super()._start_clients()
        for group in self.groups:
            client = self._client(f"{group.group_id}-watcher")
            watcher = StartWatcher(client, group, self.shares)
            working.append(client.start(watcher.run))
        return working

    async def _behind(self, client: Client, group: GroupPlan) -> str:
        """What a group is not through with, or why that is not known; empty for nothing."""
        lags = await StartWatcher(client, group, self.shares).look()
        if lags is None:
            return "its offsets cannot be read"
        for partition, (start_offset, lag) in lags.items():
            if lag == 0:
                continue
            answer = await fetch_once(client, partition, 0, isolation_level=0)
            if answer is None:
                client.mistrust_metadata()
                return f"{partition} cannot be read"
            if answer.high_watermark > 0:
                return f"{partition} starts at {start_offset}, {lag} are to be done"
        return ""

    async def _drain(self, client: Client) -> None:
        before = len(self.history.observed)
        await super()._drain(client)
        self.shares.is_drained = not any(
            anomaly.name == "stuck-group" for anomaly in self.history.observed[before:]
        )

    async def _audit(self) -> None:
        await super()._audit()
        final: dict[TopicPartition, dict[int, str]] = {}
        for poll in self.history.polls:
            if poll.is_final and poll.topic_partition in self.history.final_ends:
                final.setdefault(poll.topic_partition, {}).update(poll.records)
        self.history.observed += check_shares(
            self.shares,
            final,
            [group.group_id for group in self.groups],
            is_durable=self.plan.is_durable,
        )

    async def _read_final(self, client: Client) -> dict[str, dict[TopicPartition, int]]:
        """Share groups commit no offsets."""
        return {}

    @property
    def operation_count(self) -> int:
        return super().operation_count + len(self.shares.holds)


class StartWatcher(Coordinated):
    """Asks now and then where a group starts."""

    def __init__(self, client: Client, group: GroupPlan, shares: ShareHistory) -> None:
        super().__init__(client, group.group_id)
        self._group = group
        self._shares = shares

    async def run(self) -> None:
        """Ask until the client is stopping."""
        while not self.client.is_stopping:
            await self.look()
            await self.client.pause(0.2, 1.0)

    async def look(self) -> dict[TopicPartition, tuple[int, int]] | None:
        """(start offset, lag) by partition; None where not all is known."""
        invoked_s = self.client.loop.time()
        request = DescribeShareGroupOffsetsRequest(
            groups=[
                DescribeShareGroupOffsetsRequestGroup(
                    group_id=self._group.group_id,
                    topics=[
                        DescribeShareGroupOffsetsRequestTopic(topic_name=topic, partitions=indexes)
                        for topic, indexes in by_topic(self._group.partitions).items()
                    ],
                )
            ]
        )
        response: Any = await self.ask(request)
        if response is None:
            return None
        (group,) = response.groups
        if await self.is_elsewhere(ErrorCode.of(group.error_code)) or group.error_code:
            return None
        found = {
            TopicPartition(topic.topic_name, entry.partition_index): entry
            for topic in group.topics
            for entry in topic.partitions
        }
        now_s = self.client.loop.time()
        for partition, entry in found.items():
            if not entry.error_code and entry.start_offset >= 0:
                self._shares.starts.append(
                    StartSeen(self._group.group_id, partition, entry.start_offset, invoked_s, now_s)
                )
        if any(entry.error_code for entry in found.values()):
            return None
        return {partition: (entry.start_offset, entry.lag) for partition, entry in found.items()}


def share_properties(plan: Plan) -> dict[str, str]:
    """Return the properties of nodes for share groups in a run."""
    random = Random(f"{plan.seed}/share properties")
    factor = min(3, len(plan.brokers))
    return {
        "share.coordinator.state.topic.num.partitions": "3",
        "share.coordinator.state.topic.replication.factor": str(factor),
        "share.coordinator.state.topic.min.isr": str((factor + 1) // 2),
        "share.coordinator.snapshot.update.records.per.snapshot": str(random.choice((2, 20, 500))),
        "share.coordinator.state.topic.prune.interval.ms": str(random.choice((3_000, 300_000))),
        "share.coordinator.cold.partition.snapshot.interval.ms": str(
            random.choice((2_000, 300_000))
        ),
        "group.share.min.record.lock.duration.ms": "1000",
        "group.share.record.lock.duration.ms": str(random.choice((1_000, 3_000, 6_000))),
        "group.share.delivery.count.limit": str(random.choice((2, 3, 5))),
        "group.share.partition.max.record.locks": str(random.choice((100, 2_000))),
        "group.share.min.session.timeout.ms": "1000",
        "group.share.session.timeout.ms": str(SESSION_MS),
        "group.share.min.heartbeat.interval.ms": "500",
        "group.share.heartbeat.interval.ms": "500",
        "group.share.assignment.interval.ms": str(random.choice((0, 1_000))),
        "group.share.initialize.retry.interval.ms": str(random.choice((1_000, 30_000))),
    }
