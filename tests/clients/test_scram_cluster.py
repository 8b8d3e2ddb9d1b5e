"""Three nodes that log in to each other by SCRAM, as brokers and as controllers.

Credentials are metadata, and the metadata's leader is elected over connections that need them.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from confluent_kafka import Producer

from support.cluster_processes import EAGER, Barnabas, ClusterProcesses
from support.ports import free_port

USER = "SCRAM-SHA-{}=[name=node,password=node-secret]"
JAAS = (
    "org.apache.kafka.common.security.scram.ScramLoginModule required "
    'username="node" password="node-secret";'
)
SECURED = {
    "listener.security.protocol.map": (
        "PLAINTEXT:PLAINTEXT,INTERNAL:SASL_PLAINTEXT,CONTROLLER:SASL_PLAINTEXT"
    ),
    "inter.broker.listener.name": "INTERNAL",
    "sasl.enabled.mechanisms": "SCRAM-SHA-256,SCRAM-SHA-512",
    "sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-512",
    "sasl.mechanism.controller.protocol": "SCRAM-SHA-256",
    "listener.name.internal.scram-sha-512.sasl.jaas.config": JAAS,
    "listener.name.controller.scram-sha-256.sasl.jaas.config": JAAS,
    "listener.name.internal.connections.max.reauth.ms": "4000",
    "listener.name.controller.connections.max.reauth.ms": "4000",
}


class Secured(Barnabas):
    """Nodes with one more listener, for brokers, and the credentials of all of them."""

    def format(self, properties: Path, cluster_id: str) -> list[str]:
        lines = properties.read_text().splitlines()
        (listeners,) = [line for line in lines if line.startswith("listeners=")]
        lines.remove(listeners)
        lines.append(f"{listeners},INTERNAL://127.0.0.1:{free_port()}")
        properties.write_text("\n".join(lines) + "\n")
        users = ["--add-scram", USER.format(256), "--add-scram", USER.format(512)]
        return [*super().format(properties, cluster_id), *users]


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
    with ClusterProcesses(tmp_path, 3, SECURED | EAGER, program=Secured()) as cluster:
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
