"""The figures that are compared: their names, units, which way is better, and the aims."""

from dataclasses import dataclass
from statistics import median


@dataclass(frozen=True, slots=True)
class Figure:
    """`aim` is the ratio of Barnabas to Kafka to reach: a minimum where more is better."""

    name: str
    label: str
    unit: str
    more_is_better: bool
    aim: float | None = None
    digits: int = 1


FIGURES = (
    Figure("produce_1000_mb_s", "Produce, 1000-byte records", "MB/s", True, 1.8),
    Figure("produce_100_mb_s", "Produce, 100-byte records", "MB/s", True, 1.3),
    Figure("produce_1000_large_mb_s", "Produce, 1000-byte records, 128 KB batches", "MB/s", True),
    Figure("produce_100_large_mb_s", "Produce, 100-byte records, 128 KB batches", "MB/s", True),
    Figure("produce_single_requests_s", "Produce, one record per request", "req/s", True, 1.5, 0),
    Figure("consume_cold_mb_s", "Consume, cold", "MB/s", True, 1.0),
    Figure("consume_raw_mb_s", "Consume, cold, bare client", "MB/s", True, 1.0),
    Figure("consume_tail_mb_s", "Consume, following a producer", "MB/s", True, 1.0),
    Figure("latency_p50_ms", "End-to-end latency at 1,000 records/s, p50", "ms", False, 1.0, 2),
    Figure("latency_p99_ms", "End-to-end latency, p99", "ms", False, 1.0, 2),
    Figure("latency_p999_ms", "End-to-end latency, p99.9", "ms", False, 1.0, 2),
    Figure("produce_cpu_s_per_gb", "Broker CPU per GB produced", "s", False, 0.35, 2),
    Figure("produce_large_cpu_s_per_gb", "Broker CPU per GB, 128 KB batches", "s", False, None, 2),
    Figure("consume_cpu_s_per_gb", "Broker CPU per GB consumed", "s", False, 0.35, 2),
    Figure("produce_single_cpu_s_per_100k", "Broker CPU per 100,000 requests", "s", False, 0.35, 2),
    Figure("startup_s", "Start-up to first produced record", "s", False, 0.5, 2),
    Figure("memory_idle_mb", "Memory, idle", "MB", False, None),
    Figure("memory_load_mb", "Memory, after the load", "MB", False, 0.1),
    Figure("memory_partitions_mb", "Memory, with 1,000 more partitions", "MB", False, None),
    Figure("memory_connections_mb", "Memory, with 1,000 more connections", "MB", False, None),
)  # fmt: skip

LIMITS = (
    ("limit_receive_write_mb_s", "produce_1000_mb_s", "loop that receives and writes"),
    ("limit_sendfile_mb_s", "consume_raw_mb_s", "loop that sends a file"),
)
"""(limit, the figure that is held against it, what it is)."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """One figure over all rounds: medians, and the ratio with its spread over the rounds."""

    figure: Figure
    kafka: float
    barnabas: float
    ratio: float
    ratio_least: float
    ratio_most: float

    @property
    def reached(self) -> bool | None:
        """Whether the aim was; None where there is none."""
        aim = self.figure.aim
        if aim is None:
            return None
        return self.ratio >= aim if self.figure.more_is_better else self.ratio <= aim


Rounds = list[dict[str, dict[str, float]]]
"""Of each round: server → figure → value."""


def compare(rounds: Rounds) -> list[Comparison]:
    """Every figure that both servers have in at least one same round, in order.

    The ratio is the median of the rounds' ratios: a slow phase of the machine hits both.
    """
    comparisons = []
    for figure in FIGURES:
        pairs = [
            (each["kafka"][figure.name], each["barnabas"][figure.name])
            for each in rounds
            if figure.name in each.get("kafka", {}) and figure.name in each.get("barnabas", {})
        ]
        if not pairs:
            continue
        ratios = [barnabas / kafka if kafka else float("inf") for kafka, barnabas in pairs]
        comparisons.append(
            Comparison(
                figure,
                kafka=median(kafka for kafka, _ in pairs),
                barnabas=median(barnabas for _, barnabas in pairs),
                ratio=median(ratios),
                ratio_least=min(ratios),
                ratio_most=max(ratios),
            )
        )
    return comparisons
