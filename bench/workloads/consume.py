"""Consuming: from disk with Kafka's client, from disk with a bare one, and behind a producer."""

import json
import subprocess
import sys

from bench import java_tools
from bench.measure import cpu_seconds, drop_page_cache
from bench.settings import GIGABYTE, ROOT
from bench.workloads.produce import TOPIC_1000
from bench.workloads.session import Session

TOPIC_TAIL = "bench-tail"


def consume_cold(session: Session) -> dict[str, float]:
    """ConsumerPerformance over 1000-byte records that are not in the page cache."""
    records = session.fill(TOPIC_1000, session.settings.produce_1000_records, 1000)
    session.settle()
    drop_page_cache(session.server.data)
    before = cpu_seconds(session.server.pid)
    rate = java_tools.consume(
        session.server.bootstrap, TOPIC_1000, records, session.settings.timeout_seconds
    )
    cpu = cpu_seconds(session.server.pid) - before
    return {
        "consume_cold_mb_s": rate,
        "consume_cpu_s_per_gb": cpu / (records * 1000 / GIGABYTE),
    }


def consume_raw(session: Session) -> dict[str, float]:
    """The same data, cold, to a client that only counts bytes: what the broker can send."""
    records = session.fill(TOPIC_1000, session.settings.produce_1000_records, 1000)
    session.settle()
    drop_page_cache(session.server.data)
    reader = _reader(session, TOPIC_1000, records)
    return {"consume_raw_mb_s": _rate(session, reader)}


def consume_tail(session: Session) -> dict[str, float]:
    """A bare client that follows ProducerPerformance; its rate from first to last byte."""
    session.topic(TOPIC_TAIL)
    session.settle()
    records = session.settings.tail_records
    reader = _reader(session, TOPIC_TAIL, records)
    try:
        tool = java_tools.producer(session.server.bootstrap, TOPIC_TAIL, records, 1000, 0)
        java_tools.produced(tool.wait(session.settings.timeout_seconds))
    except BaseException:
        reader.kill()
        reader.wait()
        raise
    return {"consume_tail_mb_s": _rate(session, reader)}


def _reader(session: Session, topic: str, records: int) -> subprocess.Popen[str]:
    command = [
        sys.executable, "-m", "bench.fetch_client",
        str(session.server.port), topic, str(session.settings.partitions), str(records),
    ]  # fmt: skip
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)


def _rate(session: Session, reader: subprocess.Popen[str]) -> float:
    try:
        output, _ = reader.communicate(timeout=session.settings.timeout_seconds)
    except BaseException:
        reader.kill()
        reader.wait()
        raise
    if reader.returncode:
        raise RuntimeError(f"the fetching client ended with {reader.returncode}")
    return float(json.loads(output)["mb_s"])
