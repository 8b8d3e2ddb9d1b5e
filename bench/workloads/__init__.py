"""What is measured: functions of a running server, or cluster, that return named figures."""

from collections.abc import Callable

from bench.workloads.cluster_failures import (
    TUNED,
    cluster_failover,
    cluster_failover_tuned,
    cluster_restart,
)
from bench.workloads.cluster_load import (
    cluster_catch_up,
    cluster_latency,
    cluster_memory_load,
    cluster_produce,
)
from bench.workloads.cluster_many import cluster_controller, cluster_partitions
from bench.workloads.cluster_session import ClusterSession
from bench.workloads.compaction import compaction
from bench.workloads.consume import consume_cold, consume_raw, consume_tail
from bench.workloads.groups import group_join, share_consume
from bench.workloads.latency import latency
from bench.workloads.memory import memory_connections, memory_load, memory_partitions
from bench.workloads.produce import (
    produce_100,
    produce_100_large,
    produce_1000,
    produce_1000_large,
    produce_single,
)
from bench.workloads.session import Session
from bench.workloads.tenants import noisy_tenant
from bench.workloads.tls import scram_connections, tls_connections, tls_consume, tls_produce
from bench.workloads.transactions import offset_commits, transactions

Figures = dict[str, float]

WORKLOADS: dict[str, Callable[[Session], Figures]] = {
    "produce-1000": produce_1000,
    "produce-100": produce_100,
    "produce-1000-large": produce_1000_large,
    "produce-100-large": produce_100_large,
    "produce-single": produce_single,
    "consume-cold": consume_cold,
    "consume-raw": consume_raw,
    "consume-tail": consume_tail,
    "latency": latency,
    "noisy-tenant": noisy_tenant,
    "memory-load": memory_load,
    "memory-partitions": memory_partitions,
    "memory-connections": memory_connections,
    "transactions": transactions,
    "offset-commits": offset_commits,
    "group-join": group_join,
    "share-consume": share_consume,
    "compaction": compaction,
}
"""In the order in which they run on a server. Before them: start-up and idle memory."""

TLS_WORKLOADS: dict[str, Callable[[Session], Figures]] = {
    "tls-produce": tls_produce,
    "tls-consume": tls_consume,
    "tls-connections": tls_connections,
    "scram-connections": scram_connections,
}
"""They run on a server of their own, which has listeners with TLS and with SCRAM."""

CLUSTERS: tuple[tuple[str, dict[str, Callable[[ClusterSession], Figures]]], ...] = (
    (
        "",
        {
            "cluster-produce": cluster_produce,
            "cluster-latency": cluster_latency,
            "cluster-memory-load": cluster_memory_load,
            "cluster-catch-up": cluster_catch_up,
            "cluster-failover": cluster_failover,
            "cluster-restart": cluster_restart,
        },
    ),
    (TUNED, {"cluster-failover-tuned": cluster_failover_tuned}),
    ("", {"cluster-partitions": cluster_partitions, "cluster-controller": cluster_controller}),
)
"""A fresh cluster of three nodes for each entry, with these properties, and what runs on it."""
