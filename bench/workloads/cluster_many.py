"""A cluster with thousands of partitions: making them, their memory, and a controller's end."""

import time

from barnabas.protocol.errors import ErrorCode
from bench.cluster import Cluster, partitions_of
from bench.measure import wait_until
from bench.wire import WireClient
from bench.workloads.cluster_session import ClusterSession

PARTITIONS_PER_TOPIC = 100
FAILOVER_SECONDS = 180.0
ANSWER_SECONDS = 2.0
KILOBYTES = 1000.0


def cluster_partitions(session: ClusterSession) -> dict[str, float]:
    """2,000 partitions of factor 3 in one request: until each took a record on three replicas."""
    cluster, count = session.cluster, session.settings.cluster_partitions
    cluster.create_topics(["bench-first"], 1)
    session.rest()
    before = cluster.memory_megabytes()
    began = time.monotonic()
    names = _names("bench-many", count)
    cluster.create_topics(names, PARTITIONS_PER_TOPIC)
    cluster.write_to_all(names)
    seconds = time.monotonic() - began
    session.rest()
    after = cluster.memory_megabytes()
    return {
        "cluster_create_s": seconds,
        "cluster_memory_partitions_mb": after,
        "cluster_memory_partition_kb": (after - before) / count * KILOBYTES,
    }


def cluster_controller(session: ClusterSession) -> dict[str, float]:
    """SIGKILL of the active controller of 5,000 partitions.

    Until the next one has made a topic, and until every partition is led by a node that lives.
    """
    cluster, settings = session.cluster, session.settings
    more = settings.cluster_partitions_more
    names = _names("bench-more", more)
    cluster.create_topics(names, PARTITIONS_PER_TOPIC)
    session.settle()
    controller = cluster.wait_for_controller()
    cluster.kill(controller)
    killed = time.monotonic()
    _create_anyhow(cluster, "bench-after")
    created = time.monotonic()
    wait_until(
        lambda: _led_by_others(cluster, names, controller) == more,
        FAILOVER_SECONDS,
        f"{cluster.name}: new leaders",
    )
    return {
        "cluster_controller_s": created - killed,
        "cluster_leaders_s": time.monotonic() - killed,
    }


def _names(prefix: str, partitions: int) -> list[str]:
    return [f"{prefix}-{n}" for n in range(partitions // PARTITIONS_PER_TOPIC)]


def _create_anyhow(cluster: Cluster, topic: str) -> None:
    deadline = time.monotonic() + FAILOVER_SECONDS
    while time.monotonic() < deadline:
        for node in cluster.running:
            try:
                with WireClient(node.port, ANSWER_SECONDS) as client:
                    error = client.create_topic(topic, 1)
                    if error in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS):
                        return
            except OSError:
                node.check_alive()
    raise TimeoutError(f"{cluster.name}: no controller made a topic")


def _led_by_others(cluster: Cluster, topics: list[str], dead: int) -> int:
    found = partitions_of(cluster.running[0], topics)
    return sum(partition.leader_id not in (-1, dead) for partition in found)
