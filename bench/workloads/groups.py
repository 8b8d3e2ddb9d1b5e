"""Groups: how soon many members have their partitions, and records shared out one by one."""

import json
from statistics import median

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
    """Members that join at once, of both protocols: seconds until the group is stable.

    In the classic protocol luck decides: if the first member is alone with its generation before
    the second comes, all wait until its next heartbeat (3 s) tells it of them. So the median of
    several groups counts.
    """
    settings = session.settings
    members = settings.group_members
    partitions = 2 * members
    session.topic(TOPIC_GROUP, partitions)
    session.settle()
    found = {}
    for protocol, groups in (("classic", settings.group_joins), ("consumer", 1)):
        seconds = []
        for number in range(groups):
            group = f"{TOPIC_GROUP}-{protocol}-{number}"
            of_group = TOPIC_GROUP, group, protocol, partitions, members
            output = run_client("group_client", session, *of_group)
            seconds.append(float(json.loads(output)["stable_s"]))
        found[f"group_{protocol}_stable_s"] = median(seconds)
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
