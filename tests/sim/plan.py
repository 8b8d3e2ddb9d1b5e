"""What one seed stands for: a topology, its configuration, a workload and faults with their times.

A plan is plain data, drawn before anything runs, so that it can be printed, and changed by hand
to make a failure smaller.
"""

from dataclasses import dataclass
from random import Random

from sim.machine import CLIENT_PORT, CONTROLLER_PORT, host_name


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that goes wrong. Which machines it hits is drawn when it happens."""

    at_s: float
    kind: str
    lasts_s: float
    """The time until it is repaired."""

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
    roles: dict[int, str]
    """`process.roles` by node id."""
    duration_s: float
    properties: dict[str, str]
    """The properties that all nodes have in common."""
    topics: list[TopicPlan]
    faults: list[Fault]
    producers: int
    consumers: int
    idempotent_share: float
    acks_one_share: float
    skews_ms: dict[int, int]
    is_dynamic: bool
    """True if the quorum's voters are in its log (KIP-853)."""
    flushes: bool
    """True if every append is forced to the medium before it is acknowledged."""
    unlucky: int
    """The one node whose disk may lose data, unless every append is forced to it."""
    tail_bytes_max: int
    """What all logs of a node keep in memory; little, so that reads go to the disk."""
    link_delay_ms: tuple[float, float]
    """What every link takes at least, and what chance adds: a machine room, or a continent."""
    pause_max_s: float
    """Between a producer's batches to one partition, at most."""

    @property
    def is_durable(self) -> bool:
        """True if records acknowledged with `acks=all` must survive the faults.

        Kills, pauses and partitions of any number of nodes may never lose them, nor may power cuts
        if every append is forced to the disk. A disk that loses data is no excuse either, as long
        as two replicas had to have it and no other node ends uncleanly at that time (`draw_plan`
        and the nemesis make sure of that): of two such nodes it is unknown which one has lost
        nothing, and the last leader is believed (KIP-966).
        """
        return self.flushes or len(self.brokers) > 1 or "power-loss" not in self.kinds

    @property
    def kinds(self) -> set[str]:
        return {fault.kind for fault in self.faults}

    @property
    def is_damaging(self) -> bool:
        """True if the unlucky node's disk loses something; then no other node ends uncleanly."""
        kinds = self.kinds
        return bool(kinds & DAMAGE) or ("power-loss" in kinds and not self.flushes)

    @property
    def voters(self) -> list[int]:
        return [node_id for node_id, roles in self.roles.items() if "controller" in roles]

    @property
    def brokers(self) -> list[int]:
        return [node_id for node_id, roles in self.roles.items() if "broker" in roles]

    def __str__(self) -> str:
        faults = "; ".join(map(str, self.faults)) or "none"
        nodes = ", ".join(f"{node_id} {roles}" for node_id, roles in self.roles.items())
        return (
            f"seed {self.seed}: nodes {nodes}; {self.duration_s:.0f} s, topics "
            f"{[(topic.name, topic.partitions, topic.configs) for topic in self.topics]}, "
            f"{self.producers} producers, {self.consumers} consumers, dynamic={self.is_dynamic}, "
            f"unlucky={self.unlucky}, {self.properties}; faults: {faults}"
        )


COMBINED = "broker,controller"
ONE_NODE = {1: COMBINED}
CLUSTERS: dict[str, dict[int, str]] = {
    "three": dict.fromkeys((1, 2, 3), COMBINED),
    "five": dict.fromkeys((1, 2, 3, 4, 5), COMBINED),
    "dedicated": {
        **dict.fromkeys((1, 2, 3), "broker"),
        **dict.fromkeys((11, 12, 13), "controller"),
    },
    "one controller": {**dict.fromkeys((1, 2, 3), "broker"), 11: "controller"},
    "mixed": {1: COMBINED, 2: COMBINED, 3: COMBINED, 4: "broker"},
}
CLUSTER_WEIGHTS = {"three": 12, "five": 4, "dedicated": 2, "one controller": 1, "mixed": 2}

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
"""Faults of a single node, with their relative weights."""
FAULTS_OF_MANY = {
    "kill": 6,
    "chase": 3,
    "kill-all": 1,
    "power-loss": 3,
    "power-loss-all": 1,
    "restart": 2,
    "rolling-restart": 1,
    "pause": 3,
    "partition": 3,
    "one-way-partition": 3,
    "slow-links": 2,
    "slow-disk": 2,
    "full-disk": 1,
    "broken-disk": 1,
    "clock-step": 2,
    "client-partition": 1,
    "bit-flip": 1,
    "cut-file": 1,
}
NEEDS_FLUSHES = {"power-loss-all"}
DAMAGE = {"bit-flip", "cut-file", "lost-disk"}
UNCLEAN_ENDS = {"kill", "power-loss", "full-disk", "broken-disk"}
"""After these a node cannot say that it has all that it had."""
UNCLEAN_ENDS_OF_MANY = {"chase", "kill-all", "power-loss-all"}


def draw_plan(seed: int, topology: str = "") -> Plan:
    """The plan of `seed`: of one node if `topology` is "one", of a cluster otherwise."""
    random = Random(f"{seed}/plan/{topology}")
    if topology == "one":
        roles = ONE_NODE
    else:
        name = topology or random.choices(list(CLUSTER_WEIGHTS), list(CLUSTER_WEIGHTS.values()))[0]
        roles = CLUSTERS[name]
    brokers = [node_id for node_id, kinds in roles.items() if "broker" in kinds]
    factor = min(3, len(brokers))
    flushes = random.random() < 0.4
    duration_s = random.choice((8.0, 15.0, 25.0) if topology == "one" else (10.0, 20.0, 30.0))
    is_dynamic = random.random() < 0.5
    weights = FAULTS_OF_ONE if topology == "one" else FAULTS_OF_MANY
    if not flushes:
        weights = {kind: weight for kind, weight in weights.items() if kind not in NEEDS_FLUSHES}
    topic_configs = {
        "min.insync.replicas": str((factor + 1) // 2),
        "segment.ms": str(random.choice((604_800_000, 5_000, 700))),
        "segment.index.bytes": str(random.choice((10_485_760, 80))),
        "index.interval.bytes": str(random.choice((4096, 300))),
    }
    if flushes:
        topic_configs["flush.messages"] = "1"
    return Plan(
        seed=seed,
        roles=roles,
        duration_s=duration_s,
        properties=_draw_properties(random, roles, factor, is_dynamic=is_dynamic),
        topics=[
            TopicPlan(f"topic{index}", random.randint(1, 3), factor, topic_configs)
            for index in range(random.randint(1, 2))
        ],
        faults=draw_faults(random, duration_s, weights, flushes=flushes),
        producers=random.randint(1, 3),
        consumers=random.randint(1, 2),
        idempotent_share=random.choice((1.0, 0.5)),
        acks_one_share=random.choice((0.0, 0.2)),
        skews_ms={node_id: random.randint(-2000, 2000) for node_id in roles},
        is_dynamic=is_dynamic,
        flushes=flushes,
        unlucky=random.choice(brokers),
        tail_bytes_max=random.choice((16 << 20, 2_000, 0)),
        link_delay_ms=random.choice(((0.3, 0.7), (3.0, 5.0), (20.0, 60.0))),
        pause_max_s=random.choice((0.15, 0.5, 1.5)),
    )


def _draw_properties(
    random: Random, roles: dict[int, str], factor: int, *, is_dynamic: bool
) -> dict[str, str]:
    voters = [node_id for node_id, kinds in roles.items() if "controller" in kinds]
    log_dirs = random.choice((1, 1, 2))
    properties = {
        "controller.listener.names": "CONTROLLER",
        "metadata.log.dir": "/data/metadata",
        "log.dirs": ",".join(f"/data/{index}" for index in range(log_dirs)),
        "offsets.topic.replication.factor": str(factor),
        "offsets.topic.num.partitions": "3",
        "log.flush.offset.checkpoint.interval.ms": str(random.choice((60_000, 2_000))),
    }
    if is_dynamic:
        properties["controller.quorum.bootstrap.servers"] = ",".join(
            f"{host_name(node_id)}:{CONTROLLER_PORT}" for node_id in voters
        )
    else:
        properties["controller.quorum.voters"] = ",".join(
            f"{node_id}@{host_name(node_id)}:{CONTROLLER_PORT}" for node_id in voters
        )
    if random.random() < 0.3:
        properties["metadata.log.max.record.bytes.between.snapshots"] = "2000"
    if len(roles) > 1 and random.random() < 0.8:
        properties["broker.session.timeout.ms"] = str(random.choice((1_500, 3_000)))
        properties["broker.heartbeat.interval.ms"] = "500"
    if len(roles) > 1 and random.random() < 0.7:
        properties["replica.lag.time.max.ms"] = str(random.choice((1_000, 4_000)))
    if random.random() < 0.3:
        # Then a follower that is behind needs many fetches to catch up.
        properties["replica.fetch.max.bytes"] = "200"
        properties["replica.fetch.response.max.bytes"] = "200"
    return properties


def draw_faults(
    random: Random, duration_s: float, weights: dict[str, int], *, flushes: bool
) -> list[Fault]:
    """Faults over the whole of the run, repaired before its end or by it.

    Each run has a few kinds only, and those often: what needs two faults of a kind, or two certain
    kinds together, would hardly ever happen if all were mixed in every run.
    """
    kinds = random.choices(list(weights), list(weights.values()), k=random.randint(1, 5))
    if DAMAGE & set(kinds) or ("power-loss" in kinds and not flushes):
        kinds = [kind for kind in kinds if kind not in UNCLEAN_ENDS_OF_MANY]
    count = random.randint(1, 2 + int(duration_s / 2.5))
    faults = [
        Fault(
            at_s=random.uniform(0.5, duration_s * 0.9),
            kind=random.choice(kinds),
            lasts_s=random.choice((0.1, 1.0, 3.0, 6.0, 10.0)) * random.uniform(0.5, 1.5),
        )
        for _ in range(count)
    ]
    return sorted(faults, key=lambda fault: fault.at_s)


def node_properties(plan: Plan, node_id: int) -> dict[str, str]:
    """server.properties of one node."""
    host, roles = host_name(node_id), plan.roles[node_id]
    listeners = []
    if "broker" in roles:
        listeners.append(f"PLAINTEXT://{host}:{CLIENT_PORT}")
    if "controller" in roles:
        listeners.append(f"CONTROLLER://{host}:{CONTROLLER_PORT}")
    return {
        **plan.properties,
        # Without growth and jitter: a random timeout would change the course of every seed.
        "socket.connection.setup.timeout.max.ms": "10000",
        "process.roles": roles,
        "node.id": str(node_id),
        "listeners": ",".join(listeners),
    }
