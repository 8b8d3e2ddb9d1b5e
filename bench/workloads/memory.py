"""Resident memory (PSS) after the load, with many partitions, and with many connections."""

import contextlib

from bench.measure import memory_megabytes
from bench.wire import WireClient, make_topic
from bench.workloads.session import Session

TOPIC_MANY = "bench-many"


def memory_load(session: Session) -> dict[str, float]:
    """After the warm-up and all workloads before this one."""
    session.rest(session.settings.idle_seconds)
    return {"memory_load_mb": memory_megabytes(session.server.pid)}


def memory_partitions(session: Session) -> dict[str, float]:
    """With a topic of many partitions, all led."""
    settings = session.settings
    make_topic(session.server.port, TOPIC_MANY, settings.many_partitions)
    session.rest(settings.idle_seconds)
    return {"memory_partitions_mb": memory_megabytes(session.server.pid)}


def memory_connections(session: Session) -> dict[str, float]:
    """With many connections that have introduced themselves and are idle."""
    with contextlib.ExitStack() as stack:
        for _ in range(session.settings.connections):
            stack.enter_context(WireClient(session.server.port)).api_versions()
        session.rest(session.settings.idle_seconds)
        return {"memory_connections_mb": memory_megabytes(session.server.pid)}
