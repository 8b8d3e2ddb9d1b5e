"""What one seed stands for: a topology, its configuration, a workload and faults with their times.

A plan is plain data, drawn before anything runs, so that it can be printed, and changed by hand
to make a failure smaller.
"""

from dataclasses import dataclass, field
from random import Random

from sim.machine import CLIENT_PORT, CONTROLLER_PORT, host_name


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that goes wrong. Which machines it hits is drawn when it happens."""

    at_s: float
    kind: str
    lasts_s: float
    """How long until it is mended."""

    def __str__(self) -> str:
        return f"{self.at_s:.2f} s {self.kind} for {self.lasts_s:.2f} s"


@dataclass(frozen=True, slots=True)
class TopicPlan:
    """One topic."""

    name: str
    partitions: int
    replication_factor: int
    configs: dict[str, str]


@dataclass(slots=True)
class Plan:
    """Everything that is drawn from a seed beforehand."""

    seed: int
    node_count: int
    duration_s: float
    properties: dict[str, str]
    """What all nodes have in common."""
    topics: list[TopicPlan]
    faults: list[Fault]
    producers: int
    consumers: int
    idempotent_share: float
    acks_one_share: float
    skews_ms: list[int]
    log_dirs_per_node: int
    flushes: bool
    """Whether every append is forced to the medium before it is acknowledged."""
    skipped_checks: set[str] = field(default_factory=set)

    def __str__(self) -> str:
        faults = "; ".join(map(str, self.faults)) or "none"
        return (
            f"seed {self.seed}: {self.node_count} nodes, {self.duration_s:.0f} s, "
            f"{len(self.topics)} topics, {self.producers} producers, {self.consumers} consumers, "
            f"flushes={self.flushes}, {self.properties}; faults: {faults}"
        )


FAULTS_OF_ONE = {
    "kill": 4,
    "power-loss": 3,
    "restart": 2,
    "pause": 2,
    "slow-disk": 2,
    "full-disk": 1,
    "broken-disk": 1,
    "clock-step": 2,
    "slow-links": 1,
    "client-partition": 1,
}
"""What can happen to a single node, and how often relative to each other."""


def draw_plan(seed: int, node_count: int) -> Plan:
    """The plan of `seed` for a cluster of `node_count` nodes."""
    random = Random(f"{seed}/plan/{node_count}")
    flushes = random.random() < 0.5
    duration_s = random.choice((8.0, 15.0, 25.0))
    log_dirs = random.choice((1, 1, 2))
    properties = {
        "process.roles": "broker,controller",
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.voters": ",".join(
            f"{node_id}@{host_name(node_id)}:{CONTROLLER_PORT}"
            for node_id in range(1, node_count + 1)
        ),
        "metadata.log.dir": "/data/metadata",
        "log.dirs": ",".join(f"/data/{index}" for index in range(log_dirs)),
        "offsets.topic.replication.factor": str(min(3, node_count)),
        "offsets.topic.num.partitions": "3",
        "log.index.interval.bytes": str(random.choice((4096, 500))),
        "log.flush.offset.checkpoint.interval.ms": str(random.choice((60_000, 2_000))),
        "log.roll.ms": str(random.choice((604_800_000, 5_000, 700))),
    }
    if random.random() < 0.3:
        properties["metadata.log.max.record.bytes.between.snapshots"] = "2000"
    topic_configs = {"min.insync.replicas": str((min(3, node_count) + 1) // 2)}
    if flushes:
        topic_configs["flush.messages"] = "1"
    topics = [
        TopicPlan(f"topic{index}", random.randint(1, 3), min(3, node_count), topic_configs)
        for index in range(random.randint(1, 2))
    ]
    return Plan(
        seed=seed,
        node_count=node_count,
        duration_s=duration_s,
        properties=properties,
        topics=topics,
        faults=draw_faults(random, duration_s, FAULTS_OF_ONE),
        producers=random.randint(1, 3),
        consumers=random.randint(1, 2),
        idempotent_share=random.choice((1.0, 0.5)),
        acks_one_share=random.choice((0.0, 0.2)),
        skews_ms=[random.randint(-2000, 2000) for _ in range(node_count)],
        log_dirs_per_node=log_dirs,
        flushes=flushes,
    )


def draw_faults(random: Random, duration_s: float, weights: dict[str, int]) -> list[Fault]:
    """Faults over the whole of the run, mended before its end or by it."""
    count = random.randint(0, 1 + int(duration_s / 4))
    faults = [
        Fault(
            at_s=random.uniform(0.5, duration_s * 0.9),
            kind=random.choices(list(weights), list(weights.values()))[0],
            lasts_s=random.choice((0.05, 0.5, 2.0, 5.0)) * random.uniform(0.5, 1.5),
        )
        for _ in range(count)
    ]
    return sorted(faults, key=lambda fault: fault.at_s)


def node_properties(plan: Plan, node_id: int) -> dict[str, str]:
    """server.properties of one node."""
    host = host_name(node_id)
    return {
        **plan.properties,
        "node.id": str(node_id),
        "listeners": f"PLAINTEXT://{host}:{CLIENT_PORT},CONTROLLER://{host}:{CONTROLLER_PORT}",
    }
