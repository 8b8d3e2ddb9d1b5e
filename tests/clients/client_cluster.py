"""The cluster that the modules of clients run against: one node or three, plain or secured."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

from barnabas.app.testing import Kafka
from barnabas.base.ids import TopicPartition
from barnabas.cli.admin import Admin, elect, partitions, reassign, reassignments
from support import client_logins
from support.apache_kafka import ApacheKafka
from support.cluster_processes import Barnabas, ClusterProcesses
from support.node_process import wait_until
from support.secured_processes import secured_processes

NODES = int(os.environ.get("BARNABAS_TEST_NODES", "1"))
PROGRAM = os.environ.get("BARNABAS_TEST_PROGRAM", "barnabas")
"""`kafka` holds the modules themselves against three nodes of Apache Kafka."""
SECURITY = os.environ.get("BARNABAS_TEST_SECURITY", "")
"""`scram`: clients log in over TLS, and have their rights by ACLs."""
LASTING = {"log.retention.check.interval.ms": "86400000"}
"""Records of the matrix are older than a week."""
Settle = Callable[[], None]


def processes(
    directory: Path, nodes: int, settings: dict[str, str] = LASTING
) -> AbstractContextManager[ClusterProcesses]:
    """So many nodes, while they run; secured where that is asked for."""
    program = ApacheKafka() if PROGRAM == "kafka" else Barnabas()
    start = secured_processes if SECURITY else ClusterProcesses
    return start(directory, nodes, settings, program=program, racks=nodes > 1)


class SettledKafka(Kafka):
    """Its topics are known to every node before anyone asks for them."""

    def __init__(self, bootstrap_servers: str, test_name: str, settle: Settle) -> None:
        login = client_logins.librdkafka(bootstrap_servers)
        super().__init__(bootstrap_servers, test_name, lambda _: login)
        self.settle = settle

    def topic(self, *arguments: object, **options: object) -> str:
        name = super().topic(*arguments, **options)  # type: ignore[arg-type]
        self.settle()
        return name


def move_leaders(admin: Admin, places: list[TopicPartition]) -> None:
    """Give partitions other leaders."""
    topic = places[0].topic
    before = {state.key: state for state in partitions(admin, [topic])}
    targets = {one: (*before[one].replicas[1:], before[one].replicas[0]) for one in places}
    assert reassign(admin, targets) == {}
    wait_until(lambda: not reassignments(admin), "the reassignment")
    assert set(elect(admin, places).values()) <= {None}
    old = {one: before[one].leader for one in places}

    def have_moved() -> bool:
        leaders = {state.key: state.leader for state in partitions(admin, [topic])}
        return all(leaders[one] not in (-1, old[one]) for one in places)

    wait_until(have_moved, "the other leaders")  # the node that is asked learns of them later
