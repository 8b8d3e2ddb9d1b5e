"""Groups under faults: members come, go, freeze and die while nodes do.

Plain producers fill the topics; one group of each protocol reads them. Members commit what they
have read; the next owner of a partition continues from there. In the end, with all repaired, the
groups must reach the end of every partition by themselves.
"""

import asyncio
from dataclasses import replace
from random import Random
from typing import Protocol

from barnabas.base.ids import TopicPartition
from barnabas.protocol.messages.offsets import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from sim.audit import fetch_once
from sim.classic_member import ClassicMember
from sim.clients import Client
from sim.consumer_member import ConsumerMember
from sim.coordinated import GROUP_KEY
from sim.members import (
    FETCH_VERSION,
    CommitNowAndThen,
    GroupPlan,
    Work,
    by_topic,
    read_offsets,
)
from sim.plan import Plan
from sim.simulation import FINISH_WITHIN_S, Simulation
from sim.transactional_client import find_coordinator

DRAIN_WITHIN_S = 240.0
"""For the next commit that gets on: a chain over slow links takes seconds for each transaction."""
DRAIN_AT_MOST_S = 1200.0
"""Links and fetches that are both slow let a dozen batches a second through."""
LEAVE_WITHIN_S = 60.0
SESSION_MS = 5_000
MEMBERS = {"classic": ClassicMember, "consumer": ConsumerMember}


class Running(Protocol):
    """A member of any kind of group."""

    async def run(self) -> None:
        """Take part until its client is stopping."""


class Slot:
    """A place in a group for one member after another, each a separate process."""

    def __init__(self, simulation: "GroupSimulation", name: str, group: GroupPlan) -> None:
        self.name = name
        self.group = group
        self._simulation = simulation
        self._number = 0
        self._client: Client | None = None
        self._task: asyncio.Task[None] | None = None
        self._is_frozen = False
        self._is_closed = False
        self._again_s = 0.0

    def start(self) -> None:
        """Let a new member begin, unless one is there."""
        if self._client is not None or self._is_closed:
            return
        self._number += 1
        client = self._simulation.new_client(f"{self.name}.{self._number}")
        member = self._simulation.new_member(client, self)
        self._client = client
        self._task = client.start(member.run)
        self._task.add_done_callback(self._left)

    def _left(self, task: "asyncio.Task[None]") -> None:
        if self._task is task:
            self._client = self._task = None
            self._simulation.loop.call_later(self._again_s, self.start)
        if not task.cancelled() and task.exception() is not None:
            error = task.exception()
            assert error is not None
            self._simulation.member_failed(error)

    def kill(self, again_s: float) -> None:
        """End the member without a word; another one begins some time later."""
        client, self._client, self._task = self._client, None, None
        if client is not None:
            self._is_frozen = False
            client.kill()
            self._simulation.loop.call_later(again_s, self.start)

    def ask_to_leave(self, again_s: float) -> None:
        """Let the member finish its work and leave the group; start another one after `again_s`."""
        if self._client is not None:
            self._again_s = again_s
            self._client.is_stopping = True

    def close(self) -> None:
        """Let the member leave the group, without a successor."""
        self._is_closed = True
        self.ask_to_leave(0)

    def freeze(self) -> None:
        """Let the member stand still."""
        if self._client is not None and not self._is_frozen:
            self._is_frozen = True
            self._client.loop.stop_process(self._client.process)

    def thaw(self) -> None:
        """Let it go on."""
        if self._client is not None and self._is_frozen:
            self._is_frozen = False
            self._client.loop.continue_process(self._client.process)

    async def ended(self, within_s: float) -> bool:
        """Return whether the member ends in time."""
        if self._task is None:
            return True
        _, late = await asyncio.wait([self._task], timeout=within_s)
        return not late


class GroupSimulation(Simulation):
    """See the module."""

    def __init__(self, plan: Plan) -> None:
        super().__init__(self.adapt(plan))
        self.group_random = Random(f"{plan.seed}/groups")
        self.groups = self.draw_groups()
        self.slots = [
            Slot(self, f"{group.group_id}-member{index}", group)
            for group in self.groups
            for index in range(self.group_random.randint(2, 4))
        ]
        self._is_settling = False
        self._furthest: dict[str, int] = {}
        """By group: the sum of the offsets that were committed when it was looked at last."""
        self._failures: list[BaseException] = []

    def adapt(self, plan: Plan) -> Plan:
        """The plan, with what groups need: committed offsets must survive what data does."""
        return replace(plan, consumers=0, properties={**plan.properties, **group_properties(plan)})

    def draw_groups(self) -> list[GroupPlan]:
        """One group of each protocol."""
        return [self.draw_group(protocol, protocol) for protocol in MEMBERS]

    def draw_group(self, group_id: str, protocol: str) -> GroupPlan:
        """A group that reads all topics."""
        return GroupPlan(
            group_id,
            protocol,
            tuple(self.partitions),
            session_timeout_ms=SESSION_MS,
            rebalance_timeout_ms=self.group_random.choice((1_000, 4_000)),
        )

    def new_member(self, client: Client, slot: Slot) -> Running:
        """The member that takes a place."""
        return MEMBERS[slot.group.protocol](client, slot.group, self.work(client, slot))

    def work(self, client: Client, slot: Slot) -> Work:
        """Return the work that a member does with its records."""
        return CommitNowAndThen()

    def new_client(self, name: str) -> Client:
        """A client that came later."""
        return self._client(name)

    def member_failed(self, error: BaseException) -> None:
        """A fault of the simulator's own."""
        self._failures.append(error)

    def _start_clients(self) -> list["asyncio.Task[None]"]:
        working = super()._start_clients()
        for slot in self.slots:
            self.loop.call_later(self.group_random.random() * 5, slot.start)
        self.loop.call_later(2.0, self._disturb)
        return working

    def _disturb(self) -> None:
        """Do something to a member, and again after a while."""
        if self._is_settling:
            return
        random, later = self.group_random, self.loop.call_later
        slot = random.choice(self.slots)
        kind = random.choice(("kill", "freeze", "freeze", "leave"))
        if kind == "freeze":
            slot.freeze()
            later(random.choice((0.3, 2.0, 8.0)), slot.thaw)
        elif kind == "kill":
            slot.kill(random.choice((0.1, 1.0, 5.0)))
        else:
            slot.ask_to_leave(random.choice((0.1, 1.0, 5.0)))
        later(random.uniform(0.5, 4.0), self._disturb)

    async def _finish(self, working: list["asyncio.Task[None]"]) -> None:
        """Producers end; the groups read what is there; then members leave."""
        self._is_settling = True
        for slot in self.slots:
            slot.thaw()
            slot.start()
        for name in [client.name for client in self._clients if client.name.startswith("producer")]:
            self._named(name).is_stopping = True
        await asyncio.wait(working, timeout=FINISH_WITHIN_S)
        self._retire_damaged()
        admin = self._client("groups-admin")
        await self._in(admin, self._drain(admin))
        for slot in self.slots:
            slot.close()
        for slot in self.slots:
            if not await slot.ended(LEAVE_WITHIN_S):
                self.history.saw("unfinished", f"{slot.name} did not end")
        await super()._finish(working)
        if self._failures:
            raise RuntimeError("a simulated member failed") from self._failures[0]

    def _named(self, name: str) -> Client:
        return next(client for client in self._clients if client.name == name)

    async def _drain(self, client: Client) -> None:
        """Wait until every group has committed the end of every partition, while they get on."""
        began_s = self.loop.time()
        deadline_s = began_s + DRAIN_WITHIN_S
        committed = 0
        missing: dict[str, str] = {}
        while self.loop.time() < min(deadline_s, began_s + DRAIN_AT_MOST_S):
            missing = {}
            for group in self.groups:
                behind = await self._behind(client, group)
                if behind:
                    missing[group.group_id] = behind
                    break
            if not missing:
                return
            if sum(self._furthest.values()) > committed:
                committed = sum(self._furthest.values())
                deadline_s = self.loop.time() + DRAIN_WITHIN_S
            await client.pause(0.2, 0.5)
        for group_id, behind in missing.items():
            self.history.saw("stuck-group", f"{group_id}: {behind}")

    async def _behind(self, client: Client, group: GroupPlan) -> str:
        """What a group has not committed yet, or why that is not known; empty for nothing."""
        offsets = await self.committed(client, group)
        if offsets is None:
            return "its offsets cannot be read"
        furthest = self._furthest.get(group.group_id, 0)
        self._furthest[group.group_id] = max(furthest, sum(offsets.values()))
        for partition, offset in offsets.items():
            answer = await fetch_once(client, partition, offset, isolation_level=0)
            if answer is None:
                client.mistrust_metadata()
                return f"{partition} cannot be read"
            if answer.high_watermark > offset:
                return f"{partition} is at {offset} of {answer.high_watermark}"
        return ""

    async def committed(
        self, client: Client, group: GroupPlan, *, is_final: bool = False
    ) -> dict[TopicPartition, int] | None:
        """One attempt to read what a group has committed."""
        invoked_s = self.loop.time()
        request = OffsetFetchRequest(
            groups=[
                OffsetFetchRequestGroup(
                    group_id=group.group_id,
                    topics=[
                        OffsetFetchRequestTopics(name=topic, partition_indexes=indexes)
                        for topic, indexes in by_topic(group.partitions).items()
                    ],
                )
            ],
            require_stable=True,
        )
        try:
            found = await find_coordinator(client, GROUP_KEY, group.group_id)
            if found is None:
                return None
            response = await found[1].send(request, version=FETCH_VERSION)
        except OSError:
            return None
        return read_offsets(client, response, invoked_s, is_final=is_final)

    async def _audit(self) -> None:
        await super()._audit()
        client = self._client("groups-auditor")
        await self._in(client, self._read_final(client))

    async def _read_final(self, client: Client) -> dict[str, dict[TopicPartition, int]]:
        """Return the final committed offsets of each group."""
        final = {}
        for group in self.groups:
            offsets = None
            while offsets is None:
                offsets = await self.committed(client, group, is_final=True)
                if offsets is None:
                    await client.back_off()
            final[group.group_id] = offsets
        return final

    @property
    def operation_count(self) -> int:
        history = self.history
        return history.operation_count + len(history.commits) + len(history.tenures)


def group_properties(plan: Plan) -> dict[str, str]:
    """Return the properties of nodes for groups in a run."""
    random = Random(f"{plan.seed}/group properties")
    flushing = {"log.flush.interval.messages": "1"} if plan.flushes else {}
    return {
        **flushing,
        "min.insync.replicas": str(min(2, len(plan.brokers))),
        "group.initial.rebalance.delay.ms": str(random.choice((0, 500))),
        "group.min.session.timeout.ms": "1000",
        "group.consumer.min.session.timeout.ms": "1000",
        "group.consumer.session.timeout.ms": str(SESSION_MS),
        "group.consumer.min.heartbeat.interval.ms": "500",
        "group.consumer.heartbeat.interval.ms": "500",
        "group.consumer.assignment.interval.ms": str(random.choice((0, 1000))),
    }
