"""A cluster under load: replicated produce, latency, memory, and a follower that returns."""

import time
from pathlib import Path

from bench.measure import wait_until
from bench.settings import GIGABYTE, MEGABYTE
from bench.workloads.cluster_session import ClusterSession
from bench.workloads.latency import measure_latency

PARTITIONS = 6
"""Two led by each node."""
RETURNING = 3
RETURN_SECONDS = 300.0


def cluster_produce(session: ClusterSession) -> dict[str, float]:
    """ProducerPerformance, acks=all, factor 3, min ISR 2: rate, and all nodes' time per GB."""
    cluster, records = session.cluster, session.settings.cluster_records
    cluster.create_topics(["bench-warm-up", "bench-replicated"], PARTITIONS)
    session.produce("bench-warm-up", session.settings.warm_up_records)
    before = cluster.cpu_seconds()
    result = session.produce("bench-replicated", records)
    cluster.wait_in_sync(["bench-replicated"], PARTITIONS)
    return {
        "cluster_produce_mb_s": result.records_per_second * 1000 / MEGABYTE,
        "cluster_produce_cpu_s_per_gb": (
            (cluster.cpu_seconds() - before) / (records * 1000 / GIGABYTE)
        ),
    }


def cluster_latency(session: ClusterSession) -> dict[str, float]:
    """From a producer to a consumer through three replicas, at a fixed rate."""
    session.cluster.create_topics(["bench-latency"], 1)
    session.settle()
    figures = measure_latency(session.cluster.bootstrap, "bench-latency", session.settings)
    return {f"cluster_latency_{name}_ms": figures[name] for name in ("p50", "p99")}


def cluster_memory_load(session: ClusterSession) -> dict[str, float]:
    """Of one node, after the load."""
    session.rest()
    return {"cluster_memory_load_mb": session.cluster.memory_megabytes()}


def cluster_catch_up(session: ClusterSession) -> dict[str, float]:
    """A node was away while others took records: how fast it copies them, and is in sync.

    The rate is between its first and last new byte on disk, so starting up is not in it.
    """
    cluster, topic = session.cluster, "bench-catch-up"
    records = session.settings.catch_up_records
    cluster.create_topics([topic], PARTITIONS)
    cluster.stop(RETURNING)
    session.produce(topic, records)
    session.settle()
    data = cluster.nodes[RETURNING].data
    whole = _size_of_logs(cluster.nodes[1].data, topic)
    growth = _Growth(data, topic, whole)
    began = time.monotonic()
    cluster.start(RETURNING)
    wait_until(growth.is_whole, RETURN_SECONDS, f"{cluster.name}: the returning node's logs")
    cluster.wait_in_sync([topic], PARTITIONS)
    return {
        "cluster_catch_up_mb_s": growth.rate_mb_s(),
        "cluster_return_s": time.monotonic() - began,
    }


class _Growth:
    """The logs of a topic while they grow from nothing to `whole` bytes."""

    def __init__(self, data: Path, topic: str, whole: int) -> None:
        self._data = data
        self._topic = topic
        self._whole = whole
        self._empty = self._last = _size_of_logs(data, topic)
        self._began = self._ended = 0.0

    def is_whole(self) -> bool:
        """Look at the files, and note when they began to grow and when they were complete."""
        size, now = _size_of_logs(self._data, self._topic), time.monotonic()
        if size == self._last == self._empty:
            self._began = now
        if size >= self._whole and not self._ended:
            self._ended = now
        self._last = size
        return bool(self._ended)

    def rate_mb_s(self) -> float:
        return (self._whole - self._empty) / (self._ended - self._began) / MEGABYTE


def _size_of_logs(data: Path, topic: str) -> int:
    return sum(path.stat().st_size for path in data.glob(f"{topic}-*/*.log"))
