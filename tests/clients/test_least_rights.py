"""A whole job over TLS where each program has the rights it needs and no others.

A producer that numbers its records, an exactly-once copy, readers of every kind of group, and an
application of Kafka Streams. Take one right away and the job stands.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AclOperation, ResourceType

from support.apache_kafka import QUICK_JVM
from support.cluster_processes import Barnabas
from support.java_host import JAVA, LIBS, SOURCES, JavaHost, needs_java, quick_javac
from support.node_process import wait_until
from support.secured_node import SecuredNode, running

TIMEOUT_S = 60
RECORDS = 20
WRITE, READ = AclOperation.WRITE, AclOperation.READ
DESCRIBE, CREATE, DELETE = AclOperation.DESCRIBE, AclOperation.CREATE, AclOperation.DELETE
TOPIC, GROUP = ResourceType.TOPIC, ResourceType.GROUP
TRANSACTIONAL_ID = ResourceType.TRANSACTIONAL_ID
USERS = ("admin", "writer", "copier", "reader", "sharer", "streams")
STATIONS = 3
REFUSAL = r"AUTHORIZATION_FAILED|failed delivery"


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredNode]:
    node = SecuredNode(tmp_path_factory.mktemp("least-rights"), Barnabas(), USERS)
    with running(node):
        yield node


def write(node: SecuredNode, topic: str, values: list[str], user: str = "writer") -> None:
    """Each once; the writer may write to the topic and that is all."""
    node.allow(user, TOPIC, topic, WRITE)
    producer = Producer(node.librdkafka(user, **{"enable.idempotence": True}))
    errors: list[Any] = []
    for value in values:
        producer.produce(topic, value, on_delivery=lambda error, _: errors.append(error))
    assert producer.flush(TIMEOUT_S) == 0
    assert errors == [None] * len(values)


def read(consumer: Consumer, count: int) -> list[str]:
    values: list[str] = []
    while len(values) < count:
        found = consumer.consume(count - len(values), TIMEOUT_S)
        assert found, f"only {len(values)} of {count}"
        for message in found:
            assert message.error() is None, message.error()
            values.append((message.value() or b"").decode())
    return values


def reader(node: SecuredNode, user: str, group: str, **settings: Any) -> Consumer:
    common = {"group.id": group, "auto.offset.reset": "earliest", "enable.auto.commit": False}
    return Consumer(node.librdkafka(user, **common, **settings))


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_copy_exactly_once(node: SecuredNode, protocol: str) -> None:
    source, target = f"in-{protocol}", f"out-{protocol}"
    group, transaction = f"copiers-{protocol}", f"copy-{protocol}"
    for topic in (source, target):
        node.create_topic(topic)
    sent = [str(number) for number in range(RECORDS)]
    write(node, source, sent)

    node.allow("copier", TOPIC, source, READ)
    node.allow("copier", TOPIC, target, WRITE)
    node.allow("copier", GROUP, group, READ)
    node.allow("copier", TRANSACTIONAL_ID, transaction, WRITE)
    settings = {"group.protocol": protocol, "isolation.level": "read_committed"}
    consumer = reader(node, "copier", group, **settings)
    consumer.subscribe([source])
    producer = Producer(node.librdkafka("copier", **{"transactional.id": transaction}))
    producer.init_transactions(TIMEOUT_S)
    producer.begin_transaction()
    for value in read(consumer, RECORDS):
        producer.produce(target, value)
    positions = consumer.position(consumer.assignment())
    producer.send_offsets_to_transaction(positions, consumer.consumer_group_metadata(), TIMEOUT_S)
    producer.commit_transaction(TIMEOUT_S)
    assert [place.offset for place in consumer.committed(positions, TIMEOUT_S)] == [RECORDS]
    consumer.close()

    node.allow("reader", TOPIC, target, READ)
    node.allow("reader", GROUP, f"readers-{protocol}", READ)
    last = reader(node, "reader", f"readers-{protocol}", **settings)
    last.subscribe([target])
    assert read(last, RECORDS) == sent
    last.commit(asynchronous=False)
    last.close()


@pytest.mark.parametrize("lacks", ["source", "target", "group", "transaction"])
def test_each_right_of_the_copy_is_needed(node: SecuredNode, lacks: str) -> None:
    names = {
        kind: f"{kind}-without-{lacks}" for kind in ("source", "target", "group", "transaction")
    }
    for kind in ("source", "target"):
        node.create_topic(names[kind])
    write(node, names["source"], ["one"])
    rights = {
        "source": (TOPIC, READ),
        "target": (TOPIC, WRITE),
        "group": (GROUP, READ),
        "transaction": (TRANSACTIONAL_ID, WRITE),
    }
    for kind, (resource, operation) in rights.items():
        if kind != lacks:
            node.allow("copier", resource, names[kind], operation)
    with pytest.raises((KafkaException, AssertionError), match=REFUSAL):
        copy_one(node, names)
    assert written(node, names["target"]) == 0


def copy_one(node: SecuredNode, names: dict[str, str]) -> None:
    consumer = reader(node, "copier", names["group"])
    producer = Producer(
        node.librdkafka("copier", **{"transactional.id": names["transaction"], "log_level": 0})
    )
    try:
        producer.init_transactions(TIMEOUT_S)
        producer.begin_transaction()
        consumer.subscribe([names["source"]])
        for value in read(consumer, 1):
            producer.produce(names["target"], value)
        positions = consumer.position(consumer.assignment())
        metadata = consumer.consumer_group_metadata()
        producer.send_offsets_to_transaction(positions, metadata, TIMEOUT_S)
        producer.commit_transaction(TIMEOUT_S)
    finally:
        consumer.close()


def written(node: SecuredNode, topic: str) -> int:
    """Return the number of a topic's committed records."""
    consumer = reader(node, "admin", "nobody", **{"isolation.level": "read_committed"})
    consumer.assign([TopicPartition(topic, 0, 0)])
    found = consumer.consume(10, 1)
    consumer.close()
    return sum(message.error() is None for message in found)


@pytest.mark.slow
def test_a_share_consumer(node: SecuredNode, java: JavaHost) -> None:
    topic, group = "shared", "sharers"
    node.create_topic(topic)
    config = node.java_file("sharer", node.java("sharer"))
    node.allow("sharer", TOPIC, topic, READ)
    command = (
        *("kafka-console-share-consumer", "--bootstrap-server", node.servers()),
        *("--command-config", config, "--topic", topic, "--group", group),
    )
    node.allow("sharer", GROUP, group, READ)
    run = java.start(*command, "--max-messages", "5")

    def has_members() -> bool:
        said = java.run(
            *("kafka-share-groups", "--bootstrap-server", node.servers("TRUSTED")),
            *("--describe", "--members", "--group", group),
            exit_code=None,
        )
        return topic in said.out

    wait_until(has_members, "the group has a member")
    write(node, topic, [str(number) for number in range(5)])
    assert run.wait().lines[:5] == ["0", "1", "2", "3", "4"]


@pytest.mark.slow
@needs_java
@pytest.mark.parametrize("protocol", ["classic", "streams"])
def test_an_application_of_kafka_streams(node: SecuredNode, tmp_path: Path, protocol: str) -> None:
    """What is its own is named after it: one prefix is enough."""
    application, source, target = (f"{name}-{protocol}" for name in ("app", "sessions", "energy"))
    for topic in (source, target):
        node.create_topic(topic)
    write(node, source, [f"station-{number % STATIONS},10" for number in range(RECORDS)])
    node.allow("streams", TOPIC, source, READ)
    node.allow("streams", TOPIC, target, WRITE)
    own = {"is_prefix": True}
    node.allow("streams", TOPIC, application, READ, WRITE, CREATE, DELETE, **own)
    node.allow("streams", GROUP, application, READ, DESCRIBE, **own)
    node.allow("streams", TRANSACTIONAL_ID, application, WRITE, DESCRIBE, **own)

    java_source = SOURCES / "streams" / "ChargingApp.java"
    classpath = f"{tmp_path}:{LIBS[-1]}/*"
    compiler = (*quick_javac(), "-cp", classpath, "-d", str(tmp_path), str(java_source))
    subprocess.run(compiler, check=True)
    settings = node.java("streams", "PLAIN") | {
        "group.protocol": protocol,
        "state.dir": str(tmp_path / "state"),
        "replication.factor": "1",
    }
    output = tmp_path / "out"
    with output.open("wb") as out:
        process = subprocess.Popen(
            [
                *(str(JAVA), "-Xmx256m", *QUICK_JVM),
                f"-Dlog4j2.configurationFile={SOURCES / 'log4j2.properties'}",
                *("-cp", classpath, "ChargingApp"),
                *(node.servers(), application, source, target),
                *(f"{key}={value}" for key, value in settings.items()),
            ],
            stdout=out,
            stderr=subprocess.STDOUT,
        )
    try:
        consumer = reader(node, "admin", "nobody", **{"isolation.level": "read_committed"})
        consumer.assign([TopicPartition(target, 0, 0)])
        values = read(consumer, RECORDS)
        consumer.close()
    except AssertionError:
        pytest.fail(output.read_text()[-4000:])
    finally:
        process.terminate()
        process.wait(TIMEOUT_S)
    totals = [tuple(map(int, value.split(","))) for value in values]
    assert sum(energy == 10 * count for count, energy in totals) == RECORDS
    assert "Exception" not in output.read_text()
