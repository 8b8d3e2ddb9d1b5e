"""How long a cluster cannot be written to: a node dies, or all of them do."""

import itertools
import time
from statistics import median

from barnabas.protocol.errors import ErrorCode
from bench.cluster import NODES, Cluster
from bench.pulse import Pulse
from bench.wire import WireClient, make_topic
from bench.workloads.cluster_session import ClusterSession

STEADY_SECONDS = 60.0
FAILOVER_SECONDS = 120.0
RETRY_SECONDS = 0.005
TUNED = """\
broker.session.timeout.ms=2000
broker.heartbeat.interval.ms=500
controller.quorum.fetch.timeout.ms=1000
controller.quorum.election.timeout.ms=500
controller.quorum.election.backoff.max.ms=500
"""
"""Settings for a fast failover."""

_numbers = itertools.count(1)


def cluster_failover(session: ClusterSession) -> dict[str, float]:
    """SIGKILL of a leader that is not the active controller, and of one that is."""
    return {
        "cluster_failover_s": _failover(session, is_controller=False),
        "cluster_failover_controller_s": _failover(session, is_controller=True),
    }


def cluster_failover_tuned(session: ClusterSession) -> dict[str, float]:
    """The same with short time-outs."""
    return {
        "cluster_failover_tuned_s": _failover(session, is_controller=False),
        "cluster_failover_controller_tuned_s": _failover(session, is_controller=True),
    }


def cluster_restart(session: ClusterSession) -> dict[str, float]:
    """SIGKILL of all nodes; from starting them again to an acknowledged record."""
    cluster, topic = session.cluster, "bench-restart"
    cluster.create_topics([topic], NODES)
    seconds = []
    for _ in range(session.settings.kills):
        write_anyhow(cluster, topic)
        cluster.kill(*cluster.nodes)
        began = time.monotonic()
        cluster.start()
        write_anyhow(cluster, topic)
        seconds.append(time.monotonic() - began)
        cluster.wait_all_brokers()
        cluster.wait_in_sync([topic], NODES)
    return {"cluster_restart_s": median(seconds)}


def first_record(cluster: Cluster) -> None:
    """Create a topic and write its first record to a majority. Raises TimeoutError."""
    deadline = time.monotonic() + FAILOVER_SECONDS
    topic = "bench-start"
    while time.monotonic() < deadline:
        try:
            make_topic(cluster.nodes[1].port, topic, NODES, replication_factor=NODES)
        except ConnectionError:
            cluster.check_alive()
            time.sleep(RETRY_SECONDS)
        else:
            write_anyhow(cluster, topic)
            return
    raise TimeoutError(f"{cluster.name}: no topic was made")


def _failover(session: ClusterSession, *, is_controller: bool) -> float:
    """The median over some kills, each of a node that leads a partition of a new topic."""
    cluster = session.cluster
    seconds = []
    for _ in range(session.settings.kills):
        topic = f"bench-failover-{next(_numbers)}"
        cluster.create_topics([topic], NODES)
        controller = cluster.wait_for_controller()
        partition, leader = next(
            (partition, leader)
            for partition, leader in cluster.leaders(topic).items()
            if (leader == controller) is is_controller
        )
        with Pulse(cluster.bootstrap, topic, partition) as pulse:
            pulse.await_steady(STEADY_SECONDS)
            killed = time.monotonic()
            cluster.kill(leader)
            seconds.append(pulse.seconds_until_acknowledged(killed, FAILOVER_SECONDS))
        cluster.start(leader)
        cluster.wait_all_brokers()
        cluster.wait_in_sync([topic], NODES)
    return median(seconds)


def write_anyhow(cluster: Cluster, topic: str) -> None:
    """Try nodes and partitions in turn until one record is acknowledged.

    Raises TimeoutError.
    """
    deadline = time.monotonic() + FAILOVER_SECONDS
    while time.monotonic() < deadline:
        for node in cluster.running:
            try:
                with WireClient(node.port, RETRY_SECONDS * 400) as client:
                    for partition in range(NODES):
                        if client.produce(topic, b"after", partition) is ErrorCode.NONE:
                            return
            except OSError:
                node.check_alive()
        time.sleep(RETRY_SECONDS)
    raise TimeoutError(f"{cluster.name}: no record was acknowledged")
