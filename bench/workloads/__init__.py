"""What is measured: functions of a running server that return named figures."""

from collections.abc import Callable

from bench.workloads.consume import consume_cold, consume_raw, consume_tail
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
    "memory-load": memory_load,
    "memory-partitions": memory_partitions,
    "memory-connections": memory_connections,
}
"""In the order in which they run on a server. Before them: start-up and idle memory."""
