"""Logins, rights and TLS between nodes, with Apache Kafka's brokers in the same cluster.

Either program's brokers log in at the other's, and either takes over the users and ACLs that the
other has written.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from support.apache_kafka import ApacheKafka, needs_apache_kafka
from support.certificates import Authority
from support.cluster_processes import Barnabas, ClusterNode, Loopback, Program
from support.node_process import wait_until
from support.secured_settings import NODES, Security, password

pytestmark = [needs_apache_kafka, pytest.mark.slow, pytest.mark.timeout(300)]
TOPIC = "charges"
RECORDS = 50
ANSWER_S = 60
PROGRAMS: dict[str, tuple[type[Program], type[Program]]] = {
    "our-quorum": (Barnabas, ApacheKafka),
    "their-quorum": (ApacheKafka, Barnabas),
}


@contextmanager
def secured(
    directory: Path, security: Security, programs: Sequence[Program]
) -> Iterator[list[ClusterNode]]:
    """A node that is broker and controller, and brokers beside it."""
    nodes = [
        ClusterNode(number, directory / str(number), Loopback(), program)
        for number, program in enumerate(programs, start=1)
    ]
    for node in nodes:
        is_controller = node is nodes[0]
        copies = str(len(nodes))
        node.format(
            {
                "process.roles": "broker,controller" if is_controller else "broker",
                "node.id": str(node.node_id),
                "controller.quorum.voters": f"1@127.0.0.1:{nodes[0].controller_port}",
                "log.dirs": str(node.data),
                "offsets.topic.replication.factor": copies,
                "offsets.topic.num.partitions": "2",
                "group.initial.rebalance.delay.ms": "0",
                **security.settings(),
                **security.node(
                    node.node_id,
                    "127.0.0.1",
                    node.port,
                    node.controller_port if is_controller else None,
                ),
            },
            security.format_arguments(),
        )
    try:
        for node in nodes:
            node.wait_formatted()
        for node in nodes:
            node.start()
        for node in nodes:
            wait_until(node.answers, f"node {node.node_id} answers", ANSWER_S)
        yield nodes
    finally:
        for node in nodes:
            node.kill()


def add_user(admin: AdminClient, user: str) -> None:
    """A user who logs in by SCRAM."""
    info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096)
    upsertion = UserScramCredentialUpsertion(user, info, password(user).encode())
    for future in admin.alter_user_scram_credentials([upsertion]).values():
        future.result(ANSWER_S)


def allow(admin: AdminClient, user: str, operation: AclOperation) -> None:
    """Allow a user something with the topic."""
    pattern = ResourcePatternType.LITERAL
    binding = AclBinding(
        *(ResourceType.TOPIC, TOPIC, pattern, f"User:{user}"),
        *("*", operation, AclPermissionType.ALLOW),
    )
    for future in admin.create_acls([binding]).values():
        future.result(ANSWER_S)


def write(producer: Producer, partition: int) -> set[str]:
    """Write records; the names of the errors that there were."""
    errors: set[str] = set()
    for number in range(RECORDS):
        try:
            producer.produce(
                TOPIC,
                str(number),
                partition=partition,
                on_delivery=lambda error, _: errors.add(error.name()) if error else None,
            )
        except KafkaException as refusal:  # the client has heard before that it may not
            errors.add(refusal.args[0].name())
    assert producer.flush(ANSWER_S) == 0
    return errors


def read(consumer: Consumer, partition: int, count: int) -> None:
    consumer.assign([TopicPartition(TOPIC, partition, 0)])
    values: list[bytes | None] = []
    while len(values) < count:
        found = consumer.consume(count - len(values), ANSWER_S)
        assert found, f"only {len(values)} of {count} records of partition {partition}"
        assert not any(message.error() for message in found)
        values += [message.value() for message in found]


@pytest.mark.parametrize("programs", PROGRAMS.values(), ids=PROGRAMS)
def test_brokers_of_both_log_in_at_each_other(
    tmp_path: Path, programs: tuple[type[Program], type[Program]]
) -> None:
    security = Security(Authority(tmp_path))
    with secured(tmp_path, security, [program() for program in programs]) as nodes:
        servers = ",".join(node.bootstrap_servers for node in nodes)
        admin = AdminClient(security.client(servers, NODES))
        wait_until(
            lambda: set(admin.list_topics(timeout=ANSWER_S).brokers) == {1, 2}, "both", ANSWER_S
        )
        topic = NewTopic(TOPIC, 2, replica_assignment=[[1, 2], [2, 1]])
        admin.create_topics([topic])[TOPIC].result(ANSWER_S)
        add_user(admin, "ann")
        allow(admin, "ann", AclOperation.WRITE)
        mechanism = "SCRAM-SHA-256"
        writer = Producer(security.client(servers, "ann", mechanism, acks="all"))
        for partition in (0, 1):
            assert write(writer, partition) == set()
        reader = Consumer(security.client(servers, NODES, **{"group.id": "readers"}))
        for partition in (0, 1):
            read(reader, partition, RECORDS)
        reader.close()


@pytest.mark.parametrize(
    "programs",
    [(Barnabas, ApacheKafka, Barnabas), (ApacheKafka, Barnabas, ApacheKafka)],
    ids=["ours-first", "theirs-first"],
)
def test_users_and_acls_move_with_their_directory(
    tmp_path: Path, programs: tuple[type[Program], ...]
) -> None:
    security = Security(Authority(tmp_path))
    first, *others = programs
    mechanism = "SCRAM-SHA-256"
    with secured(tmp_path, security, [first()]) as (node,):
        admin = AdminClient(security.client(node.bootstrap_servers, NODES))
        admin.create_topics([NewTopic(TOPIC, 1, 1)])[TOPIC].result(ANSWER_S)
        users: list[str] = []

        def check(newcomer: str) -> None:
            """What was given holds; what was not is refused; and more can be given."""
            admin = AdminClient(security.client(node.bootstrap_servers, NODES))
            add_user(admin, newcomer)
            for user in users:
                assert write(Producer(client(user)), 0) == set()
            stranger = Producer(client(newcomer))
            assert write(stranger, 0) == {KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED).name()}
            allow(admin, newcomer, AclOperation.WRITE)
            wait_until(lambda: write(stranger, 0) == set(), "the right", ANSWER_S)
            users.append(newcomer)

        def client(user: str) -> dict[str, object]:
            return security.client(node.bootstrap_servers, user, mechanism)

        check("ann")
        for program, newcomer in zip(others, ("bob", "cleo"), strict=True):
            node.terminate()
            node.wait()
            node._program = program()
            node.start()
            wait_until(node.answers, "the node answers", ANSWER_S)
            check(newcomer)
