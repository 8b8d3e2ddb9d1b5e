"""Producing with ProducerPerformance: batches of large and of small records, and one by one."""

from typing import Any

from bench.settings import GIGABYTE, MEGABYTE
from bench.workloads.session import Session

TOPIC_1000 = "bench-1000"
TOPIC_100 = "bench-100"
TOPIC_SINGLE = "bench-single"
TOPIC_1000_LARGE = "bench-1000-large"
TOPIC_100_LARGE = "bench-100-large"
LARGE_BATCHES: dict[str, Any] = {
    "batch_size": 128 * 1024,
    "linger_ms": 10,
    "buffer_memory": 64 << 20,
}
"""What throughput-minded producers set; the default batch is 16 KB."""


def produce_1000(session: Session) -> dict[str, float]:
    """1000-byte records with the client's defaults: rate, and processor time per GB."""
    records = session.settings.produce_1000_records
    result, cpu = session.produce(TOPIC_1000, records, 1000)
    return {
        "produce_1000_mb_s": result.records_per_second * 1000 / MEGABYTE,
        "produce_cpu_s_per_gb": cpu / (records * 1000 / GIGABYTE),
    }


def produce_100(session: Session) -> dict[str, float]:
    """100-byte records with the client's defaults."""
    result, _ = session.produce(TOPIC_100, session.settings.produce_100_records, 100)
    return {"produce_100_mb_s": result.records_per_second * 100 / MEGABYTE}


def produce_1000_large(session: Session) -> dict[str, float]:
    """1000-byte records in batches of 128 KB: rate, and processor time per GB."""
    records = session.settings.produce_1000_records
    result, cpu = session.produce(TOPIC_1000_LARGE, records, 1000, **LARGE_BATCHES)
    return {
        "produce_1000_large_mb_s": result.records_per_second * 1000 / MEGABYTE,
        "produce_large_cpu_s_per_gb": cpu / (records * 1000 / GIGABYTE),
    }


def produce_100_large(session: Session) -> dict[str, float]:
    """100-byte records in batches of 128 KB."""
    records = session.settings.produce_100_records
    result, _ = session.produce(TOPIC_100_LARGE, records, 100, **LARGE_BATCHES)
    return {"produce_100_large_mb_s": result.records_per_second * 100 / MEGABYTE}


def produce_single(session: Session) -> dict[str, float]:
    """One 100-byte record per request, five requests in flight, on a topic of one partition."""
    records = session.settings.produce_single_records
    result, cpu = session.produce(
        TOPIC_SINGLE, records, 100, partitions=1, batch_size=0, linger_ms=0
    )
    return {
        "produce_single_requests_s": result.records_per_second,
        "produce_single_cpu_s_per_100k": cpu / (records / 100_000),
    }
