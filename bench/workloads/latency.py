"""End-to-end latency: from handing a record to a producer to having it from a consumer."""

import json
import subprocess
import sys

from bench.settings import ROOT, Settings
from bench.workloads.session import Session

TOPIC_LATENCY = "bench-latency"


def latency(session: Session) -> dict[str, float]:
    """Percentiles in ms at a fixed rate; librdkafka, acks=all, no linger, own processes."""
    session.topic(TOPIC_LATENCY)
    session.settle()
    figures = measure_latency(session.server.bootstrap, TOPIC_LATENCY, session.settings)
    return {f"latency_{name}_ms": value for name, value in figures.items()}


def measure_latency(bootstrap: str, topic: str, settings: Settings) -> dict[str, float]:
    """Percentiles by name (p50, p99, p999) in ms, on partition 0 of a topic that exists."""
    seconds = settings.latency_warm_up_seconds + settings.latency_seconds
    arguments = [
        bootstrap,
        topic,
        str(settings.latency_rate),
        str(seconds),
        str(settings.latency_warm_up_seconds),
    ]
    consumer = _client("consume", arguments)
    producer = _client("produce", arguments)
    try:
        output, _ = consumer.communicate(timeout=seconds + 60)
        producer.wait(timeout=30)
    except BaseException:
        for process in (consumer, producer):
            process.kill()
            process.wait()
        raise
    if consumer.returncode or producer.returncode:
        raise RuntimeError(f"latency clients ended: {consumer.returncode}, {producer.returncode}")
    figures: dict[str, float] = json.loads(output)
    return figures


def _client(role: str, arguments: list[str]) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "bench.latency_client", role, *arguments]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
