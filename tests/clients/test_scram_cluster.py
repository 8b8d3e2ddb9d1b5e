"""Three nodes that log in to each other by SCRAM, as brokers and as controllers.

Credentials are metadata, and the metadata's leader is elected over connections that need them.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from confluent_kafka import Producer

from support.cluster_processes import EAGER, Barnabas, ClusterProcesses
from support.scram_nodes import SECURED, ScramNodes


def produce(cluster: ClusterProcesses, topic: str) -> None:
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers, "acks": "all"})
    failures: list[object] = []
    for number in range(100):
        producer.produce(topic, str(number), on_delivery=lambda error, _: failures.append(error))
    assert producer.flush(60) == 0
    assert failures == [None] * 100


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_nodes_that_log_in_by_scram_survive_kills_and_a_common_end(tmp_path: Path) -> None:
    with ClusterProcesses(tmp_path, 3, SECURED | EAGER, program=ScramNodes(Barnabas())) as cluster:
        cluster.create_topic("secured", 3)
        produce(cluster, "secured")
        leader = cluster.controller()
        cluster.kill(leader)
        cluster.wait_for_controller(other_than=leader)
        produce(cluster, "secured")
        cluster.start(leader)
        cluster.wait_until_healthy()
        # Nobody leads now: they log in by what their logs say.
        cluster.kill(*cluster.nodes)
        cluster.start(*cluster.nodes)
        cluster.wait_until_healthy()
        produce(cluster, "secured")
    for node in cluster.nodes.values():
        output = node.output.read_text()
        assert "authentication of" not in output
        assert "the login to" not in output
