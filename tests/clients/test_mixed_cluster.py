"""Apache Kafka's brokers and ours in one cluster, whichever runs the controllers.

Both speak Kafka's own requests between nodes and write its own metadata records, so either may
join the other's quorum, follow the other's partitions and lead them.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from support.apache_kafka import ApacheKafka, needs_apache_kafka
from support.cluster_processes import Barnabas, ClusterNode, Loopback, Program
from support.node_process import wait_until
from support.patience import PATIENCE_S
from support.scram_nodes import SECURED, ScramNodes

pytestmark = [
    needs_apache_kafka,
    pytest.mark.timeout(180),
]
TOPIC = "charges"
RECORDS = 300
CONTROLLER, BROKER = 1, 2


@contextmanager
def mixed(
    directory: Path, controllers: Program, brokers: Program, settings: dict[str, str]
) -> Iterator[list[ClusterNode]]:
    """One node that is broker and controller, and a broker of the other program."""
    nodes = [
        ClusterNode(CONTROLLER, directory / "1", Loopback(), controllers),
        ClusterNode(BROKER, directory / "2", Loopback(), brokers),
    ]
    for node, roles in zip(nodes, ("broker,controller", "broker"), strict=True):
        listeners = f"PLAINTEXT://127.0.0.1:{node.port}"
        if "controller" in roles:
            listeners += f",CONTROLLER://127.0.0.1:{node.controller_port}"
        node.format(
            {
                "process.roles": roles,
                "node.id": str(node.node_id),
                "listeners": listeners,
                "controller.listener.names": "CONTROLLER",
                "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
                "controller.quorum.voters": f"{CONTROLLER}@127.0.0.1:{nodes[0].controller_port}",
                "log.dirs": str(node.data),
                "offsets.topic.replication.factor": "2",
                "transaction.state.log.replication.factor": "2",
                "transaction.state.log.min.isr": "1",
                "offsets.topic.num.partitions": "2",
                "group.initial.rebalance.delay.ms": "0",
                "broker.heartbeat.interval.ms": "500",
                "broker.session.timeout.ms": "3000",
            }
            | settings
        )
    try:
        for node in nodes:
            node.wait_formatted()
        for node in nodes:
            node.start()
        for node in nodes:
            wait_until(node.answers, f"node {node.node_id} answers", 60)
        yield nodes
    finally:
        for node in nodes:
            node.kill()


def read_all(bootstrap_servers: str, partition: int, records: int) -> list[bytes | None]:
    consumer = Consumer({"bootstrap.servers": bootstrap_servers, "group.id": "readers"})
    consumer.assign([TopicPartition(TOPIC, partition, 0)])
    values: list[bytes | None] = []
    while len(values) < records:
        found = consumer.consume(records - len(values), PATIENCE_S)
        assert found, f"only {len(values)} of {records} records of partition {partition}"
        assert not any(message.error() for message in found)
        values += [message.value() for message in found]
    consumer.close()
    return values


@pytest.mark.parametrize(
    "ours_leads_the_quorum",
    [
        pytest.param(True, id="our-quorum"),
        pytest.param(False, id="their-quorum", marks=pytest.mark.slow),
    ],
)
def test_brokers_of_both_lead_follow_and_take_over(
    tmp_path: Path, ours_leads_the_quorum: bool
) -> None:
    programs: tuple[Program, Program] = (Barnabas(), ApacheKafka())
    controllers, brokers = programs if ours_leads_the_quorum else programs[::-1]
    with mixed(tmp_path, controllers, brokers, {}) as nodes:
        lead_follow_and_take_over(nodes)


@pytest.mark.slow
@pytest.mark.parametrize("ours_leads_the_quorum", [True, False], ids=["our-quorum", "their-quorum"])
def test_brokers_of_both_log_in_to_each_other_by_scram(
    tmp_path: Path, ours_leads_the_quorum: bool
) -> None:
    programs: tuple[Program, Program] = (ScramNodes(Barnabas()), ScramNodes(ApacheKafka()))
    controllers, brokers = programs if ours_leads_the_quorum else programs[::-1]
    with mixed(tmp_path, controllers, brokers, SECURED) as nodes:
        lead_follow_and_take_over(nodes)


def lead_follow_and_take_over(nodes: list[ClusterNode]) -> None:
    """Both lead a partition and follow the other's; then one leads all."""
    servers = ",".join(node.bootstrap_servers for node in nodes)
    admin = AdminClient({"bootstrap.servers": servers})

    def brokers_seen() -> set[int]:
        return set(admin.list_topics(timeout=30).brokers)

    wait_until(lambda: brokers_seen() == {CONTROLLER, BROKER}, "both brokers", 60)
    topic = NewTopic(TOPIC, 2, replica_assignment=[[CONTROLLER, BROKER], [BROKER, CONTROLLER]])
    admin.create_topics([topic])[TOPIC].result(30)
    producer = Producer({"bootstrap.servers": servers, "acks": "all", "linger.ms": 5})
    failures: list[str] = []
    expected = {
        partition: [f"{partition}-{number}".encode() for number in range(RECORDS)]
        for partition in (0, 1)
    }
    for partition, values in expected.items():
        for value in values:
            producer.produce(
                TOPIC,
                value,
                partition=partition,
                on_delivery=lambda error, _: failures.append(str(error)) if error else None,
            )
    assert producer.flush(60) == 0
    assert not failures
    for partition, values in expected.items():
        assert read_all(servers, partition, RECORDS) == values

    # Each has what the other led.
    survivor = nodes[0]
    nodes[1].terminate()
    nodes[1].wait()

    def leaders() -> set[int]:
        partitions = admin.list_topics(TOPIC, timeout=30).topics[TOPIC].partitions
        return {entry.leader for entry in partitions.values()}

    wait_until(lambda: leaders() == {CONTROLLER}, "the other to lead everything", 60)
    for partition, values in expected.items():
        assert read_all(survivor.bootstrap_servers, partition, RECORDS) == values
