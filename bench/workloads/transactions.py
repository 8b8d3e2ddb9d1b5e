"""Producing in transactions with ProducerPerformance, and committing offsets."""

import json

from bench import java_tools
from bench.java_tools import produced
from bench.measure import cpu_seconds
from bench.settings import GIGABYTE, MEGABYTE
from bench.workloads.clients import run_client
from bench.workloads.session import Session

TOPIC_LONG = "bench-transactions-100"
TOPIC_SHORT = "bench-transactions-10"
TOPIC_COMMITS = "bench-commits"


def transactions(session: Session) -> dict[str, float]:
    """1000-byte records in transactions of 100 and of 10 ms; processor time of the former."""
    rate_long, cpu = _produce(session, TOPIC_LONG, 100)
    rate_short, _ = _produce(session, TOPIC_SHORT, 10)
    records = session.settings.transaction_records
    return {
        "transactions_100_mb_s": rate_long,
        "transactions_10_mb_s": rate_short,
        "transactions_cpu_s_per_gb": cpu / (records * 1000 / GIGABYTE),
    }


def _produce(session: Session, topic: str, transaction_ms: int) -> tuple[float, float]:
    session.topic(topic)
    session.settle()
    records = session.settings.transaction_records
    before = cpu_seconds(session.server.pid)
    tool = java_tools.producer(
        session.server.bootstrap,
        topic,
        records,
        1000,
        int(records * session.settings.warm_up_share),
        transaction_ms=transaction_ms,
    )
    result = produced(tool.wait(session.settings.timeout_seconds))
    cpu = cpu_seconds(session.server.pid) - before
    return result.records_per_second * 1000 / MEGABYTE, cpu


def offset_commits(session: Session) -> dict[str, float]:
    """Twenty groups, each with a connection and one commit under way; a bare client."""
    session.topic(TOPIC_COMMITS)
    session.settle()
    seconds = session.settings.commit_seconds
    before = cpu_seconds(session.server.pid)
    output = run_client("commit_client", session, TOPIC_COMMITS, seconds)
    cpu = cpu_seconds(session.server.pid) - before
    found = json.loads(output)
    return {
        "commits_s": found["commits_s"],
        "commits_cpu_s_per_100k": cpu / (found["commits"] / 100_000),
    }
