"""What the chaos modules share: a cluster under load, and the check when all is over."""

from __future__ import annotations

import contextlib
import logging
import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from support.apache_kafka import ApacheKafka
from support.cluster_load import Load
from support.cluster_processes import EAGER, Barnabas, ClusterProcesses, Place, Program
from support.replica_logs import check_replicas_agree

TELEMETRY = logging.getLogger("chaos")
"""Logs the course of a run, for `pytest --log-cli-level=INFO`."""
PROGRAM = "BARNABAS_CHAOS_PROGRAM"
"""The environment's `kafka` runs the modules against Apache Kafka: do they hold of it?"""
TOPIC = "suffering"
PARTITIONS = 3
BETWEEN_RECORDS = 300
"""Number of acknowledgements that show that the cluster serves again."""


def let_it_last(seconds: float) -> None:
    """Leave a fault in place: its length is the experiment, and nothing is waited for."""
    time.sleep(seconds)


def node_program() -> Program:
    """Return the program that runs as a node."""
    return ApacheKafka() if os.environ.get(PROGRAM) == "kafka" else Barnabas()


@contextlib.contextmanager
def suffering(
    directory: Path,
    overrides: dict[str, str] | None = None,
    *,
    places: Sequence[Place] = (),
    nodes: int = 3,
) -> Iterator[tuple[ClusterProcesses, Load]]:
    """A cluster with a topic under load. When the block ends well, the history is checked.

    The block leaves a cluster whose nodes all run and reach each other.
    """
    cluster = ClusterProcesses(
        directory, nodes, EAGER | (overrides or {}), places=places, program=node_program()
    )
    with cluster:
        cluster.create_topic(TOPIC, PARTITIONS)
        with Load(cluster.bootstrap_servers, TOPIC, PARTITIONS) as load:
            load.await_known()
            load.await_acknowledged(BETWEEN_RECORDS)
            yield cluster, load
            load.await_acknowledged(BETWEEN_RECORDS)
            final = load.settle()
        load.history.check(final)
        assert not load.history.failed, f"{len(load.history.failed)} records failed"
        cluster.wait_until_healthy()
        cluster.stop()
    data = [node.data for node in cluster.nodes.values()]
    assert check_replicas_agree(data, TOPIC) > 0
    TELEMETRY.info(
        "%d records, %d acknowledged, longest silence %.2f s",
        *(len(final), len(load.history.acknowledged), load.history.longest_silence_s()),
    )
