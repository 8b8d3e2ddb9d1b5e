"""Groups: how soon many members have their partitions, and records shared out one by one."""

import json

from bench import java_tools
from bench.measure import cpu_seconds
from bench.settings import GIGABYTE
from bench.wire import alter_config
from bench.workloads.clients import run_client
from bench.workloads.produce import TOPIC_1000
from bench.workloads.session import Session

TOPIC_GROUP = "bench-group"
SHARE_GROUP = "bench-share"


def group_join(session: Session) -> dict[str, float]:
    """Members that join at once, of both protocols: seconds until the group is stable."""
    members = session.settings.group_members
    partitions = 2 * members
    session.topic(TOPIC_GROUP, partitions)
    session.settle()
    found = {}
    for protocol in ("classic", "consumer"):
        output = run_client("group_client", session, TOPIC_GROUP, partitions, members, protocol)
        found[f"group_{protocol}_stable_s"] = float(json.loads(output)["stable_s"])
    return found


def share_consume(session: Session) -> dict[str, float]:
    """ShareConsumerPerformance over 1000-byte records, each acknowledged."""
    records = session.fill(TOPIC_1000, session.settings.produce_1000_records, 1000)
    records = min(records, session.settings.share_records)
    session.settle()
    alter_config(session.server.port, 32, SHARE_GROUP, {"share.auto.offset.reset": "earliest"})
    before = cpu_seconds(session.server.pid)
    rate = java_tools.share_consume(
        session.server.bootstrap, TOPIC_1000, SHARE_GROUP, records, session.settings.timeout_seconds
    )
    cpu = cpu_seconds(session.server.pid) - before
    return {"share_mb_s": rate, "share_cpu_s_per_gb": cpu / (records * 1000 / GIGABYTE)}
