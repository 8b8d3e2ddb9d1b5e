"""Figures of a load: rates, and percentiles of latency from a bounded sample."""

import math
from array import array
from collections.abc import Sequence
from typing import Any

SAMPLE_MAX = 500_000
"""Latencies that are kept; with more records, every n-th."""
PERCENTILES = {"p50": 0.5, "p95": 0.95, "p99": 0.99, "p99_9": 0.999}
MB = 1024 * 1024
"""As Kafka's tools count."""


class Stats:
    """Counts and latencies of a load, or of one interval of it."""

    def __init__(self, expected: int, began_s: float) -> None:
        self._every = max(1, math.ceil(expected / SAMPLE_MAX))
        self._sample = array("d")
        self._sum_ms = 0.0
        self._max_ms = 0.0
        self._began_s = began_s
        self.records = 0
        self.size_bytes = 0

    def add(self, latency_ms: float, size_bytes: int) -> None:
        """Count one acknowledged record."""
        if self.records % self._every == 0:
            self._sample.append(latency_ms)
        self.records += 1
        self.size_bytes += size_bytes
        self._sum_ms += latency_ms
        self._max_ms = max(self._max_ms, latency_ms)

    def figures(self, now_s: float, *, with_percentiles: bool = True) -> dict[str, Any]:
        """The figures until `now_s`; latencies in milliseconds."""
        elapsed_s = max(now_s - self._began_s, 1e-9)
        latency = {
            "avg": round(self._sum_ms / self.records, 2) if self.records else 0.0,
            "max": round(self._max_ms, 2),
        }
        if with_percentiles:
            latency.update(percentiles(self._sample))
        return {
            "records": self.records,
            "records_per_s": round(self.records / elapsed_s, 1),
            "mb_per_s": round(self.size_bytes / elapsed_s / MB, 2),
            "elapsed_ms": round(elapsed_s * 1000),
            "latency_ms": latency,
        }


def percentiles(sample: Sequence[float]) -> dict[str, float]:
    """The percentiles of a sample, by name; 0 of none."""
    ordered = sorted(sample)
    if not ordered:
        return dict.fromkeys(PERCENTILES, 0.0)
    return {
        name: round(ordered[min(int(share * len(ordered)), len(ordered) - 1)], 2)
        for name, share in PERCENTILES.items()
    }


def summary_line(figures: dict[str, Any]) -> str:
    """One line about a load or an interval of it, in the order of Kafka's tool."""
    latency = figures["latency_ms"]
    parts = [
        f"{figures['records']} records sent",
        f"{figures['records_per_s']:.1f} records/sec ({figures['mb_per_s']:.2f} MB/sec)",
        f"{latency['avg']:.1f} ms avg latency",
        f"{latency['max']:.1f} ms max latency",
    ]
    parts += [
        f"{latency[name]:.1f} ms {share * 100:g}th"
        for name, share in PERCENTILES.items()
        if name in latency
    ]
    return ", ".join(parts)


def consumed_line(figures: dict[str, Any]) -> str:
    """One line about records that were read."""
    text = (
        f"{figures['records']} records read, "
        f"{figures['records_per_s']:.1f} records/sec ({figures['mb_per_s']:.2f} MB/sec)"
    )
    if "rebalance_ms" in figures:
        text += (
            f", {figures['rebalance_ms']} ms until partitions were assigned, then "
            f"{figures['fetch_records_per_s']:.1f} records/sec "
            f"({figures['fetch_mb_per_s']:.2f} MB/sec)"
        )
    return text
