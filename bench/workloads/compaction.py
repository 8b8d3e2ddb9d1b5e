"""Compacting a log of which nothing is compacted yet."""

import time
from pathlib import Path

from bench.measure import cpu_seconds, wait_until
from bench.settings import GIGABYTE, MEGABYTE
from bench.wire import alter_config
from bench.workloads.clients import run_client
from bench.workloads.session import Session

TOPIC_COMPACTED = "bench-compacted"
BROKERS = 4
TOPICS = 2
BACKOFF_MS = 100
"""Kafka's default is 15 s: how long a cleaner waits before it looks again."""
SEGMENT_BYTES = 100_000_000
SETTLE_SECONDS = 2.0


def compaction(session: Session) -> dict[str, float]:
    """One round over keyed records, in MB of input per second, and processor time per GB.

    The topic is filled before it is made a compacted one; the clock runs from then on until the
    checkpoint of the cleaner is at the active segment.
    """
    settings, server = session.settings, session.server
    alter_config(server.port, BROKERS, "", {"log.cleaner.backoff.ms": str(BACKOFF_MS)})
    session.topic(TOPIC_COMPACTED, 1)
    alter_config(server.port, TOPICS, TOPIC_COMPACTED, {"segment.bytes": str(SEGMENT_BYTES)})
    run_client(
        "keyed_client",
        session,
        TOPIC_COMPACTED,
        settings.compaction_records,
        settings.compaction_keys,
        settings.compaction_record_size,
    )
    session.settle()
    segments = sorted((server.data / f"{TOPIC_COMPACTED}-0").glob("*.log"))
    active = int(segments[-1].stem)
    size_bytes = sum(segment.stat().st_size for segment in segments[:-1])
    before = cpu_seconds(server.pid)
    began = time.monotonic()
    policy = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01"}
    alter_config(server.port, TOPICS, TOPIC_COMPACTED, policy)
    wait_until(
        lambda: _clean_to(server.data) >= active, settings.timeout_seconds, "the end of the round"
    )
    seconds = time.monotonic() - began
    session.rest(SETTLE_SECONDS)  # a process that did the work counts when it has ended
    cpu = cpu_seconds(server.pid) - before
    alter_config(server.port, TOPICS, TOPIC_COMPACTED, {"cleanup.policy": "delete"})
    return {
        "compaction_mb_s": size_bytes / seconds / MEGABYTE,
        "compaction_cpu_s_per_gb": cpu / (size_bytes / GIGABYTE),
    }


def _clean_to(data: Path) -> int:
    """Up to which offset the log is compacted, as the checkpoint says."""
    checkpoint = data / "cleaner-offset-checkpoint"
    if not checkpoint.exists():
        return 0
    for line in checkpoint.read_text().splitlines():
        if line.startswith(f"{TOPIC_COMPACTED} 0 "):
            return int(line.split()[2])
    return 0
